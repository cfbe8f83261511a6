//! Memory of idle warm sandboxes, and of sandboxes whose program sleeps, from the command down to the
//! payload.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use glovebox_engine::Spawner;
use glovebox_model::{Code, Error, Result, Stage};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::command::{self, Inherited, Invocation};
use crate::contender::{Contender, Role};
use crate::interrupt::Interrupt;
use crate::payload::Payload;
use crate::peer::Peer;
use crate::process::{self, ProcessMemory};
use crate::setup::Setup;
use crate::warm::{self, Preparation};

const SLEEP: [&str; 2] = ["/bin/sleep", "60"];
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes of one contender, outermost first. A daemon's are not among them.
#[derive(Debug, Serialize)]
pub struct MemoryUse {
    pub name: &'static str,
    pub processes: Vec<ProcessMemory>,
    /// Of all of them.
    pub private_bytes: u64,
    /// The most that it should be.
    pub aim_bytes: Option<u64>,
    /// Why there are none.
    pub failure: Option<String>,
}

impl MemoryUse {
    fn new(
        name: &'static str,
        aim_bytes: Option<u64>,
        measured: Result<Vec<ProcessMemory>>,
    ) -> Self {
        let (processes, failure) = match measured {
            Ok(processes) => (processes, None),
            Err(error) => {
                let causes = error.causes.iter();
                let all: Vec<&str> = std::iter::once(&error.message)
                    .chain(causes)
                    .map(String::as_str)
                    .collect();
                (Vec::new(), Some(all.join(": ")))
            }
        };
        Self {
            name,
            private_bytes: processes.iter().map(|it| it.private_bytes).sum(),
            processes,
            aim_bytes,
            failure,
        }
    }

    pub fn is_met(&self) -> Option<bool> {
        let aim = self.aim_bytes.filter(|_| self.failure.is_none())?;
        Some(self.private_bytes <= aim)
    }
}

/// Idle warm sandboxes, then `glovebox run` and bubblewrap with a program that sleeps: the sandboxes
/// whose processes are all children of this one.
pub(crate) fn measure(
    setup: &Setup,
    spawner: &Spawner,
    contenders: &[Contender],
    interrupt: &Interrupt,
) -> Result<Vec<MemoryUse>> {
    let mut found = Vec::new();
    for contender in contenders {
        let aim = match (contender.role, contender.payload) {
            (Role::Warm, Payload::True) => Some((Preparation::Plain, Some(200 << 10))),
            (Role::Interpreter, Payload::Python) => {
                Some((Preparation::Interpreter, Some(12 << 20)))
            }
            (Role::Interpreter, Payload::Node) => Some((Preparation::Interpreter, None)),
            _ => None,
        };
        if let Some((preparation, aim_bytes)) = aim {
            interrupt.check()?;
            let measured = warm::idle_memory(setup, spawner, preparation, contender.payload);
            found.push(MemoryUse::new(contender.name(), aim_bytes, measured));
        }
    }
    for contender in contenders {
        let is_local = matches!(contender.role, Role::Run | Role::Peer(Peer::Bwrap));
        let Some(invocation) = contender.invocation() else {
            continue;
        };
        if !is_local || contender.payload != Payload::True {
            continue;
        }
        let measured = match sleeping_memory(&with_sleep(invocation), interrupt) {
            Err(error) if error.code == Code::Canceled => return Err(error),
            measured => measured,
        };
        found.push(MemoryUse::new(contender.name(), None, measured));
    }
    Ok(found)
}

/// The same command with `sleep` as its program, which is the last word.
fn with_sleep(invocation: &Invocation) -> Invocation {
    let mut argv = invocation.argv.clone();
    argv.pop();
    argv.extend(SLEEP.map(OsString::from));
    let inherited = invocation.inherited.as_ref().map(|it| Inherited {
        file: it.file.clone(),
        position: it.position,
    });
    Invocation {
        argv,
        expected: "",
        environment: invocation.environment,
        directory: invocation.directory.clone(),
        inherited,
        container: None,
    }
}

fn sleeping_memory(invocation: &Invocation, interrupt: &Interrupt) -> Result<Vec<ProcessMemory>> {
    let mut child = invocation.start()?;
    let root = i32::try_from(child.id()).unwrap_or(0);
    let deadline = Instant::now() + START_TIMEOUT;
    let measured = loop {
        if let Err(canceled) = interrupt.check() {
            break Err(canceled);
        }
        let tree = process::tree(root);
        if tree.iter().any(|pid| process::is_asleep(*pid, "sleep")) {
            break Ok(tree.into_iter().filter_map(process::memory).collect());
        }
        if Instant::now() > deadline {
            let message = "its sandbox does not come up";
            break Err(Error::new(Code::SetupFailed, Stage::Run, message));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // SIGTERM first, so that it removes its sandbox itself; `wait` kills it if it does not end.
    if let Some(pid) = Pid::from_raw(root) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let ended = command::wait(&mut child, interrupt);
    let memory = measured?;
    ended?;
    Ok(memory)
}
