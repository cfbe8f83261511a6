//! From flags to a call, through the engine or a server, to an exit code: what `run`, `code` and
//! `exec` share.

mod approver;
mod call;
mod there;

use glovebox_api::Target;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glovebox_engine::{Approver, Engine, Io, KeeperSlot, Listener, Sink, ToolchainSettings};
use glovebox_model::{
    Call, Code, Effect, Error, Exec, ExecId, Mode, Program, Result, Stage, Status, Verdict,
    WorkspaceRef, Writes,
};
use glovebox_skill::Called;
use glovebox_workspace::toolchain;

use approver::AtTerminal;
pub(super) use call::{argument, call, standing_overrides};
pub(super) use there::skill as skill_there;

use crate::args::{Global, RunOptions};
use crate::commands::effects;
use crate::commands::workspace::change_count;
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::human::count as counted;
use crate::interrupt::Asker;
use crate::output::{PassThrough, Silent};
use crate::{effect_line, interrupt, output, render};
use glovebox_api::client::{Client, LiveOutput};

pub(crate) fn execute(global: &Global, options: RunOptions, program: Program) -> Result<Exit> {
    let report = options
        .exec
        .report
        .as_deref()
        .map(Report::open)
        .transpose()?;
    if !options.exec.stdin {
        note_unread_stdin(global);
    }
    let no_wait = options.exec.no_wait;
    let record = match Context::new(global).server()? {
        Some(remote) => there::run(global, &remote, options, program)?,
        None => Some(here(global, options, program)?),
    };
    let Some(record) = record else {
        return Ok(Exit::CANCELED);
    };
    if let Some(report) = report {
        report.write(&record)?;
    }
    tell(global, &record);
    let exit = Exit::of_run(&record, no_wait);
    if exit == Exit::WAITING && record.status.is_final() && !global.json && !global.quiet {
        render::note(
            "nothing is kept of it here, so nobody can answer later: run it without `--no-wait` at \
             a terminal, or with `--server`",
        );
    }
    Ok(exit)
}

/// An exec at a server that somebody has answered for: followed to its end.
pub(crate) fn go_on(global: &Global, remote: &Client, exec: &ExecId) -> Result<Exit> {
    let Some(record) = there::go_on(global, remote, exec)? else {
        return Ok(Exit::CANCELED);
    };
    tell(global, &record);
    Ok(Exit::of_record(&record))
}

/// In this process.
fn here(global: &Global, options: RunOptions, program: Program) -> Result<Exec> {
    let stdin = options.exec.stdin.then(own_stdin).transpose()?;
    let toolchains = toolchains(global, &options)?;
    let tells = options.simulation.live;
    let asks = !options.exec.no_wait;
    let call = call(options, program)?;
    let heard = Heard {
        stdin,
        asks,
        effects: tells.then(|| Arc::new(Told) as Arc<dyn Listener>),
        replayable: None,
        silent: false,
    };
    walk(global, call, &toolchains, heard)
}

/// A call of a skill in this process. `prints`: what its program prints is its answer.
pub(crate) fn skill_here(
    global: &Global,
    options: RunOptions,
    called: Called,
    prints: bool,
) -> Result<Exec> {
    let toolchains = toolchains(global, &options)?;
    let asks = !options.exec.no_wait;
    let call = Call {
        inputs: called.inputs,
        skill: Some(called.skill),
        ..call(options, called.program)?
    };
    let heard = Heard {
        stdin: None,
        asks,
        effects: None,
        replayable: None,
        silent: !prints,
    };
    walk(global, call, &toolchains, heard)
}

/// What a run in this process reads, and who hears of its effects.
struct Heard<'a> {
    stdin: Option<std::os::fd::OwnedFd>,
    /// The person at the terminal is asked where policy wants one, and waited for.
    asks: bool,
    effects: Option<Arc<dyn Listener>>,
    replayable: Option<&'a [u8]>,
    /// What it prints is not for people.
    silent: bool,
}

fn walk(
    global: &Global,
    mut call: Call,
    toolchains: &ToolchainSettings,
    heard: Heard<'_>,
) -> Result<Exec> {
    // Before anything that might start a thread. Gates may want to run something themselves.
    let keeper = context::fork_keeper()?;
    let context = Context::new(global);
    let settings = context.own_settings()?;
    let spawner = match call.mode.is_judged() || settings.config.gates_run_programs() {
        true => Some(context::fork_spawner()?),
        false => None,
    };
    let engine = Engine::open(settings)?;
    let seat = engine.sandboxes.seat(keeper)?;
    let (cancel, asker) = interrupt::listen()?;
    let approver = match heard.asks {
        true => AtTerminal::open(&engine, &mut call)?,
        false => None,
    };
    let mut live = Live::new(global.json || heard.silent, asker);
    let seats = spawner
        .as_ref()
        .map(|spawner| || context::seat_from(spawner, &engine));
    let io = Io {
        stdin: heard.stdin,
        approver: approver.as_ref().map(|it| it as &dyn Approver),
        effects: heard.effects,
        replayable: heard.replayable,
        seats: seats
            .as_ref()
            .map(|it| it as &dyn Fn() -> Result<KeeperSlot>),
        ..Io::new(live.sink(), &cancel)
    };
    let ran = engine.run(seat, call, toolchains, io);
    live.finish();
    context.report_recovered(engine.recovered());
    ran
}

