//! What a daemon gives up before it serves anybody: all files but those of its scenario (Landlock), and
//! the system calls that no server of disks makes (seccomp). Where the kernel has neither, it says so.
//!
//! It is entered by the one thread that there is then, so that all threads are in it.

use std::{
    collections::BTreeSet,
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
};

use counters::sorted::Ordered;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::libc;
use scenario::{Backend, Scenario};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::{
    Options,
    folders::{Folders, parent},
    socket::GROUPS,
};

/// The newest rules that are known here; a kernel that has fewer keeps to those.
const RULES: ABI = ABI::V6;

/// Calls to become somebody else, to start something, to look into other processes, and to change the
/// machine: a guest that breaks into the daemon would begin with one of them.
const REFUSED: [libc::c_long; 39] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_sethostname,
];

/// What may be done, and to what.
type Grant = (PathBuf, BitFlags<AccessFs>);

/// Gives up what serving this scenario does not need. What the kernel cannot hold is told, a line each.
///
/// # Errors
/// When the kernel has the means and refuses them.
pub fn confine(scenario: &Scenario, options: Options<'_>) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    if let Some(directory) = options.journal {
        let made = fs::create_dir_all(directory);
        made.map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let status =
        keep_to(&grants(scenario, options)).map_err(|error| format!("Landlock: {error}"))?;
    if status == RulesetStatus::NotEnforced {
        notes.push("the kernel has no Landlock: files are guarded by their modes alone".into());
    }
    match TargetArch::try_from(ARCH) {
        Ok(arch) => refuse_calls(arch).map_err(|error| format!("seccomp: {error}"))?,
        Err(_) => notes.push(format!("no system call is refused on {ARCH}")),
    }
    Ok(notes)
}

/// The files that a scenario is about. A directory stands for what is to be made in it.
fn grants(scenario: &Scenario, options: Options<'_>) -> BTreeSet<Grant> {
    let data = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let made = data | AccessFs::MakeReg | AccessFs::RemoveFile;
    let sockets = AccessFs::MakeSock | AccessFs::RemoveFile;
    let mut grants = BTreeSet::new();
    let mut grant = |path: &Path, access| grants.insert((path.to_path_buf(), access));
    // It may be another file by the time that it is read again.
    grant(&parent(Path::new(options.file)), AccessFs::ReadFile.into());
    let folders = Folders::of(scenario, options.base);
    folders.images.iter().for_each(|folder| _ = grant(folder, data | AccessFs::MakeReg));
    folders.sockets.iter().for_each(|folder| _ = grant(folder, sockets));
    for host in &scenario.hosts {
        for image in host.images.iter().flatten() {
            if let Backend::File(path) = &image.backend {
                grant(&options.base.join(path), data);
            }
        }
        if let Some(socket) = host.nbd.as_ref().and_then(|nbd| nbd.socket.as_ref()) {
            grant(&parent(&options.base.join(socket)), sockets);
        }
    }
    if scenario.hosts.iter().any(|host| host.sockets.group.is_some()) {
        grant(Path::new(GROUPS), AccessFs::ReadFile.into());
    }
    if let Some(socket) = options.control {
        grant(&parent(socket), sockets);
    }
    if let Some(settings) = options.settings {
        grant(&parent(settings.path()), made | AccessFs::ReadDir);
    }
    if let Some(directory) = options.journal {
        grant(directory, made | AccessFs::ReadDir);
    }
    grants
}

/// From now on no other file is opened, and nobody is connected to.
fn keep_to(grants: &BTreeSet<Grant>) -> Result<RulesetStatus, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(RULES))?;
    let ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?.scope(Scope::from_all(RULES))?;
    let mut ruleset = ruleset.create()?;
    for (path, access) in grants {
        // What is not there yet is made in its directory, or refused by its own name later.
        let Ok(file) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { *access } else { *access & AccessFs::from_file(RULES) };
        ruleset = ruleset.add_rule(PathBeneath::new(file, access))?;
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

fn refuse_calls(arch: TargetArch) -> seccompiler::Result<()> {
    let rules = REFUSED.into_iter().map(|call| (call, Vec::new())).into_map();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::ErrorKind, process::Command, thread};

    use super::*;

    /// Both hold for a thread and those that it begins.
    #[test]
    fn no_other_file_is_opened_and_nothing_is_started() {
        let directory = tempfile::tempdir().unwrap();
        let (image, other) = (directory.path().join("i"), directory.path().join("o"));
        File::create(&image).unwrap();
        File::create(&other).unwrap();
        let grants = BTreeSet::from([(image.clone(), AccessFs::ReadFile | AccessFs::WriteFile)]);
        let confined = thread::spawn(move || {
            if keep_to(&grants).unwrap() == RulesetStatus::NotEnforced {
                return testing::skipped("the kernel has no Landlock");
            }
            assert!(File::options().read(true).write(true).open(&image).is_ok());
            let kinds = [File::open(&other), File::open("/etc/passwd"), File::create(&other)];
            assert!(kinds.iter().all(|file| {
                file.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
            }));
        });
        confined.join().unwrap();
        let Ok(arch) = TargetArch::try_from(ARCH) else { return };
        let confined = thread::spawn(move || {
            refuse_calls(arch).unwrap();
            let refused = Command::new("true").status().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            assert!(File::open("/etc/passwd").is_ok());
        });
        confined.join().unwrap();
    }
}
