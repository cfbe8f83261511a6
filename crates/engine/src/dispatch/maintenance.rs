//! What a server looks after while it runs: its lease, what other servers ask of it, and what
//! those that died have left.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::Duration;

use glovebox_cage::Moment;
use glovebox_model::{Code, Error, Exec, ExecId, Result, SpaceId, Stage, Status};
use glovebox_store::{Adopted, NOBODY};
use jiff::Timestamp;

use super::events::EVENTS_KEPT;
use super::live::{Live, Stop};
use super::perform::Start;
use super::sealed_call::SealedCall;
use super::submit::Candidate;
use super::{Dispatcher, lease, locked};
use crate::approvals::{nobody, outdated};
use crate::path::Draft;
use crate::path::{CallWithConsent, Planned};
use crate::patience::Wait;
use crate::sessions::Sessions;
use crate::webhooks;

const ROUND: Duration = Duration::from_secs(1);
/// Every so many rounds.
const TAKE_OVER: u64 = 3;
const USES: u64 = 10;
const TIDY: u64 = 600;
/// How often kept sandboxes are looked at; containers every so many times, and every so many times
/// those are removed that nobody wants: 5 minutes.
const CARE: Duration = Duration::from_secs(3);
const ENGINES: u64 = 5;
const PRUNE: u64 = 100;
/// How often keepers of sessions are looked for that do not know of this server.
const SESSIONS: Duration = Duration::from_secs(3);
/// An hour.
const HOUSEKEEPING: u64 = 1200;
/// How long a request key is remembered.
pub const KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct Maintenance {
    gone: Mutex<bool>,
    bell: Condvar,
}

impl Maintenance {
    /// Ends the rounds.
    pub(super) fn go(&self) {
        *locked(&self.gone) = true;
        self.bell.notify_all();
    }

    pub(super) fn is_gone(&self) -> bool {
        *locked(&self.gone)
    }

    fn rest(&self, long: Duration) {
        let gone = locked(&self.gone);
        if !*gone {
            let _rested = self.bell.wait_timeout(gone, long);
        }
    }
}

/// Starts the rounds; they end with the dispatcher.
pub(super) fn set_out(dispatcher: &Arc<Dispatcher>) -> Result<()> {
    let start = |name: &str, rounds: fn(&Weak<Dispatcher>)| {
        let weak = Arc::downgrade(dispatcher);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || rounds(&weak))
            .map(drop)
            .map_err(|error| {
                Error::new(Code::Busy, Stage::Open, "no thread is left").caused_by(error)
            })
    };
    if dispatcher.store()?.is_shared() {
        // Each alone: a database that is slow to answer one question must not cost the lease, nor a
        // renewal that hangs the notice that it is over.
        start("lease", renewals)?;
        start("lease-end", look_at_the_clock)?;
    }
    if !dispatcher.purpose.is_session() {
        // An engine of containers that hangs holds up nobody else.
        start("caretaker", care)?;
        // Nor does a session's keeper.
        start("sessions", attend_sessions)?;
    }
    if !dispatcher.webhooks.is_empty() {
        start("webhooks", webhooks::rounds)?;
    }
    start("maintenance", rounds)
}

fn care(weak: &Weak<Dispatcher>) {
    for round in 1_u64.. {
        let Some(dispatcher) = weak.upgrade() else {
            return;
        };
        dispatcher.maintenance.rest(Wait::Care.within(CARE));
        if dispatcher.maintenance.is_gone() || dispatcher.is_closed() {
            return;
        }
        let asks_engines = round.is_multiple_of(ENGINES);
        dispatcher.engine.sandboxes.look_after(asks_engines);
        if round.is_multiple_of(HOUSEKEEPING) {
            dispatcher.keep_house();
        }
        if round.is_multiple_of(PRUNE) {
            match dispatcher.engine.sandboxes.prune() {
                Ok(pruned) if pruned.removed.is_empty() => {}
                Ok(pruned) => tracing::info!(removed = ?pruned.removed, "sandboxes were pruned"),
                Err(error) => tracing::warn!(%error, "sandboxes could not be pruned"),
            }
        }
    }
}

