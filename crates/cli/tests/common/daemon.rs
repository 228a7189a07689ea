//! A daemon for a test: begun, waited for until its disks can be opened, and ended with the test.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
};

use tempfile::TempDir;

/// Two disks of two VMs on one device with two paths.
pub(crate) const TWO_DISKS: &str = r#"
[host.h.adapter.vmhba2]
driver = "qlnativefc"
[datastore.fast]
device = "naa.60000000000000000000000000000001"
backend = "memory"
[vm.a]
guest = "linux"
[vm.a.disk."scsi0:0"]
datastore = "fast"
size = "8m"
[vm.b]
guest = "linux"
[vm.b.disk."scsi0:0"]
datastore = "fast"
size = "8m"
"#;

/// A directory with a file to serve.
pub(crate) struct Site {
    pub(crate) directory: TempDir,
}

/// A daemon at work.
pub(crate) struct Daemon {
    child: Child,
    talk: BufReader<ChildStderr>,
    /// What it said of each disk.
    pub(crate) lines: Vec<String>,
}

impl Site {
    /// A file of one host with these datastores and VMs.
    pub(crate) fn new(rest: &str) -> Self {
        let directory = TempDir::new().expect("room for a directory");
        let site = Self { directory };
        site.write(rest);
        site
    }

    /// Its file anew, with these.
    pub(crate) fn write(&self, rest: &str) {
        let text = format!(
            "title = \"t\"\n[host.h.adapter.vmhba1]\ndriver = \"qlnativefc\"\n[host.h.nbd]\n\
             socket = \"s\"\n{rest}"
        );
        fs::write(self.path("h.toml"), text).expect("room for a file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("s")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kavg"));
        command.args(["serve", "h.toml"]).args(arguments).current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Begins a daemon; it serves so many disks.
    pub(crate) fn serve(&self, disks: usize, arguments: &[&str]) -> Daemon {
        let mut child = self.command(arguments).spawn().expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let lines: Vec<_> = lines.take(disks).map_while(Result::ok).collect();
        let mut talk = BufReader::new(child.stderr.take().expect("it is piped"));
        if lines.len() < disks {
            let mut said = String::new();
            let _ = talk.read_to_string(&mut said);
            panic!("the daemon ended: {said}");
        }
        Daemon { child, talk, lines }
    }

    /// What a daemon says that does not begin.
    pub(crate) fn refusal(&self) -> String {
        self.refusal_of(&[])
    }

    /// The same with arguments.
    pub(crate) fn refusal_of(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("the binary starts");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).expect("it writes UTF-8")
    }
}

impl Daemon {
    /// The rest of the next line of its talk that begins so.
    pub(crate) fn said_behind(&mut self, start: &str) -> String {
        let lines = self.talk.by_ref().lines().map_while(Result::ok);
        let line = lines.into_iter().find_map(|line| Some(line.strip_prefix(start)?.to_owned()));
        line.expect("it says so")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.expect("there is a kill").success());
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Asks it to end, which it does well.
    pub(crate) fn stop(self) {
        self.terminate();
        assert_eq!(self.wait().code(), Some(0));
    }
}

impl Drop for Daemon {
    /// Kills it at once.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
