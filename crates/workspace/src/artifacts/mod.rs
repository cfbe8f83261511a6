//! One exec's files. The sandbox sees a single directory, `artifacts/<exec_id>`, and may put
//! anything there under any name. What is ours (`stdout.txt`, `stderr.txt`, `meta.json`,
//! `manifest.json`) is written beside it, where the sandbox cannot see it, and moved in by rename
//! after everything in the sandbox is dead; whatever the guest left under those four names is
//! removed first and reported as dropped.

mod attributes;
mod collect;
mod manifest;
mod meta;

use std::ffi::CString;
use std::io::Write;

use glovebox_capture::Secrets;
use glovebox_model::{Code, Error, Exec, ExecId, Input, ProjectId, Result, Stage, Stream};
use rustix::fd::AsFd;
use rustix::fs::renameat;
use rustix::io::Errno;

use crate::change::{Marks, carry};
use crate::dir::{Dir, from_io, remove_name, temporary_name};
use crate::fault::{FsError, FsErrorKind};
use crate::input;
use crate::layout::{Project, WorkKind, artifacts_path};
use crate::sink::{Captured, Excerpt, OutputSink};
use crate::stat::Kind;
use crate::{lines, sealed};

pub use collect::Collected;
pub use manifest::{DropReason, Dropped, Drops, Manifest, ManifestEntry};

const MANIFEST: &str = "manifest.json";
const META: &str = "meta.json";
const OUR_MODE: u32 = 0o644;

/// What an exec's stream is kept as.
pub const fn stream_file(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout.txt",
        Stream::Stderr => "stderr.txt",
    }
}

/// Next to the exec's directory, so that its name is not the guest's to take.
pub(crate) fn spool_name(stream: Stream, exec: &ExecId) -> String {
    format!(".{exec}.{stream}")
}

pub(crate) const OURS: [&str; 4] = [
    stream_file(Stream::Stdout),
    stream_file(Stream::Stderr),
    META,
    MANIFEST,
];

#[derive(Debug)]
pub struct ExecFiles {
    exec: ExecId,
    project: ProjectId,
    work: WorkKind,
    shelf: Dir,
    artifacts: Dir,
    inputs: Option<Dir>,
    /// Relative to the state directory.
    inputs_path: String,
    /// Of this exec alone, shown instead.
    own_inputs: Option<Dir>,
}

impl ExecFiles {
    pub(crate) fn new(
        project: &Project,
        exec: &ExecId,
        shelf: Dir,
        artifacts: Dir,
        inputs: Option<Dir>,
    ) -> Self {
        Self {
            exec: exec.clone(),
            project: project.id().clone(),
            work: project.kind(),
            shelf,
            artifacts,
            inputs,
            inputs_path: project.inputs_path(),
            own_inputs: None,
        }
    }

    /// What others place is not seen by this exec.
    pub fn show_inputs(&mut self, own: Dir) {
        self.own_inputs = Some(own);
    }

    pub fn exec(&self) -> &ExecId {
        &self.exec
    }

    /// What the sandbox gets at `/workspace/artifacts`.
    pub fn artifacts(&self) -> &Dir {
        &self.artifacts
    }

    /// What the sandbox gets at `/workspace/inputs`, read-only. None when there are none.
    pub fn inputs(&self) -> Option<&Dir> {
        self.own_inputs.as_ref().or(self.inputs.as_ref())
    }

    /// Puts the inputs where the sandbox sees them.
    pub fn place_inputs(&self, inputs: &[Input]) -> Result<()> {
        for dir in [&self.inputs, &self.own_inputs].into_iter().flatten() {
            input::check(inputs)?.place(dir)?;
        }
        Ok(())
    }

    /// Relative to the state directory.
    pub fn path(&self) -> String {
        artifacts_path(&self.project, &self.exec)
    }

    /// Relative to the state directory; there once `settle` is done.
    pub fn stream_path(&self, stream: Stream) -> String {
        format!("{}/{}", self.path(), stream_file(stream))
    }

    /// Where a stream goes while the program runs. Once for each stream.
    pub fn sink(&self, stream: Stream, cap: u64) -> Result<OutputSink> {
        self.shelf
            .create_name(&spool_name(stream, &self.exec), OUR_MODE)
            .map(|file| OutputSink::new(file, cap, Excerpt::default()))
            .map_err(|error| error.at(Stage::Open))
    }

    /// After the last process of the exec is dead: takes stock of what it left, removes what is over
    /// `cap` bytes, masks what is secret, and puts the two streams beside it.
    pub fn settle(
        &self,
        stdout: &Captured,
        stderr: &Captured,
        cap: u64,
        masks: &Secrets,
    ) -> Result<Collected> {
        let collected = collect::collect(&self.artifacts, cap, masks).map_err(collecting)?;
        self.beside(collected, stdout, stderr)
    }

