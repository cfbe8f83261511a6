//! What happened to an exec, in order: one record of fixed size for each event, so that event N
//! lies at a known place. Output itself is in the stream's file; an event says which part of it.
//! The end is not here but in the exec's record, which is what counts; so it is told once.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use glovebox_model::{Error, ExecId, ProjectId, Result, Stage, Status, Stream};
use jiff::Timestamp;

use crate::dir::{Dir, from_io};
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Layout, Project};
use crate::lines;

const SIZE: usize = 32;
const STATE: u8 = 1;
const OUTPUT: u8 = 2;
const EFFECT: u8 = 3;
const MODE: u32 = 0o600;
pub(crate) const SUFFIX: &str = ".events";

/// One event as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    State {
        status: Status,
        /// How many were before it, when it had to wait.
        queue_position: Option<u64>,
    },
    /// Part of what a stream's file holds.
    Output {
        stream: Stream,
        offset: u64,
        length: u32,
    },
    /// The program went on writing, and its file was full.
    Truncated { stream: Stream },
    /// A line of the log of its effects.
    Effect { offset: u64, length: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalEntry {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Timestamp,
    pub happened: Happened,
}

/// The writing end.
#[derive(Debug)]
pub struct Journal {
    file: File,
    written: u64,
}

impl Journal {
    /// A journal that cannot be written must not stop what it is about; what is lost is only the
    /// account of it.
    pub fn add(&mut self, at: Timestamp, happened: Happened) {
        // At its place: what a full disk cut off is overwritten, and shifts nothing.
        let place = self.written * SIZE as u64;
        if self.file.write_all_at(&encode(at, happened), place).is_ok() {
            self.written += 1;
        }
    }

    pub fn written(&self) -> u64 {
        self.written
    }
}

/// The reading end; it may be read while it is written.
#[derive(Debug)]
pub struct JournalReader(File);

impl JournalReader {
    /// How many entries there are.
    pub fn length(&self) -> Result<u64> {
        let bytes = self.0.metadata().map_err(reading)?.len();
        Ok(bytes / SIZE as u64)
    }

    /// At most `most` entries after number `after`.
    pub fn read(&self, after: u64, most: usize) -> Result<Vec<JournalEntry>> {
        let mut buffer = vec![0; most * SIZE];
        let start = after.saturating_mul(SIZE as u64);
        if i64::try_from(start).is_err() {
            // No file is that long.
            return Ok(Vec::new());
        }
        let filled = fill(&self.0, &mut buffer, start).map_err(reading)?;
        let whole = buffer[..filled].chunks_exact(SIZE).zip(after + 1..);
        Ok(whole.map_while(|(bytes, seq)| decode(bytes, seq)).collect())
    }
}

fn fill(file: &File, buffer: &mut [u8], start: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], start + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn encode(at: Timestamp, happened: Happened) -> [u8; SIZE] {
    let (kind, what, length, place) = match happened {
        Happened::State {
            status,
            queue_position,
        } => {
            let number = Status::ALL.iter().position(|it| *it == status);
            let number = number.and_then(|it| u8::try_from(it).ok()).unwrap_or(0);
            (
                STATE,
                number,
                0,
                queue_position.map_or(0, |it| it.saturating_add(1)),
            )
        }
        Happened::Output {
            stream,
            offset,
            length,
        } => (OUTPUT, stream_number(stream), length, offset),
        Happened::Truncated { stream } => (OUTPUT, stream_number(stream), 0, 0),
        Happened::Effect { offset, length } => (EFFECT, 0, length, offset),
    };
    let mut bytes = [0; SIZE];
    bytes[0] = kind;
    bytes[1] = what;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&at.as_microsecond().to_le_bytes());
    bytes[16..24].copy_from_slice(&place.to_le_bytes());
    bytes
}

