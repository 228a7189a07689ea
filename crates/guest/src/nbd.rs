//! A client of NBD that reads or writes, many requests at a time: to measure a server with.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: [u8; 4] = 0x6744_6698_u32.to_be_bytes();
/// The type of the request that ends a connection.
const DISCONNECT: u8 = 2;
/// Bytes of the head of a reply.
const HEAD: usize = 16;
/// Bytes that are read at once.
const INPUT: usize = 256 << 10;

/// A client.
#[derive(Debug)]
pub struct NbdClient {
    stream: UnixStream,
    requests: Vec<u8>,
    /// Requests whose replies have not come.
    open: u64,
    input: Vec<u8>,
    /// What of the input is not taken yet.
    from: usize,
    to: usize,
    bytes: u32,
    writes: bool,
}

impl NbdClient {
    /// Agrees on an export, of which it reads, or writes, so many bytes at a time.
    ///
    /// # Errors
    /// What is wrong with the socket or the server.
    pub fn connect(path: &Path, export: &str, bytes: u32, writes: bool) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut stream = UnixStream::connect(path).map_err(said)?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(said)?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).map_err(said)?;
        let name = export.as_bytes();
        // Both flags of the server are the client's as well: fixed newstyle, and no zeroes.
        let wanted = [&[0, 0, 0, 3], b"IHAVEOPT".as_slice(), &[0, 0, 0, 1]].concat();
        let length = (name.len() as u32).to_be_bytes();
        stream.write_all(&[&wanted, length.as_slice(), name].concat()).map_err(said)?;
        stream.read_exact(&mut [0; 10]).map_err(said)?;
        let (requests, input) = (Vec::new(), vec![0; INPUT]);
        Ok(Self { stream, requests, open: 0, input, from: 0, to: 0, bytes, writes })
    }

    /// Puts a request for what is at an offset to those that are sent next.
    pub fn submit(&mut self, offset: u64) {
        self.open += 1;
        self.requests.extend(REQUEST_MAGIC.to_be_bytes());
        self.requests.extend([0, 0, 0, self.writes.into()]);
        self.requests.extend([0; 8]);
        self.requests.extend(offset.to_be_bytes());
        self.requests.extend(self.bytes.to_be_bytes());
        if self.writes {
            self.requests.resize(self.requests.len() + self.bytes as usize, 1);
        }
    }

    /// Sends what was submitted.
    ///
    /// # Errors
    /// What is wrong with the socket.
    pub fn send(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.requests).map_err(|error| error.to_string())?;
        self.requests.clear();
        Ok(())
    }

    /// Waits for replies; how many came.
    ///
    /// # Errors
    /// What is wrong with the socket or a reply.
    pub fn wait(&mut self) -> Result<u64, String> {
        let whole = HEAD + if self.writes { 0 } else { self.bytes as usize };
        loop {
            let mut replies = 0;
            while self.to - self.from >= whole {
                let head = &self.input[self.from..][..8];
                if head[..4] != REPLY_MAGIC || head[4..] != [0; 4] {
                    return Err(format!("{head:?} is no reply, or one of an error"));
                }
                self.from += whole;
                replies += 1;
            }
            if replies > 0 {
                self.open = self.open.saturating_sub(replies);
                return Ok(replies);
            }
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            let read = self.stream.read(&mut self.input[self.to..]);
            match read.map_err(|error| error.to_string())? {
                0 => return Err("the server has gone".into()),
                read => self.to += read,
            }
        }
    }

    /// Leaves as the protocol has it, with nothing under way: nbdkit (1.32.5) ends by an assertion where one
    /// of its threads finds the client gone while others have replies to send. How many replies still came.
    ///
    /// # Errors
    /// What is wrong with the socket or a reply.
    pub fn leave(mut self) -> Result<u64, String> {
        let mut replies = 0;
        while self.open > 0 {
            replies += self.wait()?;
        }
        let head = [REQUEST_MAGIC.to_be_bytes(), [0, 0, 0, DISCONNECT]].concat();
        self.stream.write_all(&[head, vec![0; 20]].concat()).map_err(|error| error.to_string())?;
        Ok(replies)
    }
}
