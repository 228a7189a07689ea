//! What the file says of real time: where the bytes of virtual disks are, and where guests find them.
//! A run in virtual time reads it, so that what is wrong is told there too, and has no use for it.

use std::{net::SocketAddr, path::Path};

use counters::{SECOND, SECTOR};
use model::{ArrayConfig, ByCommand, Front, Queues, ServerQueue, Service, Spread, WriteProtocol};

use crate::{
    Array, Backend, Error, Image, Nbd, Sockets,
    names::LENGTH_MAX,
    reader::{Node, Table},
};

/// The largest virtual disk: NBD counts bytes in 63 bits, and 1 PiB is more than any datastore has.
const SIZE_MAX: u64 = 1 << 50;
/// The same of one in memory, whose table of contents is as large as 2 GiB then.
const MEMORY_MAX: u64 = 8 << 40;
/// CPUs that a host may name: what the kernel's own sets of them have room for.
const CPUS_MAX: u32 = 1024;

/// What stands for a `duration` that a served file leaves out: nothing ends there.
pub(crate) const DURATION_NS: u64 = 24 * 3600 * SECOND;

/// What a file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A run in virtual time.
    Run,
    /// To be served in real time.
    Serve,
    /// A run in virtual time of a load that is not the file's, and is as long as that.
    Play,
}

/// What only who serves needs: back ends, and where disks are found. A host has those keys.
pub(crate) fn check(root: &Table<'_>, host_keys: &[&str]) -> Result<(), Error> {
    for (_, node) in root.named("datastore")? {
        if node.child("backend").is_none() {
            return Err(node.error("`backend` is missing: without one nothing can be served"));
        }
        let emulated = node.child("emulate").filter(|_| root.get("array").is_none());
        if let Some(emulated) = emulated {
            return Err(emulated.error("there is no array to emulate; it is an [array.NAME]"));
        }
    }
    refuse_ways(root)?;
    let mut is_nbd_needed = false;
    for (_, vm) in root.named("vm")? {
        let disks = vm.child("disk").map_or(Ok(Vec::new()), |disks| disks.named())?;
        is_nbd_needed |= disks.iter().any(|(_, disk)| disk.child("vhost_user").is_none());
    }
    for (_, node) in root.named("host")? {
        if is_nbd_needed && node.child("nbd").is_none() {
            // It may be there by a name that is none.
            node.table(host_keys)?;
            return Err(node.error("`nbd` is missing: where are its disks to be found?"));
        }
    }
    Ok(())
}

/// What is between a host and arrays is there in real time: no model stands in for it.
fn refuse_ways(root: &Table<'_>) -> Result<(), Error> {
    let mut tables = Vec::new();
    for (_, host) in root.named("host")? {
        let adapters = host.child("adapter").map_or(Ok(Vec::new()), |adapters| adapters.named())?;
        tables.extend(adapters);
        tables.push((String::new(), host));
    }
    tables.extend(root.named("datastore")?);
    let keys = [
        "link",
        "switch",
        "dead_after",
        "iscsi",
        "nfs_link",
        "nfs_switch",
        "connections",
        "rpc_slots",
    ];
    let mut named = keys.iter().flat_map(|key| tables.iter().map(|(_, table)| table.child(key)));
    let refused = root.get("switch").or_else(|| named.find_map(|node| node));
    refused.map_or(Ok(()), |node| Err(node.error("it is for virtual time alone: `kavg run`")))
}

/// What stands for the arrays of a file that has none: nothing is emulated with it.
pub(crate) fn no_array() -> Array {
    let service = Service::Servers {
        servers: 1,
        mean_ns: 1,
        spread: Spread::Constant,
        queue: ServerQueue::Random,
        by: ByCommand::default(),
        write_cache: None,
    };
    let config = ArrayConfig {
        service,
        round_trip_ns: 0,
        link_bytes_per_sec: None,
        write_protocol: WriteProtocol::TransferReady,
        queues: Queues::default(),
        capacity: None,
        front: Front::default(),
        volumes: Vec::new(),
    };
    Array { name: "none".into(), config, volumes: Vec::new(), policies: Vec::new(), line: 0 }
}

/// What the images of a datastore have in common.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    kind: StoreKind,
    directory: String,
    emulated: bool,
    bounces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    Null,
    Memory,
    File,
}

const KINDS: [(&str, StoreKind); 3] =
    [("file", StoreKind::File), ("memory", StoreKind::Memory), ("null", StoreKind::Null)];

/// Whether data go through buffers of the daemon.
const BUFFERS: [(&str, bool); 2] = [("direct", false), ("bounce", true)];

/// `backend`, `directory`, `emulate` and `buffers` of a datastore.
pub(crate) fn store(table: &Table<'_>) -> Result<Option<Store>, Error> {
    let directory = table.get("directory");
    let Some(kind) = table.read("backend", |node| node.choice(&KINDS))? else {
        let companions =
            [directory, table.get("emulate"), table.get("buffers")].into_iter().flatten();
        let mut alone = companions.map(|node| node.error("it goes with `backend`"));
        return alone.next().map(Err).unwrap_or(Ok(None));
    };
    let directory = match (kind, directory) {
        (StoreKind::File, Some(node)) => node.string()?.to_string(),
        (StoreKind::File, None) => return table.need("directory").map(|_| None),
        (_, Some(node)) => return Err(node.error("it goes with `backend = \"file\"`")),
        (_, None) => String::new(),
    };
    let emulated = table.read("emulate", Node::boolean)?.unwrap_or(false);
    let bounces = table.read("buffers", |node| node.choice(&BUFFERS))?.unwrap_or(false);
    Ok(Some(Store { kind, directory, emulated, bounces }))
}

