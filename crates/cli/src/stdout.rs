//! Standard output, written so that a reader who goes away ends a command quietly.

use std::io::{ErrorKind, Write};

use glovebox_model::{Code, Error, Result, Stage};
use serde::Serialize;

/// Whether anybody still reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Listening,
    /// As after `| head`: nothing more needs to be said, and nothing went wrong.
    Gone,
}

pub(crate) fn write(bytes: &[u8]) -> Result<Reader> {
    let mut out = std::io::stdout().lock();
    settled(out.write_all(bytes).and_then(|()| out.flush()))
}

pub(crate) fn text(text: &str) -> Result<Reader> {
    write(text.as_bytes())
}

/// One value and a newline.
pub(crate) fn json(value: &impl Serialize) -> Result<Reader> {
    let mut plain = serde_json::to_string(value).map_err(|error| {
        Error::new(Code::Internal, Stage::Close, "cannot print JSON").caused_by(error)
    })?;
    plain.push('\n');
    text(&glovebox_api::json::for_terminals(&plain))
}

pub(crate) fn settled(written: std::io::Result<()>) -> Result<Reader> {
    let Err(error) = written else {
        return Ok(Reader::Listening);
    };
    let code = match error.kind() {
        ErrorKind::BrokenPipe => return Ok(Reader::Gone),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::Internal,
    };
    Err(Error::new(code, Stage::Close, "cannot write the output").caused_by(error))
}