/// A simulation for real, here or at the server that has it.
pub(crate) fn rerun(global: &Global, exec: &Exec) -> Result<Exit> {
    let record = match Context::new(global).server()? {
        Some(remote) => {
            let target = Target::new("/v1/execs").segment(exec.exec_id.as_str());
            remote.post_nothing(target.segment("rerun"))?
        }
        None => {
            let engine = Context::new(global).engine()?;
            let rehearsed = engine
                .simulations
                .rehearsed(&exec.ids.space_id, &exec.exec_id)?;
            drop(engine);
            let stdin = rehearsed.stdin.as_deref().map(as_file).transpose()?;
            let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
            let host = toolchain::Host::of_process(cwd, Context::new(global).state_path().ok());
            let mode = match rehearsed.call.workspace {
                WorkspaceRef::Adopted(_) => toolchain::Mode::Auto,
                WorkspaceRef::Project(_) | WorkspaceRef::Scratch => toolchain::Mode::Off,
            };
            let heard = Heard {
                stdin,
                asks: true,
                effects: None,
                replayable: rehearsed.stdin.as_deref(),
                silent: false,
            };
            let settings = ToolchainSettings { host, mode };
            walk(global, rehearsed.call, &settings, heard)?
        }
    };
    tell(global, &record);
    Ok(Exit::of_record(&record))
}

fn as_file(bytes: &[u8]) -> Result<std::os::fd::OwnedFd> {
    let failed = |error: std::io::Error| invalid("its standard input is lost").caused_by(error);
    let fd = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|errno| failed(errno.into()))?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes).map_err(failed)?;
    std::io::Seek::rewind(&mut file).map_err(failed)?;
    Ok(file.into())
}

/// Effects as they are seen, for a person.
struct Told;

impl Listener for Told {
    fn effect(&self, effect: &Effect, _: (u64, u32)) {
        let (_, text) = effect_line::line(effect);
        render::note(&text);
    }
}

/// Output while it runs: passed through, or kept for the record alone.
enum Live {
    Shown(PassThrough),
    Kept(Silent),
}

impl Live {
    fn new(silent: bool, asker: Asker) -> Self {
        match silent {
            true => Self::Kept(Silent),
            false => Self::Shown(PassThrough::new(asker)),
        }
    }

    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Self::Shown(shown) => shown,
            Self::Kept(kept) => kept,
        }
    }

    fn output(&mut self) -> &mut dyn LiveOutput {
        match self {
            Self::Shown(shown) => shown,
            Self::Kept(kept) => kept,
        }
    }

    fn finish(self) {
        match self {
            Self::Shown(shown) => shown.finish(),
            Self::Kept(Silent) => {}
        }
    }
}

/// What came of it beside its output.
pub(crate) fn tell_end(global: &Global, record: &Exec) {
    if !global.json {
        tell(global, record);
    }
}

fn tell(global: &Global, record: &Exec) {
    if global.json {
        // A closed stdout changes nothing about what happened; the exit code says it too.
        let _ = output::json(record);
        return;
    }
    for note in record.notes.iter().filter(|_| !global.quiet) {
        render::note(&render::printable(note));
    }
    if record.artifacts_dropped > 0 && !global.quiet {
        let (count, id) = (record.artifacts_dropped, &record.exec_id);
        render::note(&format!(
            "{count} artifacts were not kept; `manifest.json` of `{id}` says which and why"
        ));
    }
    if !global.quiet {
        aside(record).iter().for_each(|note| render::note(note));
    }
    if !global.quiet {
        effects::gates(record);
    }
    if let Some(error) = &record.error {
        render::error(error, false);
    } else if let (Some(limit), false) = (record.limit_hit, global.quiet) {
        let id = &record.exec_id;
        let what = if record.timed_out {
            "timed out"
        } else if record.killed {
            "was ended"
        } else {
            "ran into a limit"
        };
        render::note(&format!(
            "`{id}` {what} (limit: {limit}); `glovebox show {id}` has the record"
        ));
    }
}

/// What became of writes that did not go to the workspace itself, and how to go on.
fn aside(record: &Exec) -> Vec<String> {
    if record.mode == Mode::Simulate {
        return match record.effect_count {
            Some(_) => simulated(record),
            // It never ran.
            None => Vec::new(),
        };
    }
    let (id, Some(changes)) = (&record.exec_id, &record.changes) else {
        return Vec::new();
    };
    let counted = change_count(changes);
    match (record.writes, record.verdict) {
        (Writes::Direct, _) | (_, None) => Vec::new(),
        (_, Some(Verdict::Hold)) if is_blocked(record) => vec![
            format!("its changes are held back: {counted}"),
            format!("look at them: `glovebox diff {id}`"),
            format!("drop them: `glovebox discard {id}`"),
        ],
        (_, Some(Verdict::Hold)) => vec![
            format!("its changes wait: {counted}"),
            format!("look at them: `glovebox workspace changes {id}`"),
            format!("keep them: `glovebox workspace keep {id}`"),
            format!("drop them: `glovebox workspace discard {id}`"),
        ],
        (_, Some(Verdict::Keep)) => vec![format!("its changes are kept: {counted}")],
        (_, Some(Verdict::Discard)) => vec![format!("its changes are discarded: {counted}")],
    }
}

