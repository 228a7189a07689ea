//! One candidate: what it does to the scenario and what is typed for it, or why it is none.

use knobs::{DiskName, Disks, Effect, GuestName, Setting};

use crate::sweep::Edit;

use super::case::Case;

/// One thing to try.
pub(crate) struct Remedy {
    /// Its kind: a key of the table.
    pub(crate) key: &'static str,
    /// What it is, in a few words that no other has.
    pub(crate) what: String,
    /// What it does to the scenario.
    pub(crate) edits: Vec<Edit>,
    /// What is to be done that no setting says, and what a setting still lacks.
    pub(crate) by_hand: Vec<String>,
}

/// What is none.
pub(crate) struct Refused {
    /// Its kind: a key of the table.
    pub(crate) key: &'static str,
    /// What it would be.
    pub(crate) what: String,
    /// Why it is none here, in one line.
    pub(crate) why: String,
}

impl Remedy {
    pub(super) fn new(what: String, edits: Vec<Edit>) -> Self {
        Self { key: "", what, edits, by_hand: Vec::new() }
    }

    pub(super) fn sets(what: String, settings: impl IntoIterator<Item = Setting>) -> Self {
        Self::new(what, settings.into_iter().map(Edit::Set).collect())
    }

    pub(super) fn by_hand(what: String, edit: Edit, line: String) -> Self {
        Self { by_hand: vec![line], ..Self::new(what, vec![edit]) }
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.edits.iter().filter_map(|edit| match edit {
            Edit::Set(setting) => Some(setting),
            _ => None,
        })
    }

    /// What it sets, with the names that its host has; `None` where it does anything else.
    pub(super) fn typed(&self, case: &Case) -> Option<Vec<Setting>> {
        let set = |edit: &Edit| match edit {
            Edit::Set(setting) => Some(typed(case, setting)),
            _ => None,
        };
        self.edits.iter().map(set).collect()
    }

    /// What is typed, as `--set` takes it: for a host's shell where it has it, else for PowerCLI, or in the
    /// guest, whose VM is in front.
    pub(crate) fn commands(&self, case: &Case) -> Vec<String> {
        let is_whole = |setting: &&Setting| match setting {
            Setting::StorageIoControl { device, .. } => case.knows_store(device),
            _ => true,
        };
        self.settings().filter(is_whole).flat_map(|setting| lines(&typed(case, setting))).collect()
    }

    /// When it acts.
    pub(crate) fn effect(&self) -> Effect {
        self.settings().map(Setting::effect).max().unwrap_or(Effect::AtOnce)
    }
}

/// What sets it; of a guest whose system is not known a line for each.
pub(super) fn lines(setting: &Setting) -> Vec<String> {
    match (setting, setting.esxcli().or_else(|| setting.powercli())) {
        // No ESXi has it.
        (Setting::DepthByLatency { .. }, Some(line)) => vec![format!("kavg {line}")],
        (_, Some(line)) => vec![line],
        (_, None) => {
            let vm = setting.vm().map_or(String::new(), |vm| format!("{vm}: "));
            setting.guest().into_iter().map(|line| format!("{vm}{line}")).collect()
        }
    }
}

/// A setting with the names that its host has.
pub(super) fn typed(case: &Case, setting: &Setting) -> Setting {
    let mut setting = setting.clone();
    match &mut setting {
        Setting::Allocation { vdisk: Disks::Of(DiskName { vm, .. }), .. }
        | Setting::Pvscsi { vm: GuestName { vm: Some(vm), .. }, .. } => {
            *vm = case.called(vm).into();
        }
        Setting::StorageIoControl { device, .. } => *device = case.store_called(device),
        _ => {}
    }
    setting
}
