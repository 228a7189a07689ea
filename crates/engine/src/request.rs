//! A request that is not simply admitted: it is refused, cut, or a lock of VMFS.

use counters::{IoId, Op, VdiskId};

use knobs::Advanced;

use crate::{Error, Request, Sink, slab::NONE, stack::Stack, vscsi::Vdisk};

impl Stack {
    /// What is refused, cut, or a lock.
    #[cold]
    pub(crate) fn submit_rarely(
        &mut self,
        (vdisk, op, tag): (VdiskId, Op, u32),
        (lba, bytes, waited_ns): (u64, u32, u64),
        out: &mut impl Sink,
    ) -> Result<IoId, Error> {
        let request = Request { vdisk, op, lba, bytes, waited_ns, tag };
        let id = request.vdisk.index();
        let vdisk = self.vdisks.get(id).ok_or(Error::Unknown("virtual disk", id))?;
        if !vdisk.takes_io {
            return self.submit_in_vain(request, out);
        }
        if request.bytes == 0 && request.op.needs_bytes() {
            return Err(Error::Empty);
        }
        Ok(self.take_in(request, out))
    }

    /// The guest's driver cuts what is larger than the adapter takes [VMB14].
    pub(crate) fn take_in(&mut self, request: Request, out: &mut impl Sink) -> IoId {
        let vdisk = &self.vdisks[request.vdisk.index()];
        let op = self.lock_of(vdisk, request.op);
        let request = Request { op, ..request };
        if request.bytes <= vdisk.max_transfer || !op.moves_data() {
            return self.admit_rarely(request, NONE, out);
        }
        let max = vdisk.max_transfer;
        self.submit_parts(request, max, out)
    }

    /// VMFS's lock by ATS becomes a reservation of the device where the host is told not to use ATS
    /// (reference `array-and-control.md` section 7.4). A guest's own commands stay what they are.
    const fn lock_of(&self, vdisk: &Vdisk, op: Op) -> Op {
        match op {
            Op::Ats
                if vdisk.is_system
                    && self.options.get(Advanced::HardwareAcceleratedLocking) == 0 =>
            {
                Op::Reserve
            }
            _ => op,
        }
    }

    /// [`Stack::admit`] where that is rare: its code is large.
    pub(crate) fn admit_rarely(
        &mut self,
        request: Request,
        extra: u32,
        out: &mut impl Sink,
    ) -> IoId {
        self.admit(request, extra, out)
    }
}
