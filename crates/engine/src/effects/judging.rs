//! The gates over what an exec put out and did, before anything of it is kept.

use std::fmt;

use glovebox_backend::{Cancel, Sink};
use glovebox_gate::{
    COMMAND_TAIL_MAX, Check, CheckName, CommandCheck, CommandOutcome, Gate, History, RunCommand,
    Sample, Subject, judge,
};
use glovebox_model::{
    ByteString, Call, Code, Count, Deed, Effect, Error, Exec, ExecId, GateResult, Mode,
    NetworkMode, OnExceed, PartialLimits, PartialProfile, Preview, Program, Result, Stage, Status,
    Stream, Verdict, WorkspaceRef, Writes,
};
use glovebox_policy::Sight;
use glovebox_store::ExecFilter;
use glovebox_workspace::Dir;
use glovebox_workspace::change::Changes;
use serde_json::Value;

use super::contents::Files;
use super::gathering::Gathered;
use super::{Capture, Gated, bound, files, preview};
use crate::approvals::tool_of;
use crate::effects::Effects;
use crate::engine::{Engine, Io, KeeperSlot};
use crate::settings::ToolchainSettings;
use crate::visibility::Viewer;

/// Effects in the record itself; the log has all.
const RECORDED: usize = 100;
/// Bytes of them.
const RECORDED_BYTES: usize = 256 << 10;
/// Earlier runs that are looked at.
const EARLIER: usize = 200;

/// What an exec wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Written<'w> {
    /// Nothing that could be held back.
    Nothing,
    Layer(InLayer<'w>),
    /// It wrote something that cannot be read.
    Unread(&'w Error),
}

/// What lies beside the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InLayer<'w> {
    pub(crate) changes: &'w Changes,
    pub(crate) work: &'w Dir,
    pub(crate) upper: &'w Dir,
}

/// Everything that one exec is judged by.
pub(crate) struct Judging<'run, 'engine> {
    capture: Capture<'engine>,
    call: &'run Call,
    gated: Gated,
    settings: &'run ToolchainSettings,
    seats: Option<&'run dyn Fn() -> Result<KeeperSlot>>,
    cancel: &'run Cancel,
}

impl<'run, 'engine> Judging<'run, 'engine> {
    pub(crate) fn new(
        capture: Capture<'engine>,
        call: &'run Call,
        gated: Gated,
        settings: &'run ToolchainSettings,
        seats: Option<&'run dyn Fn() -> Result<KeeperSlot>>,
        cancel: &'run Cancel,
    ) -> Self {
        Self {
            capture,
            call,
            gated,
            settings,
            seats,
            cancel,
        }
    }

    /// Fills in what it did and what the gates say; what a gate blocks is `held`.
    pub(crate) fn judge(&mut self, engine: &Engine, record: &mut Exec, written: Written<'_>) {
        let Capture {
            gathering,
            observer,
            reports,
        } = &mut self.capture;
        // Nothing of the program is left that could tell more.
        drop(reports.take());
        observer.finish();
        let layer = match written {
            Written::Nothing => None,
            Written::Layer(layer) => {
                files::tell(&layer, observer.permissions(), gathering);
                Some(layer)
            }
            Written::Unread(why) => {
                files::tell_unread(why, gathering);
                None
            }
        };
        let gathered = gathering.all();
        record.effect_count = Some(gathered.count);
        record.effects = without_contents(first(&gathered.effects));
        if record.mode == Mode::Simulate {
            record.preview = Some(Preview {
                exec_id: record.exec_id.clone(),
                digest: preview::digest(record, &gathered.effects),
            });
        }
        if !has_run(record) {
            return;
        }
        record.gates = match bound::strayed(record) {
            Some(strayed) => vec![strayed],
            None => {
                let differs = engine
                    .simulations
                    .differs(self.call, record, &gathered.effects);
                let asked = self.ask(engine, record, &gathered, layer);
                differs.into_iter().chain(asked).collect()
            }
        };
        if let Written::Unread(why) = written
            && !record.gates.iter().any(|it| it.blocked)
        {
            record.gates.push(bound::unseen(why));
        }
        let is_blocked = record.gates.iter().any(|it| it.blocked);
        // What ended it otherwise is still how it ended.
        if is_blocked && matches!(record.status, Status::Succeeded | Status::Failed) {
            record.status = Status::Held;
        }
    }

