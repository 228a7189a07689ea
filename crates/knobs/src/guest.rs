//! The PVSCSI driver's settings as a guest has them: Windows' registry value, Linux' module
//! parameters [KB-PV].

use alloc::{format, string::String, vec, vec::Vec};

use counters::Controller;

use crate::{
    Effect, GuestOs, GuestSystem, Manual, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_DEFAULT,
    PVSCSI_RING_PAGES_MAX, Refusal, limits_of, manual::range,
};

const KEY: &str = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\pvscsi\\Parameters\\Device";
const VALUE: &str = "DriverParameter";
const MODPROBE: &str = "options vmw_pvscsi";
const MODPROBE_FILE: &str = "/etc/modprobe.d/pvscsi.conf";
const KERNEL: &str = "vmw_pvscsi.";
const PARAMETERS: &str = "/sys/module/vmw_pvscsi/parameters";

/// The forms of these lines.
pub(crate) fn forms() -> Vec<Manual> {
    let form = |line, system: GuestSystem| {
        let (pages, depth) = (range(1..=PVSCSI_RING_PAGES_MAX), range(1..=PVSCSI_DEPTH_MAX));
        let system = system.name();
        Manual {
            line,
            effect: Some(Effect::GuestReboot),
            what: format!(
                "PVSCSI in a {system} guest: {pages} pages, {depth} commands a disk [KB-PV]"
            ),
        }
    };
    vec![
        form("RequestRingPages=N,MaxQueueDepth=N", GuestSystem::Windows),
        form("vmw_pvscsi.cmd_per_lun=N vmw_pvscsi.ring_pages=N", GuestSystem::Linux),
    ]
}

/// What a line sets in a guest's driver. `None` is the driver's default, to which it returns what
/// it leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestDriver {
    /// The system whose syntax it is.
    pub system: GuestSystem,
    /// Commands per virtual disk.
    pub depth: Option<u32>,
    /// Pages of the request ring.
    pub ring_pages: Option<u32>,
}

impl GuestSystem {
    /// The names of the depth and of the ring.
    #[must_use]
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Windows => ["MaxQueueDepth", "RequestRingPages"],
            Self::Linux => ["cmd_per_lun", "ring_pages"],
        }
    }

    /// The line that shows what is set in a guest.
    #[must_use]
    pub fn show(self) -> String {
        let [depth, ring] = self.names();
        match self {
            Self::Windows => format!("reg query {KEY} /v {VALUE}"),
            Self::Linux => format!("cat {PARAMETERS}/{depth} {PARAMETERS}/{ring}"),
        }
    }

    /// The system whose PVSCSI driver a line is for; `None` when it is for none.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let line = line.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        // A slash stands before the name of a host's option for NFS.
        let has_depth = line.contains("maxqueuedepth") && !line.contains("/maxqueuedepth");
        if has_depth || has(&["driverparameter", "requestringpages"]) {
            return Some(Self::Windows);
        }
        has(&["vmw_pvscsi", "cmd_per_lun", "ring_pages"]).then_some(Self::Linux)
    }
}

impl GuestDriver {
    /// Reads `RequestRingPages=32,MaxQueueDepth=254` (alone, after the name of the registry value,
    /// or in the `reg add` that sets it; `reg delete` returns to the defaults), or
    /// `vmw_pvscsi.cmd_per_lun=254 vmw_pvscsi.ring_pages=32` (also in the form of a modprobe line,
    /// and in the `echo` that writes it).
    ///
    /// # Errors
    /// One line that names the word that is no setting of `system`, and gives an example.
    pub fn parse(line: &str, system: GuestSystem) -> Result<Self, Refusal> {
        let mut driver = Self { system, depth: None, ring_pages: None };
        let (settings, may_be_empty) = inner(line);
        let mut count = 0;
        for word in settings {
            let (name, value) = word.split_once('=').ok_or_else(|| usage(word, system))?;
            let name = name.trim_start_matches(KERNEL);
            let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
            let which = system.names().iter().position(is_it).ok_or_else(|| usage(name, system))?;
            let field = if which == 0 { &mut driver.depth } else { &mut driver.ring_pages };
            if field.is_some() {
                return Err(format!("`{name}` is set twice").into());
            }
            let most = if which == 0 { PVSCSI_DEPTH_MAX } else { PVSCSI_RING_PAGES_MAX };
            let number = value.parse().ok().filter(|number| (1..=most).contains(number));
            *field = Some(number.ok_or_else(|| {
                Refusal::from(format!("{name} `{value}` is out of range; it is 1 to {most}"))
            })?);
            count += 1;
        }
        if count == 0 && !may_be_empty { Err(usage(line, system)) } else { Ok(driver) }
    }