/// `None` for what we never wrote: a reader stops there.
fn decode(bytes: &[u8], seq: u64) -> Option<JournalEntry> {
    let number = |range: std::ops::Range<usize>| bytes.get(range)?.try_into().ok();
    let length = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let at = i64::from_le_bytes(number(8..16)?);
    let place = u64::from_le_bytes(number(16..24)?);
    let happened = match (bytes.first()?, bytes.get(1)?) {
        (&STATE, status) => Happened::State {
            status: *Status::ALL.get(usize::from(*status))?,
            queue_position: place.checked_sub(1),
        },
        (&OUTPUT, stream) => {
            let stream = match stream {
                0 => Stream::Stdout,
                1 => Stream::Stderr,
                _ => return None,
            };
            match length {
                0 => Happened::Truncated { stream },
                length => Happened::Output {
                    stream,
                    offset: place,
                    length,
                },
            }
        }
        (&EFFECT, 0) => Happened::Effect {
            offset: place,
            length,
        },
        _ => return None,
    };
    Some(JournalEntry {
        seq,
        at: Timestamp::from_microsecond(at).ok()?,
        happened,
    })
}

const fn stream_number(stream: Stream) -> u8 {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

fn name(exec: &ExecId) -> String {
    format!(".{exec}{SUFFIX}")
}

impl Project {
    /// Begins the journal of an exec, beside its other files. One that is there already is gone on
    /// with: its exec waited through a restart.
    pub fn journal(&self, exec: &ExecId) -> Result<Journal> {
        let shelf = self.shelf()?;
        let file = match shelf.create_name(&name(exec), MODE) {
            Err(error) if error.kind() == FsErrorKind::Exists => shelf.reopen_name(&name(exec)),
            made => made,
        };
        let file = file.map_err(|error| error.at(Stage::Open))?;
        let length = file.metadata().map_err(reading)?.len();
        let rest = length % SIZE as u64;
        if rest != 0 {
            // What a crash cut off would shift everything after it. Only then: cutting an empty
            // file to nothing makes ext4 write it out when it is closed.
            file.set_len(length - rest).map_err(reading)?;
        }
        Ok(Journal {
            written: length / SIZE as u64,
            file,
        })
    }
}

impl Layout {
    /// `None` when there is none: the exec ran without a server, or its journal is too old.
    pub fn journal(&self, project: &ProjectId, exec: &ExecId) -> Result<Option<JournalReader>> {
        let opened = self
            .shelf(project)
            .and_then(|shelf| shelf.open_file_name(&name(exec)));
        match opened {
            Ok(file) => Ok(Some(JournalReader(file))),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.at(Stage::Collect)),
        }
    }

    /// Of an exec that was not taken on after all.
    pub fn forget_journal(&self, project: &ProjectId, exec: &ExecId) -> Result<()> {
        let removed = self
            .shelf(project)
            .and_then(|shelf| shelf.remove_entry(&name(exec)));
        match removed {
            Err(error) if error.kind() != FsErrorKind::NotFound => Err(error.at(Stage::Open)),
            _ => Ok(()),
        }
    }

    /// Removes journals and network logs that were last written before `before`, but for those of execs
    /// that go on. Returns how many.
    pub fn forget_journals(
        &self,
        before: Timestamp,
        goes_on: &dyn Fn(&ExecId) -> bool,
    ) -> Result<usize> {
        const MOST: usize = 100_000;
        let mut removed = 0;
        for project in self.projects(MOST)? {
            let Ok(shelf) = self.shelf(&project) else {
                continue;
            };
            let forgotten = forget_in(&shelf, before, MOST, goes_on);
            removed += forgotten.map_err(|error| error.at(Stage::Collect))?;
        }
        Ok(removed)
    }
}

