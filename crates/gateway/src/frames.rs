//! What a program sends after a change to a websocket. A host may answer `101` without meaning it, and
//! would read requests behind it that were not judged; so only frames get through. No request can
//! be taken for one: the second byte of a client's frame is none of ASCII.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest head: two bytes, a length of eight, a mask of four.
const HEAD_MOST: usize = 14;

/// The program's side of a websocket. Its reader gets an error where no frame begins.
#[derive(Debug)]
pub(crate) struct Framed<S> {
    stream: S,
    frames: Frames,
}

impl<S> Framed<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            frames: Frames::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD_MOST],
    known: usize,
    /// Of the payload.
    left: u64,
}

impl Frames {
    /// Whether these bytes go on with frames of a client (RFC 6455, 5.2).
    fn are(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken =
                    usize::try_from(self.left).map_or(bytes.len(), |it| it.min(bytes.len()));
                self.left -= taken as u64;
                bytes = &bytes[taken..];
                continue;
            }
            self.head[self.known] = bytes[0];
            self.known += 1;
            bytes = &bytes[1..];
            let head = &self.head[..self.known];
            if !may_begin(head) {
                return false;
            }
            if let Some(length) = whole(head) {
                self.left = length;
                self.known = 0;
            }
        }
        true
    }
}

fn may_begin(head: &[u8]) -> bool {
    let (is_last, opcode) = (head[0] & 0x80 != 0, head[0] & 0x0f);
    let kind = match opcode {
        // What goes on is not compressed by itself.
        0 => head[0] & 0x70 == 0,
        1 | 2 => head[0] & 0x30 == 0,
        8..=10 => is_last && head[0] & 0x70 == 0,
        _ => false,
    };
    let masked = head.get(1).is_none_or(|it| it & 0x80 != 0);
    let short = head.get(1).is_none_or(|it| opcode < 8 || it & 0x7f <= 125);
    kind && masked && short
}

/// The length of the payload, once the head is complete.
fn whole(head: &[u8]) -> Option<u64> {
    let (length, digits) = match head.get(1)? & 0x7f {
        126 => (head.get(2..4)?, 2),
        127 => (head.get(2..10)?, 8),
        short => return (head.len() == 6).then_some(u64::from(short)),
    };
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (head.len() == 2 + digits + 4).then_some(length)
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        match self.frames.are(&buf.filled()[before..]) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::Error::other("what follows is no frame"))),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            long => {
                frame.push(0xfe);
                frame.extend(u16::try_from(long).unwrap().to_be_bytes());
            }
        }
        [&frame, &[0; 4][..], payload].concat()
    }

    #[test]
    fn only_a_clients_frames_get_through_however_they_are_cut() {
        let good = [
            frame(0x81, b"hello"),
            frame(0xc2, &[b'x'; 300]),
            frame(0x01, b""),
            frame(0x80, b"GET / HTTP/1.1\r\n\r\n"),
            frame(0x89, b"ping"),
            vec![0x82, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, b'x'],
        ]
        .concat();
        for size in [1, 2, 7, good.len()] {
            let mut frames = Frames::default();
            assert!(good.chunks(size).all(|it| frames.are(it)), "{size}");
            assert!(!frames.are(b"GET / HTTP/1.1\r\n"), "{size}");
        }
        for method in ["GET", "POST", "A", "BREW", "PATCH", "\r\nGET", "Q"] {
            let request = format!("{method} /x HTTP/1.1\r\n");
            assert!(!Frames::default().are(request.as_bytes()), "{method}");
        }
        for odd in [&[0x81, 0x05][..], &[0x83], &[0x09], &[0x89, 0xfe], &[0xb1]] {
            assert!(!Frames::default().are(odd), "{odd:?}");
        }
    }
}