    /// The depth and the pages that it leads to; what it leaves out is the default of the guest.
    #[must_use]
    pub fn with_defaults(self, guest: GuestOs) -> (u32, u32) {
        let depth = self.depth.unwrap_or(limits_of(Controller::Pvscsi, guest).disk_depth);
        (depth, self.ring_pages.unwrap_or(PVSCSI_RING_PAGES_DEFAULT))
    }

    /// The settings alone, as the registry or the kernel's line has them; empty for the defaults.
    pub(crate) fn short(self) -> String {
        match self.system {
            GuestSystem::Windows => self.settings(""),
            GuestSystem::Linux => self.settings(KERNEL),
        }
    }

    fn settings(self, prefix: &str) -> String {
        let [depth, ring] = self.system.names();
        let set =
            |name: &str, value: Option<u32>| value.map(|value| format!("{prefix}{name}={value}"));
        let (depth, ring) = (set(depth, self.depth), set(ring, self.ring_pages));
        let (parts, separator) = match self.system {
            GuestSystem::Windows => ([ring, depth], ","),
            GuestSystem::Linux => ([depth, ring], " "),
        };
        parts.into_iter().flatten().collect::<Vec<_>>().join(separator)
    }

    /// The line to type in the guest.
    pub(crate) fn line(self) -> String {
        let short = self.settings("");
        match self.system {
            GuestSystem::Windows if short.is_empty() => {
                format!("reg delete {KEY} /v {VALUE} /f")
            }
            GuestSystem::Windows => {
                format!("reg add {KEY} /v {VALUE} /t REG_SZ /d \"{short}\" /f")
            }
            GuestSystem::Linux => {
                let space = if short.is_empty() { "" } else { " " };
                format!("echo '{MODPROBE}{space}{short}' > {MODPROBE_FILE}")
            }
        }
    }
}

/// The settings of a line without what stands around them, and whether it may have none.
fn inner(line: &str) -> (impl Iterator<Item = &str>, bool) {
    let line = line.trim();
    let echoed = line.strip_prefix("echo '").and_then(|rest| rest.split_once('\''));
    let line = echoed.map_or(line, |(line, _)| line);
    let (line, may_be_empty) = if strip(line, "reg delete ").is_some() {
        ("", true)
    } else if let Some(rest) = strip(line, "reg add ") {
        (data(rest), false)
    } else {
        line.strip_prefix(MODPROBE).map_or((line, false), |rest| (rest, true))
    };
    let line = match strip(line, VALUE) {
        Some(rest) => rest.trim_start().trim_start_matches('='),
        None => line,
    };
    let separator = |c: char| c == ',' || c == '"' || c.is_whitespace();
    let words = line.split(separator);
    let words = words.filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case("/f"));
    (words, may_be_empty)
}

/// A line without what it begins with, in any case: Windows tells none apart in commands and names.
fn strip<'t>(line: &'t str, start: &str) -> Option<&'t str> {
    let (own, rest) = line.split_at_checked(start.len())?;
    own.eq_ignore_ascii_case(start).then_some(rest)
}

/// What `reg add` writes, with what follows it; all of it where nothing says which.
fn data(options: &str) -> &str {
    const DATA: &str = " /d ";
    let at = options.to_ascii_lowercase().find(DATA);
    at.map_or(options, |at| &options[at + DATA.len()..])
}

fn usage(word: &str, system: GuestSystem) -> Refusal {
    let (depth, ring_pages) = (Some(PVSCSI_DEPTH_MAX), Some(PVSCSI_RING_PAGES_MAX));
    let example = GuestDriver { system, depth, ring_pages }.short();
    let system = system.name();
    format!("`{word}` is no setting of PVSCSI in a {system} guest; it is as `{example}`").into()
}