    /// The same for artifacts that lie in memory. What is over `cap` never reaches the disk.
    pub fn settle_from(
        &self,
        memory: &Dir,
        stdout: &Captured,
        stderr: &Captured,
        cap: u64,
        masks: &Secrets,
    ) -> Result<Collected> {
        let collected = collect::collect(memory, cap, masks).map_err(collecting)?;
        if let Err(error) = carry(memory, &self.artifacts, Marks::Left) {
            // What no list names is of no use to anybody.
            let _ = self.artifacts.clear();
            return Err(collecting(error));
        }
        self.beside(collected, stdout, stderr)
    }

    fn beside(
        &self,
        mut collected: Collected,
        stdout: &Captured,
        stderr: &Captured,
    ) -> Result<Collected> {
        for (stream, captured) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
            let spool = c_name(&spool_name(stream, &self.exec)).map_err(collecting)?;
            self.install(&spool, stream_file(stream))
                .map_err(collecting)?;
            collected.streams.push(ManifestEntry {
                path: name(stream_file(stream)),
                kind: Kind::File,
                size: captured.stored,
                hash: Some(captured.hash.clone()),
            });
        }
        Ok(collected)
    }

    /// Writes `meta.json`, then `manifest.json`, which lists everything else there is. The record
    /// has the names of environment variables and never their values, and so has the file.
    pub fn seal(&self, exec: &Exec, collected: Collected) -> Result<Manifest> {
        let inputs = match self.inputs {
            Some(_) => meta::Inputs::Mounted(&self.inputs_path),
            None => meta::Inputs::Absent,
        };
        let meta = meta::render(exec, self.work, inputs).map_err(unwritable)?;
        self.place(META, &meta).map_err(collecting)?;
        let manifest =
            collected.into_manifest(&self.exec, ManifestEntry::of_bytes(name(META), &meta));
        let text = serde_json::to_vec_pretty(&manifest).map_err(unwritable)?;
        self.place(MANIFEST, &text).map_err(collecting)?;
        Ok(manifest)
    }

    /// Removes everything of an exec that never started.
    pub fn discard(self) -> Result<()> {
        let spools = [Stream::Stdout, Stream::Stderr].map(|it| spool_name(it, &self.exec));
        let beside = spools.into_iter().chain(lines::names(&self.exec));
        for name in beside.chain([sealed::name(&self.exec)]) {
            match self.shelf.remove_entry(&name) {
                Err(error) if error.kind() != FsErrorKind::NotFound => {
                    return Err(collecting(error));
                }
                _ => {}
            }
        }
        self.shelf
            .remove_entry(self.exec.as_str())
            .map_err(collecting)
    }

    fn place(&self, target: &str, contents: &[u8]) -> Result<(), FsError> {
        let fault = |kind| FsError::new("write", target.as_bytes(), kind);
        let temporary = temporary_name().map_err(fault)?;
        let mut file = self
            .shelf
            .create_name(&temporary.to_string_lossy(), OUR_MODE)?;
        let placed = file
            .write_all(contents)
            .map_err(|error| fault(from_io(&error)))
            .and_then(|()| self.install(&temporary, target));
        if placed.is_err() {
            // Best effort: the first fault is the one to report.
            let _ = remove_name(self.shelf.as_fd(), &temporary);
        }
        placed
    }

    /// Moves our file in. A rename replaces a link or a file of the guest's; only a directory has
    /// to go first.
    fn install(&self, from: &CString, target: &str) -> Result<(), FsError> {
        const ATTEMPTS: usize = 8;
        let to = c_name(target)?;
        for _ in 0..ATTEMPTS {
            match renameat(&self.shelf, from, &self.artifacts, &to) {
                Ok(()) => return Ok(()),
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    remove_name(self.artifacts.as_fd(), &to)
                        .map_err(|kind| FsError::new("remove", target.as_bytes(), kind))?;
                }
                Err(errno) => return Err(FsError::os("write", target.as_bytes(), errno)),
            }
        }
        Err(FsError::new(
            "write",
            target.as_bytes(),
            FsErrorKind::Contended,
        ))
    }
}

fn name(text: &str) -> glovebox_model::ByteString {
    glovebox_model::ByteString::new(text.as_bytes()).unwrap_or_default()
}

fn c_name(text: &str) -> Result<CString, FsError> {
    CString::new(text).map_err(|_| FsError::os("write", text.as_bytes(), Errno::INVAL))
}

fn collecting(error: FsError) -> Error {
    error.at(Stage::Collect)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(
        Code::Internal,
        Stage::Collect,
        "cannot write the exec's description",
    )
    .caused_by(error)
}
