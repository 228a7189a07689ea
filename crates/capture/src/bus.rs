//! Where a virtual disk hangs, by its name in a column.

use counters::Controller;

/// Where a virtual disk hangs.
pub(crate) enum Bus<'a> {
    /// On the SCSI adapter of that number; its type is in the names of worlds.
    Scsi(&'a str),
    /// On an adapter of which the name is the type.
    Other(Controller),
}

/// Splits `<vm>:scsi0:1`; `None` for the name of a VM [CAP-A].
pub(crate) fn split_virtual_disk(name: &str) -> Option<(&str, Bus<'_>)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (rest, unit) = name.rsplit_once(':')?;
    let (vm, adapter) = rest.rsplit_once(':')?;
    let (kind, number) = adapter.split_at(adapter.find(|c: char| c.is_ascii_digit())?);
    if !is_number(unit) || !is_number(number) {
        return None;
    }
    let bus = match kind {
        "scsi" => Bus::Scsi(number),
        "ide" => Bus::Other(Controller::Ide),
        "sata" => Bus::Other(Controller::Ahci),
        "nvme" => Bus::Other(Controller::Nvme),
        _ => return None,
    };
    Some((vm, bus))
}
