//! Changes that wait: shown, kept or discarded.

use std::time::{Duration, Instant};

use glovebox_api::{DecidedAnswer, WaitingAnswer};
use glovebox_model::{
    ByteString, ChangeCount, Code, Error, Exec, ExecId, Mode, Result, Stage, Status, Verdict,
    Writes,
};
use glovebox_workspace::change::{
    self, Change, Changes, EntryChange, Facts, Held, Outcome, ReadLimits,
};
use serde_json::json;

use super::Workspace;
use super::answer::{change_text, waiting_change};
use super::quota::Layers;
use super::unfinished::{Begun, Deed};
use crate::effects::{is_for_review, not_blocked};

/// Text of differences, in all and of one file.
const TEXTS: u64 = 1 << 20;
const TEXT: u64 = 256 << 10;
/// Whoever only looks gets no more than this, and not later.
const LISTED: u64 = 100_000;
const LOOK: Duration = Duration::from_secs(20);
/// Paths named in a refusal.
const NAMED: usize = 20;

impl Workspace<'_> {
    /// The execs whose changes wait, of those that are there for who looks.
    pub fn waiting(&self) -> Result<Vec<ExecId>> {
        let mut seen = Vec::new();
        for exec in self.project.holding()? {
            if self.sees_exec(&exec)? {
                seen.push(exec);
            }
        }
        Ok(seen)
    }

    /// What would change if they were kept now.
    pub fn changes(&self, exec: &ExecId) -> Result<WaitingAnswer> {
        let work = self.work()?;
        let held = match self.project.held(exec)? {
            Some(held) => held,
            None if self.wrote_nothing(exec)? => return Ok(nothing(exec)),
            None => return Err(self.no_changes(exec)),
        };
        let until = Instant::now() + LOOK;
        let limits = ReadLimits {
            entries: LISTED,
            deadline: Some(until),
            ..ReadLimits::default()
        };
        let changes = held.changes(work, limits);
        let mut changes = changes.map_err(|error| error.at(Stage::Judge))?;
        // Who may not read it learns nothing of what stands there.
        let hidden = self.denied_to(exec)?.among(work, &changes)?;
        for at in &hidden {
            if let Some(entry) = changes.entries.get_mut(*at) {
                entry.before = None;
            }
        }
        let (mut texts, mut left) = (Vec::new(), TEXTS);
        let shown = |(at, _): &(usize, &Change)| !hidden.contains(at);
        for (_, entry) in changes.entries.iter().enumerate().filter(shown) {
            if Instant::now() >= until {
                break;
            }
            let most = left.min(TEXT);
            let text = change::text(work, held.upper(), entry, most);
            if let Ok(Some(text)) = text {
                left = left.saturating_sub(text.len() as u64);
                texts.push((entry.path.clone(), text));
            }
        }
        self.hidden(WaitingAnswer {
            exec_id: exec.clone(),
            count: count(&changes),
            unchanged: changes.unchanged,
            skipped: changes.skipped.into_iter().map(|it| it.path).collect(),
            changes: changes.entries.into_iter().map(waiting_change).collect(),
            texts: texts.into_iter().map(change_text).collect(),
        })
    }

    /// Programs name files by what they were given: for people secrets are masked in paths and texts.
    /// An agent must not learn from a mask what it was not given.
    fn hidden(&self, answer: WaitingAnswer) -> Result<WaitingAnswer> {
        if self.eyes.as_ref().is_some_and(|it| it.agent().is_some()) {
            return Ok(answer);
        }
        let failed = |error: serde_json::Error| {
            let message = "what is secret in the changes cannot be hidden";
            Error::new(Code::Internal, Stage::Judge, message).caused_by(error)
        };
        let mut shown = serde_json::to_value(&answer).map_err(failed)?;
        let is_hidden = match self.workspaces.secrets.hide(&self.space, &mut shown) {
            Ok(is_hidden) => is_hidden,
            // A key is missing: the person who mends it must see what is there.
            Err(error) => {
                tracing::warn!(%error, "secrets cannot be looked for");
                false
            }
        };
        if !is_hidden {
            return Ok(answer);
        }
        shown["exec_id"] = json!(answer.exec_id);
        serde_json::from_value(shown).map_err(failed)
    }

    /// As `keep`, for what was simulated. Who asks alone, an agent, gets only what policy would let
    /// it do without asking anybody.
    pub fn apply(&self, exec: &ExecId, alone: bool) -> Result<DecidedAnswer> {
        self.may_keep(exec, alone)?;
        match self.wrote_nothing(exec)? {
            true => Ok(DecidedAnswer {
                exec_id: exec.clone(),
                count: ChangeCount::default(),
            }),
            false => self.keep(exec, alone),
        }
    }

    /// Carries all of them into the workspace, or none.
    pub fn keep(&self, exec: &ExecId, alone: bool) -> Result<DecidedAnswer> {
        self.has_ended(exec)?;
        let record = self.may_keep(exec, alone)?;
        let _alone = self.occupy()?;
        let held = self.held(exec)?;
        let changes = read(&held, self.work()?)?;
        self.refuse_denied(exec, &changes)?;
        let count = count(&changes);
        let begun = self.carry_over(exec, &held, &changes)?;
        self.note_settled(exec, "changes.kept", json!({ "changes": count }))?;
        // With a rerun its simulation is done, too.
        let simulated = record.and_then(|it| it.preview).map(|it| it.exec_id);
        for done in simulated.iter().filter(|it| *it != exec).chain([exec]) {
            self.project.let_go(done)?;
            self.project.forget_sealed(done)?;
        }
        begun.done()?;
        Ok(DecidedAnswer {
            exec_id: exec.clone(),
            count,
        })
    }

    /// With the workspace to itself. It is done when the layer is gone: until then, whoever comes after
    /// a crash finds out that they are kept.
    pub(super) fn carry_over(
        &self,
        exec: &ExecId,
        held: &Held,
        changes: &Changes,
    ) -> Result<Begun> {
        let room = self.workspaces.room(&self.project, Layers::Apart)?;
        room.take(growth(changes), count(changes).created)?;
        let begun = self.begin(Deed::Keep {
            exec_id: exec.clone(),
        })?;
        let outcome = held.keep(self.work()?, ReadLimits::default());
        let outcome = outcome.map_err(|error| error.at(Stage::Judge))?;
        match outcome {
            Outcome::Applied(_) => Ok(begun),
            Outcome::Conflict { paths } => {
                begun.done()?;
                Err(conflict(exec, &paths))
            }
        }
    }

    pub fn discard(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.has_ended(exec)?;
        // Whoever keeps them has the workspace alone.
        let _inside = self.enter()?;
        let held = self.held(exec)?;
        let count = count(&read(&held, self.work()?)?);
        self.note_settled(exec, "changes.discarded", json!({ "changes": count }))?;
        self.project.let_go(exec)?;
        self.project.forget_sealed(exec)?;
        Ok(DecidedAnswer {
            exec_id: exec.clone(),
            count,
        })
    }

    /// What gates judge is kept only once they have, and only if they agree; what was to be thrown
    /// away never is. People may keep what a rerun wrote otherwise than its simulation.
    fn may_keep(&self, exec: &ExecId, alone: bool) -> Result<Option<Exec>> {
        let record = match self.workspaces.instance.store()?.get(&self.space, exec) {
            Ok(record) => record,
            // One without a record never started.
            Err(error) if error.code == Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let reviewed = !alone && is_for_review(&record);
        if !reviewed {
            not_blocked(&record)?;
        }
        let has_run = matches!(record.status, Status::Succeeded | Status::Failed);
        let judged = record.effect_count.is_some() && (has_run || reviewed);
        // A crash came before its gates.
        let held = self.project.held(exec)?;
        let lost = record.status == Status::Lost && held.is_some_and(|it| it.is_gated());
        let must_be = record.mode.is_judged() || lost;
        if record.writes == Writes::Dropped || must_be && !judged {
            let message = format!(
                "`{exec}` ended as `{}`, and nobody judged it",
                record.status
            );
            return Err(Error::new(Code::Held, Stage::Judge, message)
                .hint("run it again to its end")
                .hint(format!("drop it: `glovebox discard {exec}`")));
        }
        if record.writes == Writes::IfOk && record.status == Status::Lost {
            let message = format!("`{exec}` was lost, and its changes count only if it succeeds");
            return Err(Error::new(Code::Held, Stage::Judge, message)
                .hint("run it again")
                .hint(format!("drop them: `glovebox workspace discard {exec}`")));
        }
        if alone && record.mode == Mode::Simulate {
            self.workspaces
                .simulations
                .may_apply_alone(&self.space, exec)?;
        }
        Ok(Some(record))
    }

    /// What an exec still writes can be neither kept nor thrown away.
    fn has_ended(&self, exec: &ExecId) -> Result<()> {
        match self.workspaces.instance.store()?.get(&self.space, exec) {
            Ok(record) if !record.status.is_final() => {
                let message = format!("`{exec}` still runs");
                Err(
                    Error::new(Code::Conflict, Stage::Resolve, message).hint(format!(
                        "wait for its end, or cancel it: `glovebox cancel {exec}`"
                    )),
                )
            }
            // One without a record has nobody who runs it.
            Err(error) if error.code != Code::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn held(&self, exec: &ExecId) -> Result<Held> {
        let held = self.project.held(exec)?;
        held.ok_or_else(|| self.no_changes(exec))
    }

    /// Its changes were to wait, and there was nothing to wait for. One whose changes were decided
    /// since was told `hold` at its end.
    fn wrote_nothing(&self, exec: &ExecId) -> Result<bool> {
        match self.workspaces.instance.store()?.get(&self.space, exec) {
            Ok(record) => Ok(record.project_id == *self.project.id()
                && record.writes == Writes::Held
                && record.verdict == Some(Verdict::Keep)),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn no_changes(&self, exec: &ExecId) -> Error {
        let message = format!(
            "no changes of `{exec}` wait in workspace `{}`",
            self.project.id()
        );
        Error::new(Code::NotFound, Stage::Resolve, message)
            .hint("`glovebox workspace info` lists those that do")
            .hint("`glovebox run --hold` makes an exec's changes wait")
    }
}

/// An exec that changed nothing.
fn nothing(exec: &ExecId) -> WaitingAnswer {
    WaitingAnswer {
        exec_id: exec.clone(),
        count: ChangeCount::default(),
        changes: Vec::new(),
        unchanged: 0,
        skipped: Vec::new(),
        texts: Vec::new(),
    }
}

/// By how much the workspace gets larger, at most.
fn growth(changes: &Changes) -> u64 {
    let size = |facts: &Option<Facts>| facts.as_ref().map_or(0, |it| it.size);
    let (before, after) = changes.entries.iter().fold((0_u64, 0_u64), |sum, it| {
        (
            sum.0.saturating_add(size(&it.before)),
            sum.1.saturating_add(size(&it.after)),
        )
    });
    after.saturating_sub(before)
}

pub(crate) fn read(held: &Held, work: &glovebox_workspace::Dir) -> Result<Changes> {
    let changes = held.changes(work, ReadLimits::default());
    changes.map_err(|error| error.at(Stage::Judge))
}

pub(crate) fn count(changes: &Changes) -> ChangeCount {
    let mut count = ChangeCount::default();
    for entry in &changes.entries {
        match entry.what {
            EntryChange::Created => count.created += 1,
            EntryChange::Modified | EntryChange::Replaced | EntryChange::Touched => {
                count.modified += 1
            }
            EntryChange::Removed => count.removed += 1,
        }
        let size = entry.after.as_ref().map_or(0, |after| after.size);
        count.bytes = count.bytes.saturating_add(size);
    }
    count
}

fn conflict(exec: &ExecId, paths: &[ByteString]) -> Error {
    let message = format!(
        "the workspace has changed since `{exec}` began, in {} of the places that it changed",
        paths.len()
    );
    let named = paths.iter().take(NAMED).map(ByteString::display);
    let error = Error::new(Code::Conflict, Stage::Judge, message)
        .hint(format!(
            "`glovebox workspace changes {exec}` shows both sides"
        ))
        .hint(format!(
            "run it again on what is there now, or drop it: `glovebox workspace discard {exec}`"
        ));
    named.fold(error, |error, path| error.caused_by(format!("`{path}`")))
}
