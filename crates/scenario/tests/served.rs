//! What a file needs that is to be served, and what of a host is a component.

use scenario::{Backend, Components, Scenario};

const HEAD: &str = "title = \"t\"\n";
const HOST: &str = "[host.h]\nnbd.socket = \"s\"\n[host.h.adapter.vmhba1]\ndriver = \"fnic\"\n";
const STORE: &str = "[datastore.d]\nbackend = \"file\"\ndirectory = \"images\"\n";
const VM: &str = "[vm.v]\n[vm.v.disk.\"scsi0:1\"]\ndatastore = \"d\"\n";

fn parse(text: &str) -> Result<Scenario, String> {
    let mut include = |_: &str| Err("there is none".into());
    Scenario::parse_served("h.toml", text, &mut include).map_err(|error| error.to_string())
}

#[test]
fn a_served_file_needs_neither_an_array_nor_a_duration() {
    let scenario = parse(&[HEAD, HOST, STORE, VM].concat()).unwrap();
    let image = scenario.hosts[0].images[0].as_ref().unwrap();
    assert_eq!(image.backend, Backend::File("images/v_scsi0-1.img".into()));
    assert_eq!((image.export.as_str(), image.size, image.line), ("v:scsi0:1", None, 10));
    let group =
        parse(&[HEAD, HOST, STORE, &VM.replacen("[vm.v]\n", "[vm.v]\ncount = 2\n", 1)].concat());
    let images = &group.unwrap().hosts[0].images;
    let exports = images.iter().flatten().map(|image| image.export.as_str());
    assert_eq!(exports.collect::<Vec<_>>(), ["v-1:scsi0:1", "v-2:scsi0:1"]);
}

#[test]
fn what_a_served_file_lacks_is_named() {
    let no_back_end = "[datastore.d]\n";
    let emulating = "[datastore.d]\nbackend = \"memory\"\nemulate = true\n";
    let cases = [
        (
            HOST,
            no_back_end,
            "h.toml:6:12: key `datastore.d`: `backend` is missing: without one nothing can be served",
        ),
        (
            HOST,
            emulating,
            "h.toml:8:1: key `datastore.d.emulate`: there is no array to emulate; it is an [array.NAME]",
        ),
        (
            "[host.h.adapter.vmhba1]\ndriver = \"fnic\"\n",
            STORE,
            "h.toml:2:7: key `host.h`: `nbd` is missing: where are its disks to be found?",
        ),
        (
            "[switch.s]\n[host.h]\nnbd.socket = \"s\"\n[host.h.adapter.vmhba1]\ndriver = \"fnic\"\n",
            STORE,
            "h.toml:2:2: key `switch`: it is for virtual time alone: `kavg run`",
        ),
        (
            "[host.h]\nnbd.socket = \"s\"\n[host.h.adapter.vmhba1]\ndriver = \"fnic\"\nswitch = \"s\"\n",
            STORE,
            "h.toml:6:1: key `host.h.adapter.vmhba1.switch`: it is for virtual time alone: `kavg run`",
        ),
        (
            "[host.h]\nnbd.socket = \"s\"\n[host.h.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\niscsi.window = 64\n",
            STORE,
            "h.toml:6:1: key `host.h.adapter.vmhba64.iscsi`: it is for virtual time alone: `kavg run`",
        ),
    ];
    for (host, store, expected) in cases {
        assert_eq!(parse(&[HEAD, host, store, VM].concat()), Err(expected.to_string()));
    }
}

#[test]
fn a_run_needs_an_array_all_the_same() {
    let text = ["duration = \"1s\"\n", HEAD, HOST, STORE, VM].concat();
    let mut include = |_: &str| Err("there is none".into());
    let refused = Scenario::parse("h.toml", &text, &mut include).unwrap_err().to_string();
    assert!(refused.ends_with("there is no array; it is an [array.NAME]"), "{refused}");
}

/// Two adapters with a datastore each, and a VM on each.
fn components(first: &str, second: &str, rest: &str) -> Components {
    let store = |name: &str, adapter: &str| {
        format!(
            "[datastore.{name}]\nadapters = \"{adapter}\"\nbackend = \"file\"\ndirectory = \".\"\n\
             array = \"{name}\"\n[array.{name}]\nservers = 1\nservice = \"1ms\"\n"
        )
    };
    let vm = |name: &str, keys: &str| {
        format!("[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"{name}\"\n{keys}\n")
    };
    let text = [
        HEAD,
        HOST,
        "[host.h.adapter.vmhba2]\ndriver = \"fnic\"\n",
        &store("a", "vmhba1"),
        &store("b", "vmhba2"),
        &vm("a", first),
        &vm("b", second),
        rest,
    ];
    parse(&text.concat()).unwrap().hosts[0].components()
}

#[test]
fn what_is_tied_is_one_component() {
    let apart = components("", "", "");
    assert_eq!((apart.count, apart.vdisks, apart.devices), (2, vec![0, 1], vec![0, 1]));
    assert_eq!((apart.paths, apart.adapters), (vec![0, 1], vec![0, 1]));
    let of_one_vm = components(
        "",
        "",
        "[vm.c.disk.\"scsi0:0\"]\ndatastore = \"a\"\n[vm.c.disk.\"scsi0:1\"]\ndatastore = \"b\"\n",
    );
    assert_eq!(of_one_vm.count, 1);
    let one_image = components("image = \"/x\"", "image = \"/x\"", "");
    assert_eq!((one_image.count, one_image.adapters), (1, vec![0, 0]));
}
