//! What a server looks after while it runs: its lease, what other servers ask of it, and what
//! those that died have left.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, ExecId, Result, SpaceId, Stage};
use glovebox_store::{Adopted, NOBODY};
use jiff::Timestamp;

use super::events::EVENTS_KEPT;
use super::hall::Account;
use super::live::{Live, Stop};
use super::perform::{Start, Waiting};
use super::{Dispatcher, LEASE, locked};
use crate::path::{Draft, Plan};
use crate::recovery;

const ROUND: Duration = Duration::from_secs(1);
/// Every so many rounds.
const TAKE_OVER: u64 = 3;
const TIDY: u64 = 600;
/// How long a request key is remembered.
pub const KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct Watchman {
    gone: Mutex<bool>,
    bell: Condvar,
    /// When the lease was last asked for with success.
    renewed: Mutex<Option<Instant>>,
}

impl Watchman {
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
        *locked(&dispatcher.watchman.renewed) = Some(Instant::now());
        start("lease", renewals)?;
        start("lease-end", look_at_the_clock)?;
    }
    start("watchman", rounds)
}

fn rounds(weak: &Weak<Dispatcher>) {
    let mut missing = HashSet::new();
    for round in 1_u64.. {
        let Some(dispatcher) = weak.upgrade() else {
            return;
        };
        dispatcher.watchman.rest(ROUND);
        if dispatcher.watchman.is_gone() {
            return;
        }
        if let Err(error) = dispatcher.round(round, &mut missing) {
            tracing::warn!(%error, "the store could not be asked");
        }
    }
}

/// Whoever cannot renew its lease must not go on: another server will soon take its execs for lost,
/// and rightly.
fn renewals(weak: &Weak<Dispatcher>) {
    while let Some(dispatcher) = weak.upgrade() {
        // From before the question: what the answer means began then.
        let asked = Instant::now();
        let kept = dispatcher
            .store()
            .and_then(|store| store.renew(dispatcher.owner(), LEASE));
        match kept {
            Ok(true) => *locked(&dispatcher.watchman.renewed) = Some(asked),
            Ok(false) => dispatcher.fence("another server has taken over"),
            Err(error) => tracing::warn!(%error, "the lease could not be renewed"),
        }
        dispatcher.watchman.rest(LEASE / 5);
        if dispatcher.watchman.is_gone() || dispatcher.is_fenced() {
            return;
        }
    }
}

/// By the clock alone: it asks nobody, so nothing can hold it up.
fn look_at_the_clock(weak: &Weak<Dispatcher>) {
    while let Some(dispatcher) = weak.upgrade() {
        let renewed = *locked(&dispatcher.watchman.renewed);
        if renewed.is_some_and(|at| at.elapsed() > LEASE / 3 * 2) {
            dispatcher.fence("the lease could not be renewed in time");
        }
        dispatcher.watchman.rest(ROUND / 4);
        if dispatcher.watchman.is_gone() || dispatcher.is_fenced() {
            return;
        }
    }
}

impl Dispatcher {
    fn round(self: &Arc<Self>, round: u64, missing: &mut HashSet<(SpaceId, ExecId)>) -> Result<()> {
        let store = self.store()?;
        for (space, id) in store.cancels_asked(self.owner())? {
            let waiting = locked(&self.hall).withdraw(&space, &id);
            match waiting {
                Some(waiting) => drop(self.cancel_waiting(waiting)?),
                None => {
                    if let Some(live) = self.live_one(&space, &id) {
                        live.cancel();
                    }
                }
            }
        }
        self.apply(store.settings()?);
        if round.is_multiple_of(TAKE_OVER) && !self.is_closed() {
            self.take_over()?;
            self.reconcile(missing)?;
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

    fn fence(&self, why: &str) {
        if self.fenced.swap(true, Ordering::SeqCst) {
            return;
        }
        tracing::error!(why, "lost the lease; stopping everything");
        for live in locked(&self.live).values() {
            live.stop(Stop::LeaseLost);
            live.cancel();
        }
    }

    /// This server was cut off from its database and does nothing any more.
    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Relaxed)
    }

    /// What dead servers had running is lost; what waited goes on waiting, here.
    pub(super) fn take_over(self: &Arc<Self>) -> Result<()> {
        let store = self.store()?;
        let recovered = recovery::recover(self.engine.state(), store, self.engine.owner())?;
        for exec in &recovered.lost {
            tracing::warn!(exec_id = %exec.exec_id, "lost in a crash");
        }
        if !store.open_execs(NOBODY)?.is_empty() {
            for adopted in store.adopt_queued(NOBODY, self.owner())? {
                let id = adopted.record.exec_id.clone();
                // One that fails keeps none of the others from waiting on; it is found missing.
                if let Err(error) = self.wait_again(adopted) {
                    tracing::error!(exec_id = %id, %error, "cannot wait again");
                }
            }
        }
        self.call_next();
        Ok(())
    }

    fn wait_again(&self, adopted: Adopted) -> Result<()> {
        let Adopted {
            opened,
            record,
            sealed_call,
        } = adopted;
        let (space, exec) = (record.ids.space_id.clone(), record.exec_id.clone());
        let again = self
            .seal
            .open(&space, &exec, &sealed_call)
            .and_then(|kept| {
                let account = Account {
                    space: space.clone(),
                    user: kept.call.ids.user_id.clone(),
                };
                let stdin = kept.stdin;
                let project = self.engine.project(&space, &kept.call.workspace)?;
                let draft = Draft::again(&kept.call, project.id().clone(), exec.clone())?;
                project.forget(&exec)?;
                let journal = Mutex::new(project.journal(&exec)?);
                // Policy may have changed meanwhile, and is asked again.
                let plan: Plan = self.engine.plan(&draft, kept.call)?;
                let id = (space.clone(), exec.clone());
                let (live, cancel) = Live::new(id, project.id().clone(), account.clone())?;
                Ok((account, plan, project, live, cancel, journal, stdin))
            });
        let (account, plan, project, live, cancel, journal, stdin) = match again {
            Ok(parts) => parts,
            Err(error) => {
                let mut record = record;
                record.status = match error.code {
                    Code::PolicyDenied => glovebox_model::Status::PolicyDenied,
                    Code::Lost => glovebox_model::Status::Lost,
                    _ => glovebox_model::Status::Error,
                };
                record.ended_at = Some(Timestamp::now());
                record.error = Some(error.of_exec(exec));
                self.store()?.close(opened, record)?;
                return Ok(());
            }
        };
        let live = Arc::new(live);
        locked(&self.live).insert(exec.clone(), Arc::clone(&live));
        let waiting = Waiting {
            plan,
            project,
            live,
            cancel,
            journal,
            stdin,
            start: Start::Queued(opened),
            since: Instant::now(),
            span: tracing::Span::none(),
        };
        locked(&self.hall).line_up(account, exec, waiting);
        Ok(())
    }

    fn forget_old_events(&self) -> Result<()> {
        let before = Timestamp::now() - EVENTS_KEPT;
        for space in self.engine.spaces()? {
            self.layout(&space)?.forget_journals(before)?;
        }
        self.layout(&SpaceId::local())?.forget_journals(before)?;
        Ok(())
    }
}
