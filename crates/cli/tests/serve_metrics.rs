//! What a daemon tells who reads OpenMetrics, and the dashboard that shows it.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;
#[path = "common/nbd.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod nbd;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
};

use daemon::Site;
use nbd::Client;

const DISKS: &str = r#"
[datastore.m]
backend = "memory"
[vm.a.disk."scsi0:0"]
datastore = "m"
size = "1m"
[vm.b.disk."scsi0:0"]
datastore = "m"
size = "1m"
limit = 500
"#;

const DASHBOARD: &str = include_str!("../../../contrib/grafana/kavg.json");

/// The answer to a request.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the daemon listens");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it writes UTF-8");
    answer
}

/// The families of a text, and the names of their samples; what breaks the rules is no text.
fn families(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut family, mut kind) = (String::new(), String::new());
    let mut lines = text.lines();
    assert_eq!(lines.next_back(), Some("# EOF"));
    for line in lines {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "TYPE", name, what] => {
                assert!(families.insert(name.into(), BTreeSet::new()).is_none(), "{name} twice");
                (family, kind) = (name.into(), what.into());
            }
            ["#", "UNIT", name, unit] => assert!(name == family && name.ends_with(unit)),
            ["#", "HELP", name, _] => assert_eq!(name, family),
            _ => {
                let (name, rest) = line.split_once('{').expect("labels");
                let (_, value) = rest.rsplit_once("} ").expect("a value");
                assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
                let ends: &[&str] = match kind.as_str() {
                    "counter" => &["_total"],
                    "gauge" => &[""],
                    _ => &["_bucket", "_count", "_sum"],
                };
                assert!(ends.iter().any(|end| name == format!("{family}{end}")), "{line}");
                families.entry(family.clone()).or_default().insert(name.into());
            }
        }
    }
    families
}

#[test]
fn totals_are_read_and_the_dashboard_names_what_there_is() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(2, &["--metrics", "127.0.0.1:0", "--control", "c"]);
    let address = daemon.said_behind("counters for OpenMetrics: http://");
    let address = address.strip_suffix("/metrics").expect("a path").to_owned();
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    (0..7).for_each(|_| assert_eq!(client.write(0, 0, &[1; 4096]), 0));
    let answer = ask(&address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"));
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).expect(start);
    let written = line("kavg_disk_commands_total{host=\"h\",vm=\"a\",disk=\"scsi0:0\",device=\"");
    assert!(written.ends_with("op=\"read\"} 0"), "{written}");
    let all = "kavg_disk_latency_seconds_count{host=\"h\",vm=\"a\"";
    assert!(line(all).ends_with("} 7"), "{}", line(all));
    let limits: Vec<_> = text.lines().filter(|line| line.starts_with("kavg_disk_limit")).collect();
    let [limit] = limits[..] else { panic!("{limits:?}") };
    assert!(limit.contains("vm=\"b\"") && limit.ends_with("} 500"), "{limit}");
    let path = line("kavg_path_up{host=\"h\",device=\"");
    assert!(path.ends_with(",adapter=\"vmhba1\",path=\"vmhba1:C0:T0:L0\"} 1"), "{path}");
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    kavg.args(["esxcli", "--live", "c", "storage core path set -p vmhba1:C0:T0:L0 -s off"]);
    assert!(kavg.current_dir(site.directory.path()).status().unwrap().success());
    let off = ask(&address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(off.contains("path=\"vmhba1:C0:T0:L0\"} 0\n"), "{off}");
    let known: BTreeSet<String> = families(text).into_values().flatten().collect();
    let named = DASHBOARD.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    let named: BTreeSet<&str> = named.filter(|word| word.starts_with("kavg_")).collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(known.contains(name), "the dashboard names {name}");
    }
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("PUT /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("money\r\n\r\n", "400 Bad Request"),
        (&format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(99)), "400 Bad Request"),
    ] {
        assert!(ask(&address, request).starts_with(&format!("HTTP/1.1 {status}")), "{status}");
    }
    daemon.stop();
}

