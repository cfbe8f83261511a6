//! Reading a value: from a file, from standard input, or from a terminal that does not show it.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use glovebox_model::{Code, Error, Result, SecretName, Stage};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use zeroize::Zeroizing;

/// More than any value may have, so that one that is too long is seen as such.
const ROOM: usize = (64 << 10) + 8;

/// What was read, and whether a newline was left out.
pub(super) struct Given {
    pub(super) value: Zeroizing<Vec<u8>>,
    pub(super) trimmed: bool,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("cannot read the value from {what}"),
    )
    .caused_by(error)
}

pub(super) fn read(name: &SecretName, file: Option<&Path>, keep_newline: bool) -> Result<Given> {
    let mut value = match file {
        Some(path) if path != Path::new("-") => {
            let what = format!("`{}`", path.display());
            let file = File::open(path).map_err(|error| failed(&what, &error))?;
            whole(file).map_err(|error| failed(&what, &error))?
        }
        _ if std::io::stdin().is_terminal() => {
            let value = typed(name).map_err(|error| failed("the terminal", &error))?;
            return Ok(Given {
                value,
                trimmed: false,
            });
        }
        _ => whole(std::io::stdin().lock()).map_err(|error| failed("standard input", &error))?,
    };
    let trimmed = !keep_newline && value.ends_with(b"\n");
    if trimmed {
        let end = value.len() - if value.ends_with(b"\r\n") { 2 } else { 1 };
        value.truncate(end);
    }
    Ok(Given { value, trimmed })
}

/// Room from the start: a buffer that grows leaves copies behind.
fn whole(source: impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut value = Zeroizing::new(Vec::with_capacity(ROOM));
    source.take(ROOM as u64).read_to_end(&mut value)?;
    Ok(value)
}

/// Until it is dropped, the terminal shows nothing that is typed, and gives every key at once:
/// Ctrl-C must not end this process while nothing is shown.
struct Quiet {
    before: Termios,
}

impl Quiet {
    fn new() -> std::io::Result<Self> {
        let before = rustix::termios::tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
        let _ = writeln!(std::io::stderr());
    }
}

fn typed(name: &SecretName) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let _ = write!(std::io::stderr(), "the value of `{name}` (not shown): ");
    let _quiet = Quiet::new()?;
    let mut value = Zeroizing::new(Vec::with_capacity(ROOM));
    let mut key = Zeroizing::new([0]);
    let mut stdin = std::io::stdin().lock();
    loop {
        stdin.read_exact(&mut *key)?;
        match key[0] {
            b'\n' | b'\r' => return Ok(value),
            // Ctrl-C, and Ctrl-D before anything was typed.
            3 => return Err(std::io::Error::other("canceled")),
            4 if value.is_empty() => return Err(std::io::Error::other("canceled")),
            4 => return Ok(value),
            // Backspace, in both of its forms.
            8 | 127 => {
                value.pop();
            }
            // Ctrl-U.
            21 => value.clear(),
            byte if value.len() < ROOM => value.push(byte),
            _ => {}
        }
    }
}
