//! What a sandbox holds while its program sleeps, everybody from the command down to the payload;
//! and what one holds that waits for its program.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use glovebox_cage::{SpawnError, Spawner};
use glovebox_model::{Code, Error, Result, Stage as PathStage};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::command::{self, Inherited, Invocation};
use super::contender::{Contender, Role};
use super::interrupt::Interrupt;
use super::native;
use super::process::{self, Memory};
use super::stage::{Payload, Stage};
use super::standing::{self, Ahead};

const SLEEP: [&str; 2] = ["/bin/sleep", "60"];
pub(super) type Spawned = std::result::Result<Spawner, SpawnError>;

const PATIENCE: Duration = Duration::from_secs(5);

/// The processes of one contender, outermost first. A daemon's are not among them.
#[derive(Debug, Serialize)]
pub(super) struct Holding {
    pub(super) name: &'static str,
    pub(super) processes: Vec<Memory>,
    /// Of all of them.
    pub(super) private_bytes: u64,
    /// The most that it should be.
    pub(super) aim_bytes: Option<u64>,
    /// Why there are none.
    pub(super) failure: Option<String>,
}

impl Holding {
    fn new(name: &'static str, aim_bytes: Option<u64>, looked: Result<Vec<Memory>>) -> Self {
        let (processes, failure) = match looked {
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

    pub(super) fn is_met(&self) -> Option<bool> {
        let aim = self.aim_bytes.filter(|_| self.failure.is_none())?;
        Some(self.private_bytes <= aim)
    }
}

/// Sandboxes that wait, then ours and bubblewrap's with a program that sleeps: the ones whose
/// processes are all our own children.
pub(super) fn look(
    stage: &Stage,
    spawner: Option<&Spawned>,
    contenders: &[Contender],
    interrupt: &Interrupt,
) -> Result<Vec<Holding>> {
    let mut found = Vec::new();
    for contender in contenders {
        let aim = match (contender.role, contender.payload) {
            (Role::Warm, Payload::True) => Some((Ahead::Plain, Some(200 << 10))),
            (Role::Interpreter, Payload::Python) => Some((Ahead::Interpreter, Some(12 << 20))),
            (Role::Interpreter, Payload::Node) => Some((Ahead::Interpreter, None)),
            _ => None,
        };
        if let Some((ahead, aim_bytes)) = aim {
            interrupt.check()?;
            let looked = match spawner {
                Some(Ok(spawner)) => standing::idle(stage, spawner, ahead, contender.payload),
                Some(Err(error)) => Err(native::failed(error)),
                None => continue,
            };
            found.push(Holding::new(contender.name(), aim_bytes, looked));
        }
    }
    for contender in contenders {
        let local = matches!(
            contender.role,
            Role::Run | Role::Peer(super::peer::Peer::Bwrap)
        );
        let Some(invocation) = contender.invocation() else {
            continue;
        };
        if !local || contender.payload != Payload::True {
            continue;
        }
        let looked = match asleep(&sleeping(invocation), interrupt) {
            Err(error) if error.code == Code::Canceled => return Err(error),
            looked => looked,
        };
        found.push(Holding::new(contender.name(), None, looked));
    }
    Ok(found)
}

/// The same command with another payload, which is the last word.
fn sleeping(invocation: &Invocation) -> Invocation {
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
        within: None,
    }
}

fn asleep(invocation: &Invocation, interrupt: &Interrupt) -> Result<Vec<Memory>> {
    let mut child = invocation.start()?;
    let root = i32::try_from(child.id()).unwrap_or(0);
    let deadline = Instant::now() + PATIENCE;
    let looked = loop {
        if let Err(canceled) = interrupt.check() {
            break Err(canceled);
        }
        let family = process::family(root);
        if family.iter().any(|pid| process::sleeps_as(*pid, "sleep")) {
            break Ok(family.into_iter().filter_map(process::memory).collect());
        }
        if Instant::now() > deadline {
            let message = "its sandbox does not come up";
            break Err(Error::new(Code::SetupFailed, PathStage::Run, message));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // Politely: it takes its sandbox down itself. Should it not, waiting ends it.
    if let Some(pid) = Pid::from_raw(root) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let ended = command::wait(&mut child, interrupt);
    let memory = looked?;
    ended?;
    Ok(memory)
}
