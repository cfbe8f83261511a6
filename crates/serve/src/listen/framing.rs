//! Where one request ends and the next begins, seen before the HTTP parser sees it. The parser is
//! lenient where another one in front of us may not be: it takes a bare line feed, drops a second
//! `Content-Length`, and prefers `Transfer-Encoding` to both. Here these are the end of the
//! connection, so that no two parsers can ever disagree about our requests.

use super::HEAD_BYTES;

/// Past the parser's own limit, which answers with a status of its own.
const GIVE_UP: usize = HEAD_BYTES * 2;

/// What the next byte belongs to.
#[derive(Debug)]
enum At {
    Head(Vec<u8>),
    /// So many bytes of a body are to come.
    Body(u64),
    /// A chunked body: its end is for the parser to find, and nothing may follow it. Or what is
    /// not HTTP any more, if the other protocol is agreed to.
    Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ambiguous;

#[derive(Debug)]
pub(super) struct Framing(At);

impl Framing {
    pub(super) fn new() -> Self {
        Self(At::Head(Vec::new()))
    }

    /// Inside a head: begun and not complete.
    pub(super) fn is_in_head(&self) -> bool {
        matches!(&self.0, At::Head(head) if !head.is_empty())
    }

    /// Whether no other request can follow on this connection.
    pub(super) fn is_last(&self) -> bool {
        matches!(self.0, At::Rest)
    }

    /// How many of these bytes, which come next, belong together and may be handed on.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Ambiguous> {
        match &mut self.0 {
            At::Rest => Ok(bytes.len()),
            At::Body(left) => {
                let count =
                    usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= count as u64;
                if *left == 0 {
                    self.0 = At::Head(Vec::new());
                }
                Ok(count)
            }
            At::Head(head) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let after_return = head.last() == Some(&b'\r');
                    if *byte == 0
                        || after_return != (*byte == b'\n')
                        || head.is_empty() && *byte == b'\r'
                    {
                        return Err(Ambiguous);
                    }
                    head.push(*byte);
                    if head.ends_with(b"\r\n\r\n") {
                        self.0 = body_of(head)?;
                        return Ok(index + 1);
                    }
                }
                if head.len() > GIVE_UP {
                    self.0 = At::Rest;
                }
                Ok(bytes.len())
            }
        }
    }
}

fn body_of(head: &[u8]) -> Result<At, Ambiguous> {
    let (mut length, mut chunked, mut leaves) = (None, false, false);
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(Ambiguous);
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            match number {
                Some(number) if digits && length.is_none() => length = Some(number),
                _ => return Err(Ambiguous),
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Ambiguous);
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") && value.eq_ignore_ascii_case(b"websocket")
        {
            leaves = true;
        }
    }
    match (length, chunked) {
        (Some(_), true) => Err(Ambiguous),
        (None, true) => Ok(At::Rest),
        (None | Some(0), false) if leaves => Ok(At::Rest),
        (None | Some(0), false) => Ok(At::Head(Vec::new())),
        (Some(length), false) => Ok(At::Body(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(text: &str) -> Result<Vec<usize>, Ambiguous> {
        let mut framing = Framing::new();
        let (mut rest, mut pieces) = (text.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let count = framing.take(rest)?;
            pieces.push(count);
            rest = &rest[count..];
        }
        Ok(pieces)
    }

    #[test]
    fn requests_are_handed_on_one_at_a_time() {
        let one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let two = "POST / HTTP/1.1\r\ncontent-LENGTH: 3\r\n\r\n";
        let pieces = feed(&format!("{two}abc{one}{one}")).unwrap();
        assert_eq!(pieces, [two.len(), 3, one.len(), one.len()]);
    }

    #[test]
    fn one_byte_at_a_time_is_the_same() {
        let text = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
        let mut framing = Framing::new();
        for byte in text.bytes() {
            assert_eq!(framing.take(&[byte]), Ok(1));
        }
        assert!(!framing.is_in_head() && !framing.is_last());
    }

    #[test]
    fn what_two_parsers_could_read_differently_is_refused() {
        for head in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ] {
            assert_eq!(feed(head), Err(Ambiguous), "{head:?}");
        }
    }

    #[test]
    fn nothing_follows_a_chunked_body() {
        let mut framing = Framing::new();
        let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert_eq!(framing.take(head), Ok(head.len()));
        assert!(framing.is_last());
    }
}