fn is_blocked(record: &Exec) -> bool {
    record.gates.iter().any(|it| it.blocked)
}

/// What a simulation showed, and how to go on.
fn simulated(record: &Exec) -> Vec<String> {
    let (id, count) = (&record.exec_id, record.effect_count.unwrap_or_default());
    let mut told = vec![format!(
        "simulated: {}, {} of which would be refused; nothing was changed and nothing was sent",
        counted(count.total, "effect", "effects"),
        count.violations
    )];
    if let Some(changes) = &record.changes {
        told.push(format!("its changes: {}", change_count(changes)));
    }
    if count.total > 0 {
        told.push(format!("look at them: `glovebox effects {id}`"));
    }
    if record.verdict == Some(Verdict::Hold) {
        told.push(format!("as a patch: `glovebox diff {id}`"));
        let judged = matches!(record.status, Status::Succeeded | Status::Failed);
        if judged && !is_blocked(record) {
            told.push(format!("keep what it wrote: `glovebox apply {id}`"));
            if effects::requests(record) > 0 {
                told.push(format!(
                    "do it for real, requests too: `glovebox apply {id} --rerun`"
                ));
            }
        }
        told.push(format!("drop it: `glovebox discard {id}`"));
    }
    told
}

/// Opened before anything runs: a report that cannot be written must not cost a run.
pub(super) struct Report {
    path: PathBuf,
    file: std::fs::File,
}

impl Report {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = std::fs::File::create(path).map_err(|error| {
            let shown = path.display();
            invalid(format!("cannot write the report `{shown}`")).caused_by(error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    pub(super) fn write(mut self, record: &Exec) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(std::io::Error::other);
        text.and_then(|text| self.file.write_all(&text))
            .map_err(|error| {
                let shown = self.path.display();
                let message = format!("the exec is recorded, but not in the report `{shown}`");
                Error::new(Code::DiskFull, Stage::Close, message)
                    .caused_by(error)
                    .of_exec(record.exec_id.clone())
            })
    }
}

/// For a person who pipes something in and wonders where it went.
fn note_unread_stdin(global: &Global) {
    let kind = rustix::fs::fstat(rustix::stdio::stdin())
        .map(|facts| rustix::fs::FileType::from_raw_mode(facts.st_mode));
    let data = matches!(
        kind,
        Ok(rustix::fs::FileType::Fifo | rustix::fs::FileType::RegularFile)
    );
    if data && !global.quiet && std::io::stderr().is_terminal() {
        render::note("standard input is not passed on; `--stdin` does that");
    }
}

fn own_stdin() -> Result<std::os::fd::OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map_err(|errno| invalid("standard input is closed").caused_by(errno))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

/// On by itself where the caller's own directory is worked on; elsewhere only when asked for.
fn toolchains(global: &Global, options: &RunOptions) -> Result<ToolchainSettings> {
    let place = &options.place;
    let adopted = place.project.is_none() && !place.scratch && place.sandbox.is_none();
    let usual = if adopted {
        toolchain::Mode::Auto
    } else {
        toolchain::Mode::Off
    };
    let mode = toolchain::Mode::parse(&place.toolchain)?.unwrap_or(usual);
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let host = toolchain::Host::of_process(cwd, Context::new(global).state_path().ok());
    Ok(ToolchainSettings { host, mode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;
    use glovebox_model::ChangeCount;

    #[test]
    fn whoever_wrote_beside_the_workspace_is_told_how_to_go_on() {
        let ended = |writes, verdict, changes| Exec {
            writes,
            verdict,
            changes,
            ..sample::exec(1)
        };
        let some = Some(ChangeCount {
            created: 1,
            ..ChangeCount::default()
        });
        let told = aside(&ended(Writes::Held, Some(Verdict::Hold), some));
        assert_eq!(told.len(), 4, "{told:?}");
        for verb in ["changes", "keep", "discard"] {
            let command = format!("`glovebox workspace {verb} {}`", sample::exec(1).exec_id);
            assert!(told.iter().any(|it| it.contains(&command)), "{told:?}");
        }
        for (verdict, word) in [(Verdict::Keep, "kept"), (Verdict::Discard, "discarded")] {
            let told = aside(&ended(Writes::IfOk, Some(verdict), some));
            assert!(told.len() == 1 && told[0].contains(word), "{told:?}");
        }
        assert!(aside(&ended(Writes::Direct, Some(Verdict::Keep), None)).is_empty());
        assert!(aside(&ended(Writes::Held, None, None)).is_empty());
    }
}
