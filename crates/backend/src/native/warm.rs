//! A sandbox made ahead: it stands, locked, before anybody has asked, and is then one exec's alone.

use std::path::Path;
use std::time::Instant;

use glovebox_cage::Told;
use glovebox_model::{Isolation, Result};

use super::preload::{Interpreter, Preload};
use super::sandbox::{Native, Prepared, broken};
use super::standing::{Standing, silent};
use super::supervise::{Bound, Tenure};
use crate::sandbox::TeardownGuard;
use crate::spec::{ExecDirs, Spec};

#[derive(Debug)]
pub struct Warm {
    standing: Standing,
    /// A language that is started already and waits for its code.
    interpreter: Option<Interpreter>,
}

impl Native {
    /// Sends the plan of a sandbox for later, and what is started in it ahead. Root only.
    pub fn warm(self, spec: &Spec<'_>, state: &Path, preload: Option<Preload>) -> Result<Warm> {
        let standing = self.stand(spec, state)?;
        let interpreter = preload
            .map(|preload| Interpreter::start(preload, &standing.seat.handle))
            .transpose()?;
        Ok(Warm {
            standing,
            interpreter,
        })
    }
}

impl Warm {
    /// Waits until it stands and its interpreter waits for its code.
    pub fn settle(&mut self, deadline: Instant) -> Result<()> {
        self.standing.settle(deadline)?;
        if let Some(interpreter) = &mut self.interpreter {
            interpreter.settle(&self.standing, deadline)?;
        }
        self.standing.rest();
        Ok(())
    }

    /// Whether it still waits, once it was settled: a look that costs a call or two, before it is given
    /// away.
    pub fn is_alive(&mut self) -> bool {
        let interpreter_waits = |it: &Interpreter| silent(&[it.channel()]);
        self.standing.is_silent() && self.interpreter.as_ref().is_none_or(interpreter_waits)
    }

    /// Of the keeper, of pid 1 and of the interpreter, as far as they are there.
    pub fn pids(&self) -> Vec<i32> {
        let init = self.standing.init();
        let interpreter = self.interpreter.as_ref().and_then(Interpreter::pid);
        let keeper = Some(self.standing.seat.handle.keeper_pid());
        let all = [keeper, init, interpreter];
        all.into_iter().flatten().collect()
    }

    pub fn preload(&self) -> Option<&Preload> {
        self.interpreter.as_ref().map(Interpreter::preload)
    }

    pub fn isolation(&self) -> &Isolation {
        &self.standing.isolation
    }

    /// Gives it to an exec: its directories are on their way when this returns.
    pub fn bind(self, room: &ExecDirs<'_>) -> Result<Prepared> {
        let Some(init) = self.standing.init() else {
            return Err(broken(&"it was bound before it stood"));
        };
        // An interpreter has no order that could wait.
        let told = match self.interpreter {
            Some(_) => Told::Caller,
            None => Told::Init,
        };
        self.standing.attach(room, told)?;
        let bound = Bound {
            init,
            baseline: self.standing.baseline(),
            interpreter: self.interpreter.map(Box::new),
            tenure: Tenure::Single,
        };
        let Standing {
            seat, isolation, ..
        } = self.standing;
        Ok(Prepared::bound(seat, isolation, bound))
    }

    pub fn dismiss(self) -> TeardownGuard {
        let _ = self.standing.seat.handle.kill();
        TeardownGuard::of(self.standing.seat)
    }
}