#[test]
fn counters_are_for_this_machine_alone() {
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let output = kavg.args(["serve", "h.toml", "--metrics", "0.0.0.0:9464"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("an address of the loopback interface with a port"), "{said}");
}

#[test]
fn a_doctor_says_what_is_in_the_way() {
    let site = Site::new(
        "[datastore.f]\nbackend = \"file\"\ndirectory = \"images\"\n[vm.a]\n\
         [vm.a.disk.\"scsi0:0\"]\ndatastore = \"f\"\nsize = \"1m\"\n",
    );
    let doctor = |arguments: &[&str]| {
        let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
        kavg.arg("doctor").args(arguments).current_dir(site.directory.path()).output().unwrap()
    };
    let sick = doctor(&["h.toml"]);
    assert_eq!(sick.status.code(), Some(1));
    let text = String::from_utf8(sick.stdout).unwrap();
    assert!(text.contains("bad   image        images is not there\n"), "{text}");
    assert!(text.contains("$ mkdir -p images\n"), "{text}");
    std::fs::create_dir(site.path("images")).unwrap();
    let well = doctor(&["h.toml", "--json"]);
    assert_eq!(well.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&well.stdout).unwrap();
    let image = report["checks"].as_array().unwrap().iter().find(|check| check["what"] == "image");
    assert_eq!(image.unwrap()["verdict"], "good");
    assert!(!site.path("images/a_scsi0-0.img").exists() && !site.path("s").exists());
    // What is there is looked at as whoever serves it does.
    let image = site.path("images/a_scsi0-0.img");
    for (bytes, expected) in [
        ([b"QFI\xfb".as_slice(), &[0; 1020]].concat(), "of the format qcow2"),
        (vec![0; 2 << 20], "and `size` says 1048576"),
    ] {
        std::fs::write(&image, &bytes).unwrap();
        let text = String::from_utf8(doctor(&["h.toml"]).stdout).unwrap();
        assert!(text.contains("bad   image") && text.contains(expected), "{text}");
        assert_eq!(std::fs::read(&image).unwrap(), bytes);
    }
    assert_eq!(doctor(&["nowhere.toml"]).status.code(), Some(2));
    std::fs::write(site.path("h.settings"), "kavg settings 1\n").unwrap();
    let torn = doctor(&["h.toml"]);
    assert_eq!(torn.status.code(), Some(1));
    let text = String::from_utf8(torn.stdout).unwrap();
    assert!(text.contains("bad   settings     h.settings:1: the file is damaged"), "{text}");
    assert!(text.contains("$ mv h.settings h.settings.aside\n"), "{text}");
    std::fs::write(site.path("h.settings"), "kavg settings 1\nnonsense\nend\n").unwrap();
    let text = String::from_utf8(doctor(&["h.toml"]).stdout).unwrap();
    assert!(text.contains("bad   settings     h.settings:2: "), "{text}");
    let text = std::fs::read_to_string(site.path("h.toml")).unwrap();
    std::fs::write(site.path("h.toml"), text + "[host.h.sockets]\ngroup = \"nosuch\"\n").unwrap();
    let text = String::from_utf8(doctor(&["h.toml"]).stdout).unwrap();
    assert!(text.contains("bad   group        `group`: there is no group `nosuch`\n"), "{text}");
    assert!(text.contains("$ sudo groupadd nosuch\n"), "{text}");
}

/// As a daemon that is at work has it, and as somebody else does.
#[test]
fn a_doctor_knows_a_socket_that_is_in_use_from_one_that_is_in_the_way() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let site = Site::new(&format!(
        "tcp = \"127.0.0.1:{port}\"\n[datastore.f]\nbackend = \"file\"\ndirectory = \".\"\n[vm.a]\n\
         [vm.a.disk.\"scsi0:0\"]\ndatastore = \"f\"\nsize = \"1m\"\nvhost_user = \"v\"\n",
    ));
    let doctor = || {
        let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
        let output = kavg.args(["doctor", "h.toml"]).current_dir(site.directory.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let has = |text: &str, lines: &[&str]| {
        lines.iter().for_each(|line| assert!(text.contains(line), "{text}\n{line}"));
    };
    let tcp = format!("good  tcp          127.0.0.1:{port}\n");
    has(&doctor(), &["good  socket       s\n", "good  socket       v\n", &tcp]);
    let daemon = site.serve(1, &[]);
    let tcp = format!("good  tcp          127.0.0.1:{port}, where a server of NBD listens\n");
    has(
        &doctor(),
        &[
            "good  socket       s, where a daemon listens\n",
            "good  socket       v, where a daemon listens\n",
            &tcp,
            "bad   image        ./a_scsi0-0.img: another process has it open",
            "$ sudo fuser -v ./a_scsi0-0.img\n",
        ],
    );
    daemon.stop();
    let other = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || other.accept().map(drop));
    std::fs::write(site.path("s"), "").unwrap();
    let tcp = format!("bad   tcp          127.0.0.1:{port}: Address already in use");
    let line = format!("$ ss -ltnp sport = :{port}\n");
    has(&doctor(), &["bad   socket       s is there and no socket\n", &tcp, &line]);
}
