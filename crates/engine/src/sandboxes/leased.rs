//! A kept sandbox in the hands of one exec: to the path it is a sandbox like any other.

use glovebox_backend::{Ended, ExecDirs, Run, Sandbox, TeardownGuard};
use glovebox_model::{Code, Error, Isolation, Result, Stage};
use glovebox_workspace::Dir;

use super::slots::Turn;

#[derive(Debug)]
pub(crate) struct Leased {
    turn: Turn,
    isolation: Isolation,
    artifacts: Dir,
}

impl Leased {
    /// `turn` holds a sandbox that stands.
    pub(crate) fn new(turn: Turn, artifacts: Dir) -> Result<Self> {
        let isolation = match &turn.kept {
            Some(kept) => kept.isolation().clone(),
            None => return Err(fallen()),
        };
        Ok(Self {
            turn,
            isolation,
            artifacts,
        })
    }
}

impl Sandbox for Leased {
    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn run(mut self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard) {
        // Its workspace is there since it was made.
        let room = ExecDirs {
            work: None,
            inputs: None,
            artifacts: &self.artifacts,
        };
        self.turn.begin();
        let Some(kept) = &mut self.turn.kept else {
            return (Err(fallen()), TeardownGuard::nothing());
        };
        let ended = kept.run(room, run);
        // One that did not survive is not given to the next. What is left of a container stays: it
        // may stand up again.
        if !kept.is_alive() {
            let why = match &ended {
                Err(error) => error.to_string(),
                Ok(_) => "it ended together with an exec".to_owned(),
            };
            self.turn.change(|row| row.trouble = Some(why));
            self.turn.kept = None;
        }
        (ended, TeardownGuard::of(self.turn))
    }

    fn dismiss(self: Box<Self>) -> TeardownGuard {
        TeardownGuard::of(self.turn)
    }
}

fn fallen() -> Error {
    Error::new(Code::Internal, Stage::Run, "the sandbox does not stand")
}