    fn ask(
        &self,
        engine: &Engine,
        record: &Exec,
        gathered: &Gathered,
        written: Option<InLayer<'_>>,
    ) -> Vec<GateResult> {
        let tool = tool_of(self.call);
        let gates = &self.gated.gates;
        if gates.is_empty() {
            return Vec::new();
        }
        let earlier = match gates.iter().any(looks_back) {
            true => engine.effects.earlier(record),
            false => Earlier::default(),
        };
        let argv: Vec<ByteString> = std::iter::once(record.cmd.clone())
            .chain(record.args.iter().cloned())
            .collect();
        let kept = engine
            .instance
            .layout(&record.ids.space_id)
            .and_then(|it| it.artifacts(&record.project_id, &record.exec_id));
        let contents = Files {
            written,
            kept: kept.ok(),
            masks: self.capture.gathering.masks(),
        };
        let subject = Subject {
            status: record.status,
            exit_code: record.exit_code,
            duration_ms: record.duration_ms,
            stdout: record.stdout.as_bytes(),
            stdout_here: record.stdout_shown_bytes(),
            stdout_bytes: record.stdout_bytes,
            stderr_bytes: record.stderr_bytes,
            effects: &gathered.effects,
            effect_count: gathered.count,
            watched: self.gated.watched,
            changes: record.changes,
            artifacts: &record.artifacts,
            mode: record.mode,
            tier: record.risk.tier,
            tool: &tool,
            ids: &record.ids,
            argv: &argv,
            history: History {
                samples: &earlier.samples,
                previous: earlier.previous.as_ref(),
                digest: earlier.digest.as_deref(),
            },
            contents: &contents,
        };
        let bench = Bench {
            judging: self,
            engine,
            over: written
                .filter(|it| !it.changes.is_empty())
                .map(|_| &record.exec_id),
        };
        judge(gates, &subject, &bench)
    }
}

/// Whether it wants to know of earlier runs.
fn looks_back(gate: &Gate) -> bool {
    let mut names = gate.checks().iter().map(Check::name);
    names.any(|name| {
        matches!(
            name,
            CheckName::Anomaly | CheckName::Monotonic | CheckName::Deterministic
        )
    })
}

/// What never ran is not judged, nor what was ended from outside, where that keeps nothing. A plain run
/// keeps what it wrote until then.
const fn has_run(record: &Exec) -> bool {
    match record.status {
        Status::Succeeded | Status::Failed => true,
        Status::TimedOut | Status::Killed | Status::Canceled => matches!(record.mode, Mode::Run),
        _ => false,
    }
}

/// Whoever may read a record need not be somebody who may read files.
fn without_contents(mut effects: Vec<Effect>) -> Vec<Effect> {
    for effect in &mut effects {
        if let Deed::FilesystemWrite(write) = &mut effect.deed {
            write.diff = None;
        }
    }
    effects
}

/// As many as a record should hold.
pub(crate) fn first(effects: &[Effect]) -> Vec<Effect> {
    let mut bytes = 0;
    let fits = |effect: &&Effect| {
        bytes += serde_json::to_string(effect).map_or(0, |it| it.len());
        bytes <= RECORDED_BYTES
    };
    effects
        .iter()
        .take(RECORDED)
        .take_while(fits)
        .cloned()
        .collect()
}

/// What earlier runs of the same program were like.
#[derive(Debug, Default)]
struct Earlier {
    samples: Vec<Sample>,
    previous: Option<Value>,
    digest: Option<String>,
}

impl Effects {
    /// Nothing where the store cannot be read: a gate that needs it then says so.
    fn earlier(&self, record: &Exec) -> Earlier {
        // What another agent did is nothing to compare with: it would tell of it, and one agent could
        // stop another.
        let eyes = Viewer::of_exec(record);
        let is_own = self.instance.config().sight() == Sight::Own;
        let filter = ExecFilter {
            project_id: Some(record.project_id.clone()),
            agent_id: eyes.agent().filter(|_| is_own).map(str::to_owned),
            limit: EARLIER,
            ..ExecFilter::default()
        };
        let listed = self
            .instance
            .store()
            .and_then(|store| store.list(&record.ids.space_id, &filter));
        let Ok(page) = listed else {
            return Earlier::default();
        };
        let same = |it: &&Exec| {
            it.exec_id != record.exec_id
                && it.cmd == record.cmd
                && it.args == record.args
                && self.instance.policy.seen(&eyes, &it.ids, ()).is_some()
        };
        let same: Vec<&Exec> = page.items.iter().filter(same).collect();
        let kept =
            |it: &&&Exec| it.status == Status::Succeeded && it.verdict == Some(Verdict::Keep);
        let previous = same.iter().find(kept);
        let simulated = same.iter().find(|it| it.mode == record.mode);
        Earlier {
            previous: previous.and_then(|it| serde_json::from_str(&it.stdout).ok()),
            digest: simulated
                .filter(|it| it.effect_count.is_some_and(|count| count.dropped == 0))
                .and_then(|it| self.read(it, 0, usize::MAX).ok())
                .map(|(effects, ..)| glovebox_gate::digest(&effects)),
            samples: same.iter().map(|it| sample(it)).collect(),
        }
    }
}

