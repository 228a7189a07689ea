//! Counters for Prometheus and all that read OpenMetrics: totals and histograms since the daemon began,
//! over HTTP on the loopback interface.
//!
//! `text.rs` writes them, out of one table. What is spoken of HTTP is the least: a GET is answered and the
//! connection closed.

mod text;

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use crate::hosts::Shared;

/// Clients at a time.
const CLIENTS_MAX: usize = 4;
/// The longest request.
const REQUEST_MAX: usize = 8 << 10;
/// The most lines of a request's head.
const HEADERS_MAX: usize = 64;
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where the counters are.
const PATH: &str = "/metrics";
/// What they are.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers who asks at an address, as long as the process lives; the address.
pub(crate) fn serve(address: SocketAddr, hosts: Shared) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let seats = Arc::new(());
    let accept = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seat = Arc::clone(&seats);
            // One is the thread's own.
            if Arc::strong_count(&seats) <= CLIENTS_MAX + 1 {
                let hosts = Arc::clone(&hosts);
                let talk = move || {
                    let _ = answer(stream, &hosts);
                    drop(seat);
                };
                drop(thread::Builder::new().name("metrics".into()).spawn(talk));
            }
        }
    };
    thread::Builder::new().name("metrics".into()).spawn(accept)?;
    Ok(address)
}

/// Answers a client once.
fn answer(mut stream: TcpStream, hosts: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let (status, body) = loop {
        let mut part = [0; 1024];
        let read = stream.read(&mut part)?;
        request.extend(&part[..read]);
        match asked(&request) {
            Some(Ok(())) => match text::all(hosts) {
                Ok(text) => break ("200 OK", text),
                Err(what) => break ("503 Service Unavailable", what),
            },
            Some(Err(status)) => break (status, String::new()),
            None if read == 0 || request.len() > REQUEST_MAX => {
                break ("400 Bad Request", String::new());
            }
            None => {}
        }
    };
    let kind = if status.starts_with("200") { TYPE } else { "text/plain; charset=utf-8" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

/// Whether a request asks for the counters, or what is said instead; `None` while it is not whole.
fn asked(request: &[u8]) -> Option<Result<(), &'static str>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Err(_) => Some(Err("400 Bad Request")),
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(_)) if parsed.method != Some("GET") => {
            Some(Err("405 Method Not Allowed"))
        }
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            Some(if path == PATH { Ok(()) } else { Err("404 Not Found") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_asked_is_told_apart() {
        let table = [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Some(Ok(()))),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", Some(Ok(()))),
            ("GET / HTTP/1.1\r\n\r\n", Some(Err("404 Not Found"))),
            ("POST /metrics HTTP/1.1\r\n\r\n", Some(Err("405 Method Not Allowed"))),
            ("GET /metrics HTTP/1.1\r\nHost", None),
            ("\u{1}\r\n\r\n", Some(Err("400 Bad Request"))),
        ];
        for (request, expected) in table {
            assert_eq!(asked(request.as_bytes()), expected, "{request}");
        }
    }

    proptest! {
        #[test]
        fn no_request_panics(bytes: Vec<u8>, start in prop::sample::select(vec!["", "GET /metrics "])) {
            let _ = asked(&[start.as_bytes(), &bytes].concat());
        }
    }
}
