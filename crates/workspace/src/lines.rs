//! Logs of one exec, a line of JSON for each entry, beside its other files: what it tried to reach,
//! and what it did. Bounded: a program that does the same for ever fills no disk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;

use glovebox_model::{Attempt, Effect, ExecId, ProjectId, Result, Stage};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::dir::from_io;
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Layout, Project};

const MODE: u32 = 0o600;

/// Which of the logs.
trait Kept: Serialize + DeserializeOwned {
    const SUFFIX: &'static str;
    /// Of one exec.
    const MOST_BYTES: u64;
}

impl Kept for Attempt {
    const SUFFIX: &'static str = ".network";
    const MOST_BYTES: u64 = 8 << 20;
}

impl Kept for Effect {
    const SUFFIX: &'static str = ".effects";
    const MOST_BYTES: u64 = 64 << 20;
}

/// Of logs that are only for looking on, and go with the events.
pub(crate) const FLEETING: &str = Attempt::SUFFIX;

/// The names of all logs of an exec.
pub(crate) fn names(exec: &ExecId) -> [String; 2] {
    [name::<Attempt>(exec), name::<Effect>(exec)]
}

fn name<T: Kept>(exec: &ExecId) -> String {
    format!(".{exec}{}", T::SUFFIX)
}

/// The writing end.
#[derive(Debug)]
pub struct Lines<T> {
    file: File,
    written: u64,
    of: PhantomData<fn(T)>,
}

pub type NetworkLog = Lines<Attempt>;
pub type EffectLog = Lines<Effect>;

impl<T: Serialize> Lines<T> {
    /// The place of its line. `None` when it was not kept: the log is full, or the disk.
    fn push(&mut self, entry: &T, most: u64) -> Option<(u64, u32)> {
        let mut line = serde_json::to_vec(entry).ok()?;
        line.push(b'\n');
        let size = line.len() as u64;
        if self.written + size > most {
            return None;
        }
        // At its place: what a full disk cut off is overwritten, and shifts nothing.
        self.file.write_all_at(&line, self.written).ok()?;
        let place = (self.written, u32::try_from(size).ok()?);
        self.written += size;
        Some(place)
    }
}

impl Lines<Attempt> {
    /// False when it was not kept.
    pub fn add(&mut self, attempt: &Attempt) -> bool {
        self.push(attempt, Attempt::MOST_BYTES).is_some()
    }
}

impl Lines<Effect> {
    /// Where it lies, if it was kept.
    pub fn add(&mut self, effect: &Effect) -> Option<(u64, u32)> {
        self.push(effect, Effect::MOST_BYTES)
    }
}

impl Project {
    /// Begins the log of an exec's attempts to get out.
    pub fn network_log(&self, exec: &ExecId) -> Result<NetworkLog> {
        self.lines(exec)
    }

    /// Begins the log of an exec's effects.
    pub fn effect_log(&self, exec: &ExecId) -> Result<EffectLog> {
        self.lines(exec)
    }

    fn lines<T: Kept>(&self, exec: &ExecId) -> Result<Lines<T>> {
        let file = self.shelf()?.create_name(&name::<T>(exec), MODE);
        let file = file.map_err(|error| error.at(Stage::Open))?;
        Ok(Lines {
            file,
            written: 0,
            of: PhantomData,
        })
    }
}

impl Layout {
    /// At most so many attempts, from a place in the log on, and the place after them. `None` when
    /// there is no log: the exec had no network, or it is long ago.
    pub fn network_log(
        &self,
        project: &ProjectId,
        exec: &ExecId,
        from: u64,
        most: usize,
    ) -> Result<Option<(Vec<Attempt>, u64)>> {
        self.lines(project, exec, from, most)
    }

    /// The same of effects. `None` when they were not captured.
    pub fn effect_log(
        &self,
        project: &ProjectId,
        exec: &ExecId,
        from: u64,
        most: usize,
    ) -> Result<Option<(Vec<Effect>, u64)>> {
        self.lines(project, exec, from, most)
    }

    /// The effect whose line lies at a place that its event names.
    pub fn effect_at(
        &self,
        project: &ProjectId,
        exec: &ExecId,
        (offset, length): (u64, u32),
    ) -> Result<Option<Effect>> {
        let Some(file) = self.open_lines::<Effect>(project, exec)? else {
            return Ok(None);
        };
        let mut line = vec![0; usize::try_from(length).unwrap_or(0)];
        match file.read_exact_at(&mut line, offset) {
            Ok(()) => Ok(serde_json::from_slice(&line).ok()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(reading(&error)),
        }
    }

    fn open_lines<T: Kept>(&self, project: &ProjectId, exec: &ExecId) -> Result<Option<File>> {
        let opened = self
            .shelf(project)
            .and_then(|shelf| shelf.open_file_name(&name::<T>(exec)));
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.at(Stage::Collect)),
        }
    }

    fn lines<T: Kept>(
        &self,
        project: &ProjectId,
        exec: &ExecId,
        from: u64,
        most: usize,
    ) -> Result<Option<(Vec<T>, u64)>> {
        let Some(file) = self.open_lines::<T>(project, exec)? else {
            return Ok(None);
        };
        read(file, from, most)
            .map(Some)
            .map_err(|error| reading(&error))
    }
}

fn reading(error: &io::Error) -> glovebox_model::Error {
    FsError::new("read", b"the log", from_io(error)).at(Stage::Collect)
}

fn read<T: DeserializeOwned>(mut file: File, from: u64, most: usize) -> io::Result<(Vec<T>, u64)> {
    file.seek(SeekFrom::Start(from))?;
    let mut lines = BufReader::new(file);
    let (mut entries, mut place) = (Vec::new(), from);
    let mut line = Vec::new();
    while entries.len() < most {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        // A line that is just being written is read the next time.
        if line.last() != Some(&b'\n') {
            break;
        }
        place += read as u64;
        entries.extend(serde_json::from_slice::<T>(&line));
    }
    Ok((entries, place))
}
