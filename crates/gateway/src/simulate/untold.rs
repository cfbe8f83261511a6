//! A connection on which no request has been read: it is told of at its end, however it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_model::{Approach, HostPort, Spoken};

use super::fault_injection::Outcome;
use super::goal::Goal;
use super::seen::{Answer, Seen};
use super::visit::Visit;
use crate::denial::Denial;
use crate::downstream::{Gauge, Near};
use crate::record::Asked;

pub(super) struct Untold {
    visit: Arc<Visit>,
    goal: Goal,
    /// As it was when it came: what ends it says nothing of it.
    judged: Result<Option<HostPort>, Denial>,
    approach: Approach,
    gauge: Gauge,
    /// What was sent before this began, to a proxy.
    before: u64,
    pub(super) spoken: Spoken,
    pub(super) server_name: Option<String>,
    /// Against what is spoken, whatever is said to its destination.
    pub(super) mismatch: Option<Denial>,
    pub(super) outcome: Option<Outcome>,
    /// Set by the first request.
    pub(super) told: Arc<AtomicBool>,
}

impl Untold {
    pub(super) fn new(visit: &Arc<Visit>, near: &Near, goal: &Goal, approach: Approach) -> Self {
        let gauge = near.gauge();
        let before = gauge.read().sent.saturating_sub(near.ahead().len() as u64);
        Self {
            visit: Arc::clone(visit),
            judged: goal.judge(&visit.term),
            goal: goal.clone(),
            approach,
            gauge,
            before,
            spoken: Spoken::Tcp,
            server_name: None,
            mismatch: None,
            outcome: None,
            told: Arc::default(),
        }
    }

    pub(super) fn approach(&self) -> Approach {
        self.approach
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        if self.told.load(Ordering::Relaxed) {
            return;
        }
        let term = &self.visit.term;
        let spent = || Denial::limit("egress_bytes", term.bytes_most());
        let denial = self.judged.clone().err();
        let denial = denial
            .or(self.mismatch.take())
            .or_else(|| self.visit.count(&self.goal).err())
            .or_else(|| term.is_spent().then(spent));
        let mut asked = Asked::new(self.approach, self.spoken, &self.goal.host, self.goal.port);
        asked.rule = self.judged.clone().ok().flatten();
        let mut seen = Seen::new(&asked, denial.as_ref());
        seen.server_name = self.server_name.take();
        let faulty = self.outcome.filter(|it| it.fault.is_some());
        seen.answer = faulty.map(|it| Answer {
            status: None,
            preset: None,
            fault: it.fault,
            delay_ms: it.delay_ms,
        });
        // Of a handshake nothing would have been the program's own.
        if self.spoken != Spoken::Tls {
            seen.body_bytes = self.gauge.read().sent.saturating_sub(self.before);
        }
        self.visit.tell(asked, denial.as_ref(), &seen);
    }
}
