//! A workspace as it was on its first day. The directory itself stays, since sandboxes may have it
//! mounted; what is in it goes.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, ExecId, Result, Stage};

use super::{SeedLimits, SeedRoom, Seeded, seed};
use crate::dir::{Dir, Order, Skip, Visit, WalkLimits, walk};
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Project, WorkKind};
use crate::retention::Swept;

/// Of the look before: a mount that is not found in time stops the removal when it gets there.
const LOOK_ENTRIES: u64 = 10_000_000;
const LOOK_TIME: Duration = Duration::from_secs(30);

/// What goes beside the work directory's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reset {
    pub inputs: bool,
    pub artifacts: bool,
}

#[derive(Debug, Default)]
pub struct ResetDone {
    pub seeded: Seeded,
    pub artifacts: Swept,
}

impl Project {
    /// Empties the workspace and seeds it again. Cut off in the middle, it is done by doing it
    /// again. Refused while `running` says so of one of its execs.
    pub fn reset(
        &self,
        what: Reset,
        template: Option<(&Dir, SeedLimits, SeedRoom<'_>)>,
        running: &dyn Fn(&ExecId) -> bool,
    ) -> Result<ResetDone> {
        self.reset_sparing(what, template, running, &|_| false)
    }

    /// The same without the artifacts of execs that are `spared`.
    pub fn reset_sparing(
        &self,
        what: Reset,
        template: Option<(&Dir, SeedLimits, SeedRoom<'_>)>,
        running: &dyn Fn(&ExecId) -> bool,
        spared: &dyn Fn(&ExecId) -> bool,
    ) -> Result<ResetDone> {
        let work = match (self.kind(), self.work()) {
            (WorkKind::Managed, Some(work)) => work,
            (WorkKind::Adopted, _) => return Err(not_ours()),
            (WorkKind::Scratch, _) | (WorkKind::Managed, None) => return Err(nothing_on_disk()),
        };
        if let Some(exec) = self.execs()?.iter().find(|exec| running(exec)) {
            return Err(Error::new(
                Code::Busy,
                Stage::Open,
                format!("exec `{exec}` still works in workspace `{}`", self.id()),
            )
            .hint("wait until it ends, or cancel it"));
        }
        let inputs = match what.inputs {
            true => self.inputs_to_empty()?,
            false => Vec::new(),
        };
        for dir in inputs.iter().chain([work]) {
            refuse_mounts(dir)?;
        }
        for dir in inputs.iter().chain([work]) {
            dir.clear().map_err(emptying)?;
        }
        let artifacts = match what.artifacts {
            true => self.forget_artifacts(&|exec| running(exec) || spared(exec))?,
            false => Swept::default(),
        };
        let seeded = match template {
            Some((template, limits, room)) => seed(template, work, limits, room)?,
            None => Seeded::default(),
        };
        Ok(ResetDone { seeded, artifacts })
    }
}

/// Somebody's disk may be mounted there. Known before the first file is gone.
fn refuse_mounts(dir: &Dir) -> Result<()> {
    let limits = WalkLimits {
        depth: usize::MAX,
        path_bytes: usize::MAX,
        entries: LOOK_ENTRIES,
        deadline: Some(Instant::now() + LOOK_TIME),
    };
    let mut mounted = None;
    let looked = walk(dir, limits, Order::AsRead, &mut |visit| match visit {
        Visit::Skipped {
            entry,
            why: Skip::OtherFileSystem,
        } => {
            let kind = FsErrorKind::OtherFileSystem;
            mounted = Some(FsError::new("empty", entry.path, kind));
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    looked.map_err(|kind| emptying(FsError::new("empty", b"", kind)))?;
    mounted.map_or(Ok(()), |error| Err(emptying(error)))
}

fn emptying(error: FsError) -> Error {
    match error.kind() {
        FsErrorKind::OtherFileSystem | FsErrorKind::Os(rustix::io::Errno::BUSY) => error
            .at(Stage::Open)
            .hint("something is mounted in the workspace; unmount it and try again"),
        _ => error.at(Stage::Open),
    }
}

fn not_ours() -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Open,
        "the workspace is a directory of your own, which Glovebox does not empty",
    )
    .hint("use `--project ID` for a workspace that Glovebox keeps")
}

pub(super) fn nothing_on_disk() -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Open,
        "a scratch workspace has nothing on disk",
    )
    .hint("use `--project ID` for a workspace that Glovebox keeps")
}
