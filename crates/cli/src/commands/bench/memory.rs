//! What a sandbox holds while its program sleeps: everybody from the command down to the payload.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage as PathStage};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::command::{self, Inherited, Invocation};
use super::contender::{Contender, Role};
use super::interrupt::Interrupt;
use super::process::{self, Memory};
use super::stage::Payload;

const SLEEP: [&str; 2] = ["/bin/sleep", "60"];
const PATIENCE: Duration = Duration::from_secs(5);

/// The processes of one contender, outermost first. A daemon's are not among them.
#[derive(Debug, Serialize)]
pub(super) struct Holding {
    pub(super) name: &'static str,
    pub(super) processes: Vec<Memory>,
    /// Why there are none.
    pub(super) failure: Option<String>,
}

/// Ours and bubblewrap's: the ones whose processes are all our own children.
pub(super) fn look(contenders: &[Contender], interrupt: &Interrupt) -> Result<Vec<Holding>> {
    let mut found = Vec::new();
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
        let (processes, failure) = match asleep(&sleeping(invocation), interrupt) {
            Ok(processes) => (processes, None),
            Err(error) if error.code == Code::Canceled => return Err(error),
            Err(error) => (Vec::new(), Some(error.message)),
        };
        found.push(Holding {
            name: contender.name(),
            processes,
            failure,
        });
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
