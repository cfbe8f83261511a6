//! An answer whose body is read with limits: on what comes over the wire, on what it decodes to,
//! and on how much larger it gets.

use std::fmt;

use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use tokio::time::{Instant, timeout_at};

use super::coding::{Coding, Decoder};
use super::exchange::{AnswerSource, Driver};
use crate::refusal::{Refusal, RefusalCode};

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub via: AnswerSource,
    body: Incoming,
    deadline: Instant,
    /// Kept for as long as something is read.
    _driver: Driver,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub bytes: Vec<u8>,
    /// Before decoding.
    pub wire_bytes: u64,
}

impl Answer {
    pub(super) fn new(
        response: Response<Incoming>,
        driver: Driver,
        via: AnswerSource,
        deadline: Instant,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            via,
            body,
            deadline,
            _driver: driver,
        }
    }

    /// The header, if it is there once and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let first = all.next()?;
        match all.next() {
            None => first.to_str().ok(),
            Some(_) => None,
        }
    }

    /// The next piece as it comes over the wire, coded as it is. The caller counts.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let frame = timeout_at(self.deadline, self.body.frame());
            let frame = frame.await.map_err(|_| {
                Refusal::new(
                    RefusalCode::ReadTimeout,
                    "the body of the answer did not come whole in time",
                )
            })?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(Refusal::new(
                        RefusalCode::ReadTimeout,
                        format!("the body of the answer broke off: {error}"),
                    ));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Ok(Some(bytes)),
                    // Trailers say nothing that is asked for.
                    Err(_) => {}
                },
            }
        }
    }

    /// The whole body, decoded, at most `most` bytes before and after.
    pub async fn read(mut self, most: usize) -> Result<Body, Refusal> {
        let mut decoder = Decoder::new(self.coding()?, most)?;
        // What says itself that it is too large is not read at all.
        if self.body.size_hint().lower() > most as u64 {
            return Err(too_large(most));
        }
        let mut wire_bytes = 0u64;
        while let Some(bytes) = self.chunk().await? {
            wire_bytes += bytes.len() as u64;
            if wire_bytes > most as u64 {
                return Err(too_large(most));
            }
            decoder.write(&bytes)?;
        }
        Ok(Body {
            bytes: decoder.finish()?,
            wire_bytes,
        })
    }

    /// The begin of the body, decoded, as far as it can be had.
    pub(crate) async fn read_begin(mut self, most: usize) -> Result<Vec<u8>, Refusal> {
        let mut decoder = Decoder::new(self.coding()?, most)?;
        let mut wire_bytes = 0;
        while let Some(bytes) = self.chunk().await? {
            wire_bytes += bytes.len();
            if decoder.write(&bytes).is_err() || wire_bytes > most {
                break;
            }
        }
        Ok(decoder.so_far())
    }

    fn coding(&self) -> Result<Coding, Refusal> {
        let mut found = Coding::Identity;
        for value in self.headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| unknown_coding())?;
            for name in value.split(',').map(str::trim).filter(|it| !it.is_empty()) {
                let coding = Coding::named(name).ok_or_else(unknown_coding)?;
                if coding == Coding::Identity {
                    continue;
                }
                if found != Coding::Identity {
                    return Err(Refusal::new(
                        RefusalCode::DecodeError,
                        "the body is coded more than once, and one coding is taken off",
                    ));
                }
                found = coding;
            }
        }
        Ok(found)
    }
}

fn unknown_coding() -> Refusal {
    Refusal::new(
        RefusalCode::DecodeError,
        "the coding of the body is none of `gzip`, `deflate`, `br`, `zstd`",
    )
}

pub(super) fn too_large(most: usize) -> Refusal {
    Refusal::new(
        RefusalCode::ResponseTooLarge,
        format!("the body has more than {most} bytes"),
    )
    .hint("ask for something smaller, or for more with `max_bytes`")
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("via", &self.via)
            .finish_non_exhaustive()
    }
}
