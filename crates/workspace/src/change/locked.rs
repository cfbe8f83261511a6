//! What a program closed to itself. It ran as the ordinary user who runs us, so it closed it to us as
//! well; but the layer is ours once the program has ended. Each file is opened for its owner, and the
//! mode that the program gave it is noted first: that one is told, and carried over.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;

use glovebox_model::ByteString;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, openat};

use crate::dir::{Dir, Order, Visit, WalkLimits, from_io, walk};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::stat::Kind;

const FILE: &str = "modes";
const UNLOCKING: &str = "open";

/// By path, of those that were opened.
#[derive(Debug, Default)]
pub(super) struct Modes(HashMap<Vec<u8>, u32>);

impl Modes {
    pub(super) fn of(&self, path: &[u8], now: u32) -> u32 {
        self.0.get(path).copied().unwrap_or(now)
    }

    pub(super) fn load(home: &Dir) -> FsResult<Self> {
        let file = match home.open_file_name(FILE) {
            Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(Self::default()),
            opened => opened?,
        };
        let failed = |error: &std::io::Error| FsError::new("read", FILE.as_bytes(), from_io(error));
        let mut modes = HashMap::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|error| failed(&error))?;
            // A line that was cut off was written before its file was opened.
            if let Ok((path, mode)) = serde_json::from_str::<(ByteString, u32)>(&line) {
                // The first is the program's own.
                modes.entry(path.into_bytes()).or_insert(mode);
            }
        }
        Ok(Self(modes))
    }

    /// Root reads everything as it is.
    pub(super) fn unlock(upper: &Dir, home: &Dir) -> FsResult<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let mut notes = None;
        let top = rustix::fs::fstat(upper).map_err(|errno| FsError::os("look at", b"", errno))?;
        let mut open = |at: BorrowedFd<'_>, name: &std::ffi::CStr, path: &[u8], mode: u32, kind| {
            let wanted = match kind {
                Kind::Directory => 0o700,
                Kind::File => 0o400,
                _ => return Ok(()),
            };
            if mode & wanted == wanted {
                return Ok(());
            }
            note(home, &mut notes, path, mode)?;
            let mode = Mode::from_raw_mode(mode | wanted);
            chmodat(at, name, mode, AtFlags::empty())
                .map_err(|errno| FsError::os(UNLOCKING, path, errno))
        };
        open(
            upper.as_fd(),
            c".",
            b"",
            top.st_mode & 0o777,
            Kind::Directory,
        )?;
        let limits = WalkLimits {
            depth: usize::MAX,
            path_bytes: usize::MAX,
            entries: u64::MAX,
            deadline: None,
        };
        let mut fault = None;
        let walked = walk(upper, limits, Order::AsRead, &mut |visit| {
            // What is skipped here is skipped by whoever reads it, too, and told there.
            let Visit::Entry(entry) = visit else {
                return ControlFlow::Continue(());
            };
            let (mode, kind) = (entry.stat.mode, entry.stat.kind);
            match open(entry.at.dir, entry.at.name, entry.path, mode, kind) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    fault = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        walked.map_err(|kind| FsError::new(UNLOCKING, b"", kind))?;
        fault.map_or(Ok(()), Err)
    }
}

fn note(home: &Dir, notes: &mut Option<File>, path: &[u8], mode: u32) -> FsResult<()> {
    let fault = |errno| FsError::os("note the mode of", path, errno);
    let file = match notes {
        Some(file) => file,
        None => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
            let made = openat(home, FILE, flags, Mode::RUSR | Mode::WUSR).map_err(fault)?;
            notes.insert(File::from(made))
        }
    };
    let path = ByteString::new(path).unwrap_or_default();
    let line = serde_json::to_string(&(path, mode)).unwrap_or_default();
    writeln!(file, "{line}").map_err(|error| FsError::new("note", b"", from_io(&error)))
}