fn forget_in(
    shelf: &Dir,
    before: Timestamp,
    most: usize,
    goes_on: &dyn Fn(&ExecId) -> bool,
) -> Result<usize, FsError> {
    let mut removed = 0;
    for entry in shelf.list(most)?.entries {
        let name = entry.name.display();
        let old = entry.stat.modified.sec < before.as_second();
        let ours = name.ends_with(SUFFIX) || name.ends_with(lines::FLEETING);
        let exec = name.strip_prefix('.').and_then(|it| it.split('.').next());
        let exec = exec.and_then(|it| it.parse::<ExecId>().ok());
        if ours && old && exec.is_some_and(|exec| !goes_on(&exec)) {
            shelf.remove_entry(&name)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn reading(error: io::Error) -> Error {
    FsError::new("read", b"the journal", from_io(&error)).at(Stage::Collect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::ProjectId;
    use std::io::Write;

    fn fixture() -> (tempfile::TempDir, Layout, Project, ExecId) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::open(Dir::open_trusted(dir.path()).unwrap()).unwrap();
        let id: ProjectId = "p".parse().unwrap();
        let project = layout.project(&id).unwrap();
        (dir, layout, project, ExecId::from_random([7; 16]))
    }

    #[test]
    fn events_are_read_as_they_were_written_from_any_place() {
        let (_dir, layout, project, exec) = fixture();
        let mut journal = project.journal(&exec).unwrap();
        let at = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
        let all = [
            Happened::State {
                status: Status::Queued,
                queue_position: Some(0),
            },
            Happened::State {
                status: Status::Running,
                queue_position: None,
            },
            Happened::Output {
                stream: Stream::Stderr,
                offset: u64::MAX,
                length: u32::MAX,
            },
            Happened::Truncated {
                stream: Stream::Stdout,
            },
            Happened::Effect {
                offset: 7,
                length: 12,
            },
        ];
        for happened in all {
            journal.add(at, happened);
        }
        let reader = layout.journal(project.id(), &exec).unwrap().unwrap();
        for after in 0..=6_u8 {
            let read = reader.read(after.into(), 100).unwrap();
            let rest = all.iter().zip(1..).skip(after.into());
            let expected: Vec<_> = rest
                .map(|(happened, seq)| JournalEntry {
                    seq,
                    at,
                    happened: *happened,
                })
                .collect();
            assert_eq!(read, expected);
        }
        assert_eq!(reader.read(0, 2).unwrap().len(), 2);
        assert!(reader.read(u64::MAX, 2).unwrap().is_empty());
    }

    #[test]
    fn a_record_that_a_crash_cut_off_is_not_there_and_shifts_nothing() {
        let (dir, layout, project, exec) = fixture();
        let state = |status| Happened::State {
            status,
            queue_position: None,
        };
        project
            .journal(&exec)
            .unwrap()
            .add(Timestamp::UNIX_EPOCH, state(Status::Queued));
        let path = dir
            .path()
            .join(format!("projects/p/artifacts/.{exec}.events"));
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(&[STATE, 2, 0]).unwrap();
        let reader = layout.journal(project.id(), &exec).unwrap().unwrap();
        assert_eq!(reader.read(0, 9).unwrap().len(), 1);

        let mut journal = project.journal(&exec).unwrap();
        assert_eq!(journal.written(), 1);
        journal.add(Timestamp::UNIX_EPOCH, state(Status::Running));
        let read = reader.read(1, 9).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].happened, state(Status::Running));
    }

    #[test]
    fn old_journals_go_and_young_ones_stay() {
        let (_dir, layout, project, exec) = fixture();
        drop(project.journal(&exec).unwrap());
        assert_eq!(
            layout
                .forget_journals(Timestamp::UNIX_EPOCH, &|_| false)
                .unwrap(),
            0
        );
        let far = Timestamp::now() + jiff::SignedDuration::from_hours(1);
        assert_eq!(layout.forget_journals(far, &|it| *it == exec).unwrap(), 0);
        assert_eq!(layout.forget_journals(far, &|_| false).unwrap(), 1);
        assert!(layout.journal(project.id(), &exec).unwrap().is_none());
    }
}
