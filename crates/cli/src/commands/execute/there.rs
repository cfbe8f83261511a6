//! A run at a server: sent once, followed to its end, and told as one in this process is.

use std::io::Read;
use std::os::fd::OwnedFd;

use glovebox_api::{SkillAnswer, Target};
use glovebox_model::{
    ApprovalId, ByteString, Code, Exec, ExecId, Placement, Program, Result, Status, WorkspaceRef,
};
use serde_json::{Map, Value};

use super::{Live, call, invalid};
use crate::args::{Global, RunOptions};
use crate::interrupt::Asker;
use crate::{interrupt, render};
use glovebox_api::client::{Audience, Client, Parting};
use glovebox_api::{ExecRequest, SkillCallRequest};

/// What the API reads of one exec, inputs and all.
const BODY_MOST: usize = 16 << 20;

/// `None` when we were told to leave before its end.
pub(super) fn run(
    global: &Global,
    remote: &Client,
    options: RunOptions,
    program: Program,
) -> Result<Option<Exec>> {
    if !options.place.toolchain.is_empty() {
        return Err(invalid(
            "`--toolchain` shows interpreters of this machine, not of a server",
        ));
    }
    let (reads_stdin, no_wait) = (options.exec.stdin, options.exec.no_wait);
    let mut call = call(options, program)?;
    let of_nobody = matches!(
        (&call.workspace, &call.placement),
        (WorkspaceRef::Scratch, Placement::Fresh)
    );
    if of_nobody && call.ids.conversation_id.is_some() {
        return Err(
            invalid("a server works on a conversation's own workspace, which is kept")
                .hint("name a workspace with `--project ID`, or leave out `--conversation`"),
        );
    }
    // On whose behalf is for the token to say.
    call.ids.user_id = None;
    // What cannot be sent is said before anybody types a line of input for it.
    let stdin = match (&call.workspace, reads_stdin) {
        (WorkspaceRef::Adopted(_), _) | (_, false) => None,
        (_, true) => Some(read_stdin()?),
    };
    let request = ExecRequest::of(call, stdin)?;
    let (presses, asker) = interrupt::presses()?;
    let taken = submit(remote, || remote.submit(&request, &presses))?;
    if is_left(global, remote, &taken, no_wait) {
        return Ok(Some(taken));
    }
    follow(global, remote, taken, global.json, (presses, asker))
}

/// A call of a skill at a server: its record, and what it answered.
pub(crate) fn skill(
    global: &Global,
    remote: &Client,
    options: RunOptions,
    (id, inputs): (&str, Map<String, Value>),
    prints: bool,
) -> Result<Option<SkillAnswer>> {
    if !options.place.toolchain.is_empty() {
        return Err(invalid(
            "`--toolchain` shows interpreters of this machine, not of a server",
        ));
    }
    let nothing = Program::Argv {
        command: ByteString::default(),
        args: Vec::new(),
    };
    let no_wait = options.exec.no_wait;
    let mut call = call(options, nothing)?;
    call.ids.user_id = None;
    let request = SkillCallRequest::of(call, inputs)?;
    let (presses, asker) = interrupt::presses()?;
    let taken = submit(remote, || {
        remote
            .invoke(id, &request, &presses)
            .map(|it: SkillAnswer| it.exec)
    })?;
    let silent = global.json || !prints;
    let id = taken.exec_id.clone();
    // What it answered is asked for all the same: the server says best that it waits.
    let left = is_left(global, remote, &taken, no_wait);
    if !left && follow(global, remote, taken, silent, (presses, asker))?.is_none() {
        return Ok(None);
    }
    let target = Target::new("/v1/execs").segment(id.as_str());
    remote.get(target.segment("output")).map(Some)
}

/// An exec that was taken on before, from its first word to its end.
pub(super) fn go_on(global: &Global, remote: &Client, exec: &ExecId) -> Result<Option<Exec>> {
    attend(global, remote, exec, global.json, interrupt::presses()?)
}

