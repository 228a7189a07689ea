//! The socket of a front end: messages with the descriptors beside them, without ever waiting.

use std::{
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
};

use nix::{
    cmsg_space,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg},
};

use super::wire::{HEAD, Head};

/// Descriptors that the kernel lets one message carry: with room for all of them none is left open that
/// nobody knows of.
const FILES_MAX: usize = 253;

/// A connected front end.
#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
    /// Of the message that is coming.
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
    /// Whether the socket may have something.
    pub(super) is_readable: bool,
}

/// A whole message as it came.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    pub(super) files: Vec<OwnedFd>,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, bytes: Vec::new(), files: Vec::new(), is_readable: true })
    }

    /// Whether the front end has closed it, whatever there is left to be read.
    pub(super) fn has_gone(&self) -> bool {
        let mut asked = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        let has_answer = poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        let told = asked[0].revents().unwrap_or(PollFlags::empty());
        has_answer && told.contains(PollFlags::POLLHUP)
    }

    /// The next message; `None` when it has not come yet.
    ///
    /// # Errors
    /// When the front end has gone, or what it says is no message.
    pub(super) fn read(&mut self) -> io::Result<Option<Came>> {
        loop {
            let head = self.bytes.first_chunk().map(Head::parse);
            let wanted = match head {
                None => HEAD,
                Some(None) => return Err(ErrorKind::InvalidData.into()),
                Some(Some(head)) => HEAD + head.body,
            };
            match head.flatten() {
                Some(head) if self.bytes.len() == wanted => {
                    let body = self.bytes.split_off(HEAD);
                    self.bytes.clear();
                    return Ok(Some(Came { head, body, files: std::mem::take(&mut self.files) }));
                }
                _ => {}
            }
            match self.fill(wanted) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_readable = false;
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads up to so many bytes of a message. Descriptors come with its first one.
    fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        let from = self.bytes.len();
        self.bytes.resize(wanted, 0);
        let read = if from == 0 {
            receive(&self.stream, &mut self.bytes, &mut self.files)
        } else {
            self.stream.read(&mut self.bytes[from..])
        };
        self.bytes.truncate(from + read.as_ref().unwrap_or(&0));
        read
    }

    /// Writes a message, which is short: what has no room for it is of no more use.
    pub(super) fn write(&self, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        send(&self.stream, bytes, file)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Writes a whole message, or none.
pub(super) fn send(
    socket: &impl AsFd,
    bytes: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let files: Vec<RawFd> = file.iter().map(AsRawFd::as_raw_fd).collect();
    let beside = [ControlMessage::ScmRights(&files)];
    let beside = if files.is_empty() { &[] } else { beside.as_slice() };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let socket = socket.as_fd().as_raw_fd();
    let sent = sendmsg::<()>(socket, &[IoSlice::new(bytes)], beside, flags, None)?;
    if sent == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

fn receive(stream: &UnixStream, bytes: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut beside = cmsg_space!([RawFd; FILES_MAX]);
    let mut into = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut into, Some(&mut beside), flags)?;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = message {
            #[expect(unsafe_code, reason = "the kernel hands out numbers")]
            // SAFETY: they were opened for this process by the call above, and nobody else has them.
            files.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    #[test]
    fn files_come_with_their_message_and_none_is_left_open() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(near).unwrap();
        let head: Vec<u8> = [1_u32, 1, 4].into_iter().flat_map(u32::to_ne_bytes).collect();
        assert!(channel.read().unwrap().is_none());
        let files = vec![far.as_raw_fd(); FILES_MAX];
        let beside = [ControlMessage::ScmRights(&files)];
        let parts = [IoSlice::new(&head[..5])];
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        sendmsg::<()>(far.as_raw_fd(), &parts, &beside, MsgFlags::empty(), None).unwrap();
        assert!(channel.read().unwrap().is_none(), "the rest of it is still to come");
        far.write_all(&[&head[5..], &[1, 2, 3, 4], &head[..12]].concat()).unwrap();
        let came = channel.read().unwrap().unwrap();
        assert_eq!((came.body.as_slice(), came.files.len()), ([1, 2, 3, 4].as_slice(), FILES_MAX));
        drop(came);
        assert!(open() < before + FILES_MAX);
        assert!(channel.read().unwrap().is_none());
        drop(far);
        assert!(channel.read().is_err());
    }
}
