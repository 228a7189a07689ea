//! Settings of which a recording does not show what they are today, or what they act on: that a model notices
//! nothing of them is no answer then.

use knobs::{Advanced, IoControl, IoControlChange, Setting};

use crate::{build::Plan, demand::GuestCalibration, observe::Device, rows::Row};

/// What a recording does not tell that a setting acts on, in half a sentence; nothing where it tells enough.
pub(crate) fn of(setting: &Setting, plan: &Plan<'_>) -> Option<String> {
    let competing = || plan.devices.iter().filter(|device| !device.is_nfs && device.vms() > 1);
    // In which order commands go matters where some wait.
    let wait = || competing().any(|device| waits(device, plan)).then_some(());
    let some = |what: &str| Some(what.to_owned());
    match setting {
        Setting::DepthByLatency { device, on: false } => {
            Some(format!("whether the depth of {device} is found by latency today"))
        }
        Setting::StorageIoControl { control, .. } => {
            let is_on = matches!(control, IoControlChange::Enabled | IoControlChange::To(IoControl::On { .. }));
            let mut hidden = competing().filter(|device| !is_on && hides_dsnro(device, plan));
            let name = &hidden.next()?.name;
            Some(format!("whether Storage I/O Control is on today and sets DSNRO of {name} aside"))
        }
        Setting::Advanced { option, value } => match option {
            // What waits for a path has none here, DSNRO is in DQLEN, and the rest is refused before.
            Advanced::ApdHandlingEnable
            | Advanced::ApdTimeout
            | Advanced::SchedNumReqOutstanding
            | Advanced::QFullSampleSize
            | Advanced::QFullThreshold
            | Advanced::DelayOnBusy => None,
            Advanced::SchedQControlSeqReqs | Advanced::SchedQControlVmSwitches => {
                // What keeps DSNRO out of force gives slots to who waits for some.
                let lifts = *option == Advanced::SchedQControlVmSwitches && *value == Some(0);
                let acts = |device: &&Device<'_>| !lifts || waits(device, plan);
                let name = &competing().filter(acts).find(|device| hides_dsnro(device, plan))?.name;
                Some(format!("what DSNRO of {name} is (--esxcli FILE does), nor whether it is kept out of force today"))
            }
            Advanced::SchedQuantum | Advanced::SectorMaxDiff => {
                wait().and_then(|()| some("which commands of a VM are sequential"))
            }
            Advanced::SchedulerWithReservation => wait().and_then(|()| {
                some("in which order VMs that wait are served today, nor which shares and reservations they have")
            }),
            Advanced::SchedCostUnit | Advanced::IdleCredit | Advanced::SchedReservationBurst => {
                some("which limits, shares and reservations disks have")
            }
            Advanced::DiskMaxIoSize => some("how large the largest commands are, nor what they are cut into today"),
            Advanced::IscsiMaxIoSizeKb => {
                let mut guests = plan.calibrated.iter().flat_map(|of| &of.guests);
                let may_cut = plan.may_cut() && !guests.all(GuestCalibration::is_of_one_size);
                may_cut.then(|| "how large the largest commands are, nor what they are cut into today".into())
            }
            Advanced::VvolPesnro => {
                let name = &competing().find(|device| may_be_endpoint(device, plan))?.name;
                Some(format!("whether {name} is a protocol endpoint of vVols (--esxcli FILE does)"))
            }
            Advanced::HardwareAcceleratedLocking => some("how VMFS locks its metadata today, nor how often"),
            Advanced::HardwareAcceleratedMove | Advanced::MaxHwTransferSize => {
                some("which copies of disks the host makes")
            }
            Advanced::NfsMaxQueueDepth => {
                let name = &plan.devices.iter().find(|device| device.is_nfs)?.name;
                Some(format!("how many commands {name} may have outstanding today"))
            }
        },
        // DQLEN shows depths, and a guest's driver what is outstanding; the rest is refused before.
        _ => None,
    }
}

/// Whether commands wait in the VMkernel.
fn waits(device: &Device<'_>, plan: &Plan<'_>) -> bool {
    /// Commands below which nobody does.
    const NOBODY: f64 = 0.05;
    device.row.mean(&plan.window(), Row::waiting).is_none_or(|waiting| waiting >= NOBODY)
}

/// Whether VMs compete at a depth that is not known to be DSNRO, nor DSNRO to be no less.
fn hides_dsnro(device: &Device<'_>, plan: &Plan<'_>) -> bool {
    let known = plan.facts.devices.get(&device.name).and_then(|facts| facts.dsnro);
    let is_hidden = device.depths(&plan.window()).is_none_or(|depths| depths.lowered.is_none());
    is_hidden && known.is_none_or(|dsnro| dsnro < plan.queue(device).base)
}

/// Whether nothing says that a device is no protocol endpoint.
fn may_be_endpoint(device: &Device<'_>, plan: &Plan<'_>) -> bool {
    let known = plan.facts.devices.get(&device.name).filter(|facts| facts.dsnro.is_some());
    known.is_none_or(|facts| facts.is_protocol_endpoint)
}
