//! What was tried, told to the log as it happens and counted for the record.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_model::{Approach, Attempt, HostPort, NetCode, Refused, Spoken};
use jiff::Timestamp;

use crate::denial::Denial;
use crate::destination::Destination;
use crate::simulate::Seen;

/// Told in order and one at a time; whoever listens must be quick.
pub trait Log: Send + Sync + fmt::Debug {
    fn attempt(&self, attempt: &Attempt);

    /// In a simulation, beside the attempts: once for each question to the DNS, each request, and
    /// each connection on which no request was read. Nothing is left out, however often it is
    /// tried.
    fn simulated(&self, _seen: &Seen) {}

    /// In a simulation, in the place of what has no name by which it could be told of.
    fn untold(&self) {}
}

/// A program that tries in a loop must not fill the log's disk; later refusals are only counted.
/// What was let through is always told: its limits are those of the policy.
const REFUSALS_TOLD_MOST: u64 = 10_000;
/// Names are told once each, and must not use up what is kept for connections.
const NAMES_TOLD_MOST: usize = 2_000;
const REFUSED_MOST: usize = 32;
pub(crate) const PATH_MOST: usize = 1024;

/// One attempt, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) approach: Approach,
    pub(crate) spoken: Spoken,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) rule: Option<HostPort>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) request: Option<(String, String)>,
}

impl Asked {
    pub(crate) fn new(approach: Approach, spoken: Spoken, host: &str, port: u16) -> Self {
        Self {
            approach,
            spoken,
            host: host.to_owned(),
            port,
            rule: None,
            address: None,
            request: None,
        }
    }

    pub(crate) fn to(approach: Approach, spoken: Spoken, destination: &Destination) -> Self {
        Self::new(approach, spoken, destination.name(), destination.port())
    }

    /// The path without its query, which may hold anything.
    pub(crate) fn with_request(mut self, method: &str, path: &str) -> Self {
        let path = path.chars().take(PATH_MOST).collect();
        self.request = Some((method.to_owned(), path));
        self
    }
}

/// Bytes of one connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

#[derive(Debug)]
pub(crate) struct Record {
    log: Arc<dyn Log>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    seq: u64,
    refusals_told: u64,
    names_told: HashSet<(String, NetCode)>,
    refused: Vec<Refused>,
    refused_more: u64,
}

impl Record {
    pub(crate) fn new(log: Arc<dyn Log>) -> Self {
        Self {
            log,
            state: Mutex::default(),
        }
    }

    /// Counts anew; the log's numbers go on.
    pub(crate) fn begin(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State {
            seq: state.seq,
            ..State::default()
        };
    }

    pub(crate) fn refused(&self) -> (Vec<Refused>, u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.refused.clone(), state.refused_more)
    }

    pub(crate) fn let_through(&self, asked: &Asked) {
        self.tell(asked, None, None);
    }

    pub(crate) fn refuse(&self, asked: &Asked, denial: &Denial) {
        self.tell(asked, Some(denial), None);
    }

    /// A connection is over; with a denial if it was cut.
    pub(crate) fn end(&self, asked: &Asked, denial: Option<&Denial>, moved: Moved) {
        self.tell(asked, denial, Some(moved));
    }

    pub(crate) fn simulated(&self, seen: &Seen) {
        let _in_turn = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.log.simulated(seen);
    }

    pub(crate) fn untold(&self) {
        let _in_turn = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.log.untold();
    }

    fn tell(&self, asked: &Asked, denial: Option<&Denial>, end: Option<Moved>) {
        // Held while the log is told, so that it hears everything in the order of the numbers.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(denial) = denial {
            state.count(asked, denial);
        }
        let code = denial.map_or(NetCode::Ok, |it| it.code);
        if !state.may_tell(asked, code) {
            return;
        }
        state.seq += 1;
        let moved = end.unwrap_or_default();
        let (method, path) = asked.request.clone().unzip();
        self.log.attempt(&Attempt {
            seq: state.seq,
            at: Timestamp::now(),
            code,
            approach: asked.approach,
            spoken: asked.spoken,
            host: asked.host.clone(),
            port: asked.port,
            rule: asked.rule.clone(),
            address: asked.address,
            method,
            path,
            sent: moved.sent,
            received: moved.received,
            ended: end.is_some(),
            hint: denial.and_then(|it| it.hint.clone()),
        });
    }
}

impl State {
    fn may_tell(&mut self, asked: &Asked, code: NetCode) -> bool {
        if asked.approach == Approach::Dns {
            return self.names_told.len() < NAMES_TOLD_MOST
                && self.names_told.insert((asked.host.clone(), code));
        }
        if code == NetCode::Ok {
            return true;
        }
        self.refusals_told += 1;
        self.refusals_told <= REFUSALS_TOLD_MOST
    }

    fn count(&mut self, asked: &Asked, denial: &Denial) {
        let same = |it: &&mut Refused| {
            it.host == asked.host && it.port == asked.port && it.code == denial.code
        };
        if let Some(refused) = self.refused.iter_mut().find(same) {
            refused.times += 1;
        } else if self.refused.len() < REFUSED_MOST {
            self.refused.push(Refused {
                host: asked.host.clone(),
                port: asked.port,
                code: denial.code,
                times: 1,
                hint: denial.hint.clone(),
            });
        } else {
            self.refused_more += 1;
        }
    }
}