fn sample(record: &Exec) -> Sample {
    let artifacts = record.artifacts.iter();
    Sample {
        duration_ms: record.duration_ms,
        stdout_bytes: Some(record.stdout_bytes),
        changed_files: record
            .changes
            .map(|it| it.created + it.modified + it.removed),
        changed_bytes: record.changes.map(|it| it.bytes),
        effects: record.effect_count.map(|it| it.total),
        violations: record.effect_count.map(|it| it.violations),
        requests: None,
        processes: None,
        artifacts: Some(record.artifacts.len() as u64),
        artifact_bytes: Some(artifacts.map(|it| it.size).sum()),
        exit_code: record.exit_code,
        output: serde_json::from_str(&record.stdout).ok(),
    }
}

/// Where a gate's own programs run: on the changes that are judged, as if they had been kept.
struct Bench<'judge, 'run, 'engine> {
    judging: &'judge Judging<'run, 'engine>,
    engine: &'judge Engine,
    over: Option<&'judge ExecId>,
}

impl RunCommand for Bench<'_, '_, '_> {
    fn run_command(&self, command: &CommandCheck) -> Result<CommandOutcome> {
        let Judging {
            call,
            settings,
            seats,
            cancel,
            ..
        } = self.judging;
        let Some(seats) = seats else {
            let message = "a gate's command cannot be run here: there is no second sandbox";
            return Err(Error::new(Code::BackendUnavailable, Stage::Judge, message));
        };
        let mut words = command.argv.iter().map(|word| {
            ByteString::try_from(word.as_str()).map_err(|why| {
                let message = format!("a gate's command {why}");
                Error::new(Code::InvalidConfig, Stage::Judge, message)
            })
        });
        let program = words.next().transpose()?.unwrap_or_default();
        // The operator's words, and nothing of whoever is judged.
        let ordered = Call {
            on_exceed: OnExceed::Cap,
            writes: match call.workspace {
                // Gone with the exec anyway.
                WorkspaceRef::Scratch => Writes::Direct,
                WorkspaceRef::Project(_) | WorkspaceRef::Adopted(_) => Writes::Dropped,
            },
            over: self.over.cloned(),
            overrides: PartialProfile {
                limits: PartialLimits {
                    wall_ms: Some(command.timeout),
                    memory_bytes: command.memory,
                    pids: command.pids.map(Count),
                    ..PartialLimits::default()
                },
                network: Some(NetworkMode::None),
                ..PartialProfile::default()
            },
            ..Call::new(
                call.ids.clone(),
                call.vouched,
                call.workspace.clone(),
                Program::Argv {
                    command: program,
                    args: words.collect::<Result<_>>()?,
                },
            )
        };
        let mut nobody = Unheard;
        let io = Io::new(&mut nobody, cancel);
        let ended = self.engine.run_agreed(seats()?, ordered, settings, io)?;
        Ok(CommandOutcome {
            exit_code: ended.exit_code,
            timed_out: ended.timed_out,
            tail: tail(&ended),
            error: match (&ended.error, ended.limit_hit) {
                (Some(error), _) => Some(error.message.clone()),
                (None, Some(limit)) => Some(format!("it ran into a limit: {limit}")),
                (None, None) => None,
            },
        })
    }
}

/// The end of what it said.
fn tail(record: &Exec) -> String {
    let said = match (record.stdout.as_str(), record.stderr.as_str()) {
        (stdout, "") => stdout.to_owned(),
        ("", stderr) => stderr.to_owned(),
        (stdout, stderr) => format!("{stdout}\n{stderr}"),
    };
    let mut from = said.len().saturating_sub(COMMAND_TAIL_MAX);
    while !said.is_char_boundary(from) {
        from += 1;
    }
    said[from..].to_owned()
}

struct Unheard;

impl Sink for Unheard {
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

impl fmt::Debug for Judging<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judging")
    }
}
