//! The person's own editor, on a file that only they can read.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use glovebox_model::{Code, Error, Result, Stage};

/// A program is an argument of another in the end.
const LONGEST: u64 = 128 << 10;

/// What is in the file afterwards.
pub(super) fn edit(text: &str, suffix: &str) -> Result<String> {
    let failed = |what: &str| Error::new(Code::InvalidArgument, Stage::Parse, what.to_owned());
    let mut file = tempfile::Builder::new()
        .prefix("glovebox-")
        .suffix(suffix)
        .tempfile()
        .map_err(|error| failed("cannot make a file to edit").caused_by(error))?;
    file.write_all(text.as_bytes())
        .map_err(|error| failed("cannot write the file to edit").caused_by(error))?;
    let words = editor();
    let mut words = words.iter();
    let Some(program) = words.next() else {
        return Err(failed("there is no editor").hint("name one in `EDITOR`"));
    };
    let terminal = || -> Result<Stdio> {
        let opened = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/tty");
        opened
            .map(Stdio::from)
            .map_err(|error| failed("there is no terminal").caused_by(error))
    };
    let ended = Command::new(program)
        .args(words)
        .arg(file.path())
        .stdin(terminal()?)
        .stdout(terminal()?)
        .stderr(terminal()?)
        .status();
    let shown = program.to_string_lossy();
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Err(failed(&format!(
                "`{shown}` ended with {status}; nothing is taken over"
            )));
        }
        Err(error) => {
            return Err(failed(&format!("cannot start the editor `{shown}`"))
                .caused_by(error)
                .hint("name another in `EDITOR`"));
        }
    }
    // By its name: many editors write a new file in the place of the old one.
    let mut after = String::new();
    let read = std::fs::File::open(file.path())
        .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut after));
    read.map_err(|error| failed("cannot read what was edited").caused_by(error))?;
    match after.len() as u64 > LONGEST {
        true => Err(failed("what was edited is longer than 128 KiB")),
        false => Ok(after),
    }
}

/// With its arguments: `EDITOR='code --wait'` is usual.
fn editor() -> Vec<OsString> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|it| !it.trim().is_empty());
    let named = named.unwrap_or_else(|| "vi".to_owned());
    named.split_whitespace().map(OsString::from).collect()
}
