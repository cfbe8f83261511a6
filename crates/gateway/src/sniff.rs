//! What a connection speaks, by the first bytes that its client sends. TLS shows its name; plain
//! HTTP is read request by request; all else is bytes.

use std::time::Duration;

use rustls::server::Acceptor;
use tokio::time::{Instant, timeout_at};

use crate::downstream::Near;

/// Once something was sent, the rest of a handshake or of a line must follow within this.
const WHOLE: Duration = Duration::from_secs(10);
/// A ClientHello with post-quantum keys has under 2 KiB; a request line of 16 KiB is refused by
/// most servers.
const TLS_MOST: usize = 64 * 1024;
const LINE_MOST: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum First {
    /// Nothing was sent in time.
    Nothing,
    /// The client has closed its side without a byte.
    End,
    /// The name that the handshake asks for.
    Tls(Option<String>),
    Http,
    /// HTTP/2 in the clear: requests for any host share it, and nothing here reads it.
    Http2,
    /// It begins with a method, and its line names no version. Servers take that for HTTP/0.9;
    /// other protocols have such lines too.
    Bare,
    Other,
    /// It begins like something that must be read, and cannot be.
    Unreadable(&'static str),
}

/// What the bytes so far can be.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    More,
    Tls,
    Http,
    Http2,
    Bare,
    Other,
}

/// Waits for the first byte for as long as `patience`. May be dropped while it waits.
pub(crate) async fn sniff(near: &mut Near, patience: Duration) -> std::io::Result<First> {
    if near.ahead().is_empty() {
        match timeout_at(Instant::now() + patience, near.fill()).await {
            Err(_) => return Ok(First::Nothing),
            Ok(filled) => {
                if filled? == 0 {
                    return Ok(First::End);
                }
            }
        }
    }
    let deadline = Instant::now() + WHOLE;
    let mut handshake = Handshake::default();
    loop {
        match look(near.ahead()) {
            Look::Http => return Ok(First::Http),
            Look::Http2 => return Ok(First::Http2),
            Look::Bare => return Ok(First::Bare),
            Look::Other => return Ok(First::Other),
            Look::Tls => {
                if let Some(first) = handshake.read(near.ahead()) {
                    return Ok(first);
                }
            }
            Look::More if near.ahead().len() > LINE_MOST => {
                return Ok(First::Unreadable("its first line does not end"));
            }
            Look::More => {}
        }
        match timeout_at(deadline, near.fill()).await {
            Err(_) => return Ok(First::Unreadable("its beginning does not come whole")),
            Ok(filled) => {
                if filled? == 0 {
                    return Ok(First::Unreadable("it ends before its beginning is whole"));
                }
            }
        }
    }
}

/// A handshake that is read as it comes.
#[derive(Default)]
struct Handshake {
    acceptor: Acceptor,
    taken: usize,
}

impl Handshake {
    fn read(&mut self, bytes: &[u8]) -> Option<First> {
        let unreadable = First::Unreadable("its TLS handshake cannot be read");
        if bytes.len() > TLS_MOST {
            return Some(unreadable);
        }
        while let Some(mut rest) = bytes.get(self.taken..).filter(|it| !it.is_empty()) {
            match self.acceptor.read_tls(&mut rest) {
                Ok(0) | Err(_) => return Some(unreadable),
                Ok(read) => self.taken += read,
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let name = accepted.client_hello().server_name().map(str::to_owned);
                    return Some(First::Tls(name));
                }
                Err(_) => return Some(unreadable),
            }
        }
        None
    }
}

fn look(bytes: &[u8]) -> Look {
    match bytes {
        [] | [0x16] => return Look::More,
        [0x16, 0x03, ..] => return Look::Tls,
        // The hello of the second version of SSL, which names nobody: read as one that cannot be.
        [0x80..=0xff, _, 0x01, 0x03, ..] => return Look::Tls,
        _ => {}
    }
    // Servers skip empty lines before a request.
    let start = bytes.iter().position(|it| !matches!(it, b'\r' | b'\n'));
    let Some(line) = start.and_then(|at| bytes.get(at..)) else {
        return Look::More;
    };
    let method = line.iter().position(|it| !is_token(*it));
    match method.map(|at| line[at]) {
        None => return Look::More,
        Some(b' ' | b'\t') => {}
        // Servers take more for a space than we do, so a method is waited for to its line's end.
        Some(_) if is_method(&line[..method.unwrap_or(0)]) => {}
        Some(_) => return Look::Other,
    }
    let Some(end) = memchr::memchr(b'\n', line) else {
        return Look::More;
    };
    let line_as_sent = &line[..end];
    let line = line_as_sent.to_ascii_uppercase();
    if memchr::memmem::find(&line, b"HTTP/").is_none() {
        return match is_bare(line_as_sent) {
            true => Look::Bare,
            false => Look::Other,
        };
    }
    match line.starts_with(b"PRI ") {
        true => Look::Http2,
        false => Look::Http,
    }
}

/// Of a request that any server would read.
fn is_method(word: &[u8]) -> bool {
    const METHODS: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
    ];
    METHODS
        .iter()
        .any(|it| word.eq_ignore_ascii_case(it.as_bytes()))
}

/// Whether a line without a version may be taken for a request. Any `GET` is one to some servers;
/// in other protocols a word like a method is not followed by a path.
fn is_bare(line: &[u8]) -> bool {
    let end = line.iter().position(|it| !is_token(*it));
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    word == b"GET" || (is_method(word) && rest.trim_ascii_start().starts_with(b"/"))
}

/// What a method may be made of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_is_spoken() {
        for (bytes, seen) in [
            (&b"GET / HTTP/1.1\r\n"[..], Look::Http),
            (b"\r\n\r\nGET / HTTP/1.1\r\n", Look::Http),
            (b"get  /  http/1.0\n", Look::Http),
            (b"GET\t/ HTTP/1.1\r\n", Look::Http),
            (b"GET /\xff HTTP/1.1\r\n", Look::Http),
            (b"X-ODD! / HTTP/1.1\r\n", Look::Http),
            (b"PRI * HTTP/2.0\r\n", Look::Http2),
            (b"GET / HT", Look::More),
            (b"GE", Look::More),
            (b"\r\n", Look::More),
            (b"", Look::More),
            (b"\x16", Look::More),
            (b"\x16\x03\x01", Look::Tls),
            (b"GET /\r\n", Look::Bare),
            (b"GET key\r\n", Look::Bare),
            (b"post\t/x\n", Look::Bare),
            (b"get key\r\n", Look::Other),
            (b"DELETE key\r\n", Look::Other),
            (b"SSH-2.0-x\r\n", Look::Other),
            (b"\x00\x00\x00\x08", Look::Other),
            (b"*1\r\n$4\r\nPING\r\n", Look::Other),
            (b"PING\r\n", Look::Other),
        ] {
            let shown = bytes.escape_ascii().to_string();
            assert_eq!(look(bytes), seen, "{shown}");
        }
    }

    #[test]
    fn a_handshake_that_is_none_is_unreadable() {
        let mut handshake = Handshake::default();
        let bytes = [&[0x16, 3, 1, 0, 4, 1, 0, 0, 0][..], &[0; 20]].concat();
        assert!(matches!(handshake.read(&bytes), Some(First::Unreadable(_))));
        // Only beginnings of a handshake are waited for.
        assert_eq!(Handshake::default().read(&[0x16, 3, 1, 0, 200, 1]), None);
    }
}