fn follow(
    global: &Global,
    remote: &Client,
    exec: Exec,
    silent: bool,
    (presses, asker): (OwnedFd, Asker),
) -> Result<Option<Exec>> {
    match exec.status.is_final() {
        true => Ok(Some(exec)),
        false => attend(global, remote, &exec.exec_id, silent, (presses, asker)),
    }
}

fn attend(
    global: &Global,
    remote: &Client,
    id: &ExecId,
    silent: bool,
    (presses, asker): (OwnedFd, Asker),
) -> Result<Option<Exec>> {
    let mut live = Live::new(silent, asker);
    let mut told = false;
    let mut waits = |before: Option<u64>| {
        if !global.quiet && !global.json && !std::mem::replace(&mut told, true) {
            let place = match before {
                None => String::new(),
                Some(0) => ", and is next".to_owned(),
                Some(before) => format!(", {before} before it"),
            };
            render::note(&format!("`{id}` waits for its turn{place}"));
        }
    };
    let audience = Audience {
        live: live.output(),
        waits: &mut waits,
        presses,
    };
    let followed = remote.follow(id, audience);
    live.finish();
    match followed? {
        Parting::Ended => {
            let record = get(remote, id.as_str())?;
            note_cut(global, &record);
            Ok(Some(record))
        }
        Parting::Left => {
            render::note(&format!(
                "left `{id}`; `glovebox show {id}` says how it ended"
            ));
            Ok(None)
        }
    }
}

/// Whether people are asked about it, and it is left to them. Whoever can answer, or knows somebody
/// who can, is told how.
fn is_left(global: &Global, remote: &Client, exec: &Exec, no_wait: bool) -> bool {
    let asked = exec.status == Status::AwaitingApproval;
    if let (true, Some(approval), false) = (asked, &exec.approval_id, global.quiet) {
        note_asked(remote, exec, approval, no_wait);
    }
    asked && no_wait
}

fn note_asked(remote: &Client, exec: &Exec, approval: &ApprovalId, no_wait: bool) {
    let server = remote.address();
    // Nobody follows it here any more: whoever lets it start may.
    let then = if no_wait { " --run" } else { "" };
    render::note(&format!(
        "`{}` waits for a person to answer `{approval}`; somebody else answers with\n  \
         glovebox --server {server} approval approve {approval}{then}\n  \
         glovebox --server {server} approval deny {approval}",
        exec.exec_id
    ));
}

/// Taken on, or a refusal that is on record.
fn submit(remote: &Client, send: impl FnOnce() -> Result<Exec>) -> Result<Exec> {
    match send() {
        Err(error) if error.code == Code::PolicyDenied => match &error.exec_id {
            Some(id) => {
                let record = get(remote, id.as_str());
                record
                    .ok()
                    .filter(|it| it.status == Status::PolicyDenied)
                    .ok_or(error)
            }
            None => Err(error),
        },
        taken => taken,
    }
}

fn get(remote: &Client, id: &str) -> Result<Exec> {
    remote.get(Target::new("/v1/execs").segment(id))
}

/// A server passes on what it keeps, and no more.
fn note_cut(global: &Global, record: &Exec) {
    let cut = [
        (record.stdout_truncated, "stdout"),
        (record.stderr_truncated, "stderr"),
    ];
    for (_, name) in cut
        .iter()
        .filter(|(cut, _)| *cut && !global.quiet && !global.json)
    {
        render::note(&format!(
            "only the head of its {name} was kept; `--max-output` keeps more"
        ));
    }
}

/// All of it, up to what the API takes.
fn read_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = BODY_MOST as u64;
    let read = std::io::stdin()
        .lock()
        .take(most + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| invalid("cannot read standard input").caused_by(error))?;
    if bytes.len() > BODY_MOST {
        return Err(
            invalid("standard input is longer than the 16 MiB that a server takes").hint(
                "put it into the server's workspace first: `PUT /v1/workspaces/ID/files/PATH`",
            ),
        );
    }
    Ok(bytes)
}