/// Where the disk of a VM is: what its table says, on the datastore that it is on.
pub(crate) fn image(
    store: Option<&Store>,
    table: &Table<'_>,
    vm: &str,
    disk: &str,
) -> Result<Option<Image>, Error> {
    let size = table.read("size", size)?;
    let named = table.read("image", path)?;
    let export = table.read("export", export)?;
    let vhost_user = table.read("vhost_user", path)?;
    let read_only = table.read("read_only", Node::boolean)?.unwrap_or(false);
    let shared = table.read("shared", Node::boolean)?.unwrap_or(false);
    let is_raw = table.read("format", |node| node.choice(&[("raw", true)]))?.unwrap_or(false);
    let Some(store) = store else {
        let keys = ["size", "image", "export", "vhost_user", "read_only", "shared", "format"];
        let alone = keys.iter().find_map(|key| table.get(key));
        let refuse = |node: Node<'_>| {
            node.error("it goes with `backend` of the datastore, which does not have it")
        };
        return alone.map_or(Ok(None), |node| Err(refuse(node)));
    };
    let backend = match store.kind {
        StoreKind::File => {
            let name = named.unwrap_or_else(|| format!("{vm}_{}.img", disk.replace(':', "-")));
            Backend::File(Path::new(&store.directory).join(name).display().to_string())
        }
        _ if size.is_none() => return table.need("size").map(|_| None),
        kind => {
            if let Some(node) = table.get("image").or_else(|| table.get("format")) {
                return Err(node.error("it goes with `backend = \"file\"` of the datastore"));
            }
            let too_large = table.get("size").filter(|_| size > Some(MEMORY_MAX));
            match (kind, too_large) {
                (StoreKind::Null, _) => Backend::Null,
                (_, None) => Backend::Memory,
                (_, Some(node)) => {
                    let message = format!("a disk in memory has at most {}t", MEMORY_MAX >> 40);
                    return Err(node.error(&message));
                }
            }
        }
    };
    Ok(Some(Image {
        backend,
        emulated: store.emulated,
        bounces: store.bounces,
        size,
        export: export.unwrap_or_else(|| format!("{vm}:{disk}")),
        vhost_user,
        read_only,
        shared,
        is_raw,
        line: table.get("image").map_or(table.node().line(), |node| node.line()),
    }))
}

/// The name of a file.
fn path(node: &Node<'_>) -> Result<String, Error> {
    match node.string()? {
        "" => Err(node.error("it is empty; it is the name of a file")),
        name => Ok(name.to_owned()),
    }
}

/// `[host.NAME.nbd]`.
pub(crate) fn nbd(node: &Node<'_>) -> Result<Nbd, Error> {
    let table = node.table(&["socket", "tcp"])?;
    let socket = table.read("socket", path)?;
    let tcp = table.read("tcp", |node| node.parsed(loopback))?;
    if socket.is_none() && tcp.is_none() {
        return Err(node.error("one of `socket`, `tcp` is missing"));
    }
    let line = table.get("socket").map_or(node.line(), |node| node.line());
    Ok(Nbd { socket, tcp, line })
}

/// `[host.NAME.sockets]`.
pub(crate) fn sockets(node: &Node<'_>) -> Result<Sockets, Error> {
    let table = node.table(&["group", "mode"])?;
    let group = table.read("group", |node| Ok(node.string()?.to_string()))?;
    let mode = table.read("mode", |node| node.parsed(mode))?;
    // Whoever names a group means it to have a use.
    let usual = if group.is_some() { 0o660 } else { Sockets::default().mode };
    let line = table.get("group").map_or(node.line(), |node| node.line());
    Ok(Sockets { group, mode: mode.unwrap_or(usual), line })
}

/// What can be done with a socket is to write to it; reading goes with it by custom.
fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    let is_sound = |mode: &u32| mode & 0o600 == 0o600 && mode & !0o666 == 0;
    mode.filter(is_sound).ok_or_else(|| {
        format!("`{text}` is no mode of a socket; it is one from \"0600\" to \"0666\" whose owner may read and write")
    })
}

/// `cpus` of a host.
pub(crate) fn cpus(table: &Table<'_>) -> Result<Vec<u32>, Error> {
    table.list("cpus").iter().map(|node| node.integer32(0..=CPUS_MAX - 1)).collect()
}

/// NBD knows neither passwords nor encryption.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
    address.ok_or_else(|| {
        format!(
            "`{text}` is no address of the loopback interface with a port, as \"127.0.0.1:10809\""
        )
    })
}

fn size(node: &Node<'_>) -> Result<u64, Error> {
    let bytes = node.size(SECTOR..=SIZE_MAX)?;
    if bytes.is_multiple_of(SECTOR) {
        Ok(bytes)
    } else {
        Err(node.error(&format!("`{bytes}` bytes are no whole sectors of {SECTOR}")))
    }
}

fn export(node: &Node<'_>) -> Result<String, Error> {
    let name = node.string()?;
    let plain = |c: char| c.is_ascii_graphic();
    if name.is_empty() || name.len() > LENGTH_MAX || !name.chars().all(plain) {
        return Err(node.error(&format!(
            "`{name}` is no name of an export; it has 1 to {LENGTH_MAX} letters, digits and signs \
             without a space"
        )));
    }
    Ok(name.to_string())
}