fn attend_sessions(weak: &Weak<Dispatcher>) {
    while let Some(dispatcher) = weak.upgrade() {
        dispatcher.sessions.look_after(dispatcher.state().path());
        dispatcher.maintenance.rest(SESSIONS);
        if dispatcher.maintenance.is_gone() || dispatcher.is_closed() {
            return;
        }
    }
}

fn rounds(weak: &Weak<Dispatcher>) {
    let mut missing = HashSet::new();
    for round in 1_u64.. {
        let Some(dispatcher) = weak.upgrade() else {
            return;
        };
        dispatcher.maintenance.rest(ROUND);
        if dispatcher.maintenance.is_gone() {
            return;
        }
        if let Err(error) = dispatcher.round(round, &mut missing) {
            tracing::warn!(%error, "the store could not be asked");
        }
    }
}

/// Each renewal is told to the keepers, which end what they keep without one: another server may
/// soon take these execs for lost, and rightly.
fn renewals(weak: &Weak<Dispatcher>) {
    while let Some(dispatcher) = weak.upgrade() {
        // From before the question: what the answer means began then.
        let asked = Moment::now();
        let kept = dispatcher
            .store()
            .and_then(|store| store.renew(dispatcher.owner(), lease()));
        let held = match kept {
            Ok(true) => dispatcher.hold(asked),
            Ok(false) => {
                dispatcher.fence();
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = held {
            tracing::warn!(%error, "the lease could not be renewed");
        }
        dispatcher.maintenance.rest(lease() / 15);
        if dispatcher.maintenance.is_gone() || dispatcher.is_fenced() {
            return;
        }
    }
}

/// By the clock alone: it asks nobody, so nothing can hold it up.
fn look_at_the_clock(weak: &Weak<Dispatcher>) {
    while let Some(dispatcher) = weak.upgrade() {
        dispatcher.look_at_the_lease();
        dispatcher.maintenance.rest(ROUND / 4);
        if dispatcher.maintenance.is_gone() || dispatcher.is_fenced() {
            return;
        }
    }
}

impl Dispatcher {
    fn round(self: &Arc<Self>, round: u64, missing: &mut HashSet<(SpaceId, ExecId)>) -> Result<()> {
        let store = self.store()?;
        for (space, id) in store.cancels_asked(self.owner())? {
            if let Some(canceled) = self.cancel_awaiting(&space, &id) {
                canceled?;
                continue;
            }
            let waiting = locked(&self.admission).withdraw(&space, &id);
            match waiting {
                Some(waiting) => drop(self.cancel_waiting(waiting)?),
                None => {
                    if let Some(live) = self.live_one(&space, &id) {
                        live.cancel();
                    }
                }
            }
        }
        self.look_for_answers()?;
        self.engine.network.recheck_secrets()?;
        self.apply(store.settings()?);
        let is_session = self.purpose.is_session();
        if round.is_multiple_of(TAKE_OVER) && !self.is_closed() {
            if !is_session && self.may_take_over() {
                self.take_over()?;
            }
            self.reconcile(missing)?;
        }
        if is_session {
            return Ok(());
        }
        if round.is_multiple_of(USES) {
            self.engine.registry.write_uses(ROUND * 5);
        }
        if round.is_multiple_of(TIDY) {
            // Each takes a bounded bite; so many at once, so that the table cannot outgrow it.
            let mut bites = 0;
            while bites < 100 && store.sweep(KEYS_KEPT)? > 0 {
                bites += 1;
            }
            self.forget_old_events()?;
        }
        Ok(())
    }

    /// An exec that the store has as ours and that nobody here knows of would stay open for as long
    /// as this server lives: its thread broke off, or nobody can tell whether a commit was done. Seen
    /// twice it is lost, since between its row and its place there is a moment.
    fn reconcile(&self, missing: &mut HashSet<(SpaceId, ExecId)>) -> Result<()> {
        let store = self.store()?;
        let open = store.open_execs(self.owner())?;
        let known = |id: &ExecId| locked(&self.live).contains_key(id);
        let unknown: HashSet<_> = open.into_iter().filter(|(_, id)| !known(id)).collect();
        for (space, id) in unknown.intersection(missing) {
            if let Some(exec) = store.lose(self.owner(), space, id)? {
                tracing::error!(exec_id = %exec.exec_id, "nobody knows of it any more: lost");
            }
        }
        *missing = unknown;
        Ok(())
    }

    fn fence(&self) {
        if self.fenced.swap(true, Ordering::SeqCst) {
            return;
        }
        tracing::error!("another server has taken over; stopping everything");
        // Nothing that a keeper keeps outlives this, whatever was renewed before.
        if let Some(spawner) = &self.spawner
            && let Err(error) = spawner.lease_until(Moment::now())
        {
            tracing::error!(%error, "the keepers of sandboxes cannot be told");
        }
        self.stop_all(|_| true);
    }

    /// One that could not be renewed in time may still be this server's: what only waits goes on
    /// waiting, and new work is taken once it is renewed.
    fn look_at_the_lease(&self) {
        let cut_off = self.spawner.as_ref().is_some_and(|it| !it.is_leased());
        if self.cut_off.swap(cut_off, Ordering::SeqCst) == cut_off {
            return;
        }
        if cut_off {
            tracing::error!("the lease could not be renewed in time; stopping what runs");
            self.stop_all(Live::has_begun);
        } else {
            *locked(&self.regained) = Some(Moment::now());
            tracing::info!("the lease is renewed");
        }
    }

    /// When the database was away, other servers could not renew their leases either. They get a
    /// lease's time to do so before any of them is taken for dead.
    fn may_take_over(&self) -> bool {
        let regained = *locked(&self.regained);
        !self.is_cut_off() && regained.is_none_or(|since| since.elapsed() >= lease())
    }

    fn stop_all(&self, which: impl Fn(&Live) -> bool) {
        for live in locked(&self.live).values().filter(|it| which(it)) {
            live.stop(Stop::LeaseLost);
            live.cancel();
        }
    }

    /// Another server has taken over what this one ran, and it does nothing any more.
    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Relaxed)
    }

    /// What dead servers had running is lost; what waited goes on waiting, here.
    pub(super) fn take_over(self: &Arc<Self>) -> Result<()> {
        let store = self.store()?;
        let recovered = self.engine.instance.recover(store)?;
        for exec in &recovered.lost {
            tracing::warn!(exec_id = %exec.exec_id, "lost in a crash");
        }
        let takes = self.to_take()?;
        if !takes.is_empty() {
            let (queued, awaiting) = (takes.clone(), takes);
            let mine = move |exec: &Exec| queued.contains(&exec.exec_id);
            for adopted in store.take_queued(self.owner(), mine)? {
                let id = adopted.record.exec_id.clone();
                // One that fails keeps none of the others from waiting on; it is found missing.
                if let Err(error) = self.wait_again(adopted) {
                    tracing::error!(exec_id = %id, %error, "cannot wait again");
                }
            }
            let mine = move |exec: &Exec| awaiting.contains(&exec.exec_id);
            for adopted in store.take_awaiting(self.owner(), mine)? {
                let id = adopted.record.exec_id.clone();
                if let Err(error) = self.await_again(adopted) {
                    tracing::error!(exec_id = %id, %error, "cannot wait again");
                }
            }
            self.look_for_answers()?;
        }
        self.call_next();
        Ok(())
    }

    /// Of what nobody has. What waits for people in a directory that is not shared here goes on
    /// waiting for whoever has it, until somebody ends it or its time is over.
    fn to_take(&self) -> Result<HashSet<ExecId>> {
        let store = self.store()?;
        let canceled = store.cancels_asked(NOBODY)?.into_iter();
        let mut takes: HashSet<ExecId> = canceled.map(|(_, id)| id).collect();
        for (space, id) in store.open_execs(NOBODY)? {
            let exec = match store.get(&space, &id) {
                Err(error) if error.code == Code::NotFound => continue,
                exec => exec?,
            };
            if self.engine.workspaces.can_take(&exec) || self.is_over(&exec)? {
                takes.insert(id);
            }
        }
        Ok(takes)
    }

    fn wait_again(&self, adopted: Adopted) -> Result<()> {
        let Adopted {
            opened,
            mut record,
            sealed_call,
        } = adopted;
        if !self.engine.workspaces.can_take(&record) {
            return self.end_of_another(opened, record);
        }
        if record.session.is_some() {
            return self.end_without_keeper(opened, record);
        }
        let candidate = match self.revive(&record, &sealed_call) {
            Ok(candidate) => candidate,
            Err(error) => {
                record.status = match error.code {
                    Code::PolicyDenied | Code::ApprovalUnavailable | Code::Denied => {
                        Status::PolicyDenied
                    }
                    Code::Lost => Status::Lost,
                    _ => Status::Error,
                };
                record.ended_at = Some(Timestamp::now());
                record.error = Some(error.of_exec(record.exec_id.clone()));
                self.store()?.close(opened, record)?;
                return Ok(());
            }
        };
        let live = Arc::clone(&candidate.live);
        locked(&self.live).insert(live.exec.clone(), Arc::clone(&live));
        let waiting = candidate.waiting(Start::Queued(opened));
        locked(&self.admission).line_up(live.account.clone(), live.exec.clone(), waiting);
        Ok(())
    }

    /// From what was kept of it. Policy may have changed meanwhile, and is asked again.
    fn revive(&self, record: &Exec, sealed_call: &[u8]) -> Result<Candidate> {
        let (space, exec) = (&record.ids.space_id, &record.exec_id);
        let SealedCall {
            mut call,
            stdin,
            narrowed,
            consent,
            scripts,
            policy,
        } = self.seal()?.open(space, exec, sealed_call)?;
        if policy.is_some_and(|it| it != self.engine.config().digest()) {
            return Err(outdated());
        }
        self.engine.sandboxes.place(&mut call)?;
        let project = self.engine.workspaces.project(&call)?;
        project.forget(exec)?;
        let draft = Draft::again(&call, project.id().clone(), exec.clone())?;
        let wanted = CallWithConsent {
            call,
            narrowed,
            consent,
            scripts,
            of_gate: false,
        };
        match self.engine.plan(&draft, &project, wanted)? {
            Planned::Ready(plan) => Candidate::new(*plan, project, stdin),
            Planned::Asks(approval_request) => Err(nobody(&approval_request.ruling)),
        }
    }

    fn forget_old_events(&self) -> Result<()> {
        let before = Timestamp::now() - EVENTS_KEPT;
        let store = self.store()?;
        let mut spaces = self.engine.instance.spaces()?;
        if !spaces.contains(&SpaceId::local()) {
            spaces.push(SpaceId::local());
        }
        for space in spaces {
            // A session may be silent for longer.
            let goes_on = |exec: &ExecId| match store.get(&space, exec) {
                Ok(record) => !record.status.is_final(),
                Err(error) => error.code != Code::NotFound,
            };
            self.layout(&space)?.forget_journals(before, &goes_on)?;
        }
        self.forget_old_sessions()
    }

    /// A session's keeper does so at its end, too: commands have no rounds.
    pub(crate) fn forget_old_sessions(&self) -> Result<()> {
        let before = Timestamp::now() - EVENTS_KEPT;
        Sessions::forget(self.state().path(), before.into())
    }
}
