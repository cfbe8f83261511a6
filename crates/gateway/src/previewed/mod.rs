//! What a simulation showed, held against what leaves when the same is run for real. The first
//! thing that was not shown, or not so often, ends it.
//!
//! A request is compared by scheme, host, port, method, path, query, headers and body; the last
//! three by their digests. Its body is kept back whole before any of it leaves: one that is larger
//! than [`BODY_MOST`] or has trailers is like none that was shown. So is a path that is longer than
//! what is recorded of one.
//!
//! A connection that was shown is none for requests: those are read, inside TLS too, and each must
//! have been shown itself. What is neither HTTP nor TLS is compared with nothing.

mod clear;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use glovebox_egress::Host;
use glovebox_model::NetworkRequest;

use crate::destination::Destination;
use crate::record::PATH_MOST;
use crate::upload::Content;

pub(crate) use clear::{AGAIN, strayed, unknown_name};
pub(crate) use shown::Leaving;
use shown::{Differs, Shown, Whole};

/// What is kept back of a body for its digest.
pub(crate) const BODY_MOST: usize = 1024 * 1024;

/// The outward requests of a simulation that people agreed to.
#[derive(Debug, Clone, Default)]
pub struct Previewed {
    shown: AllShown,
    names: BTreeSet<String>,
}

/// By host and port, with how often each may still leave.
type AllShown = BTreeMap<(String, u16), BTreeMap<Shown, u64>>;

impl Previewed {
    /// Each one may leave as often as it is in there. One without a method is a connection.
    pub fn new<'r>(requests: impl IntoIterator<Item = &'r NetworkRequest>) -> Self {
        let mut all = Self::default();
        for request in requests {
            let host = match Host::parse(&request.host) {
                Ok(host) => host.to_string(),
                Err(_) => request.host.clone(),
            };
            all.names.insert(host.clone());
            let at = all.shown.entry((host, request.port)).or_default();
            if let Some(shown) = Shown::of(request) {
                *at.entry(shown).or_default() += 1;
            }
        }
        all
    }
}

/// The first thing that a preview had not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    pub host: String,
    pub port: u16,
    /// Of a request.
    pub method: Option<String>,
    pub path: Option<String>,
    /// In what it is not like one that was shown.
    pub differs: Option<&'static str>,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.method, &self.path) {
            (Some(method), Some(path)) => {
                write!(f, "{method} {}:{}{path}", self.host, self.port)?;
            }
            _ => write!(f, "{}:{}", self.host, self.port)?,
        }
        match self.differs {
            Some(differs) => write!(f, " with {differs}"),
            None => Ok(()),
        }
    }
}

/// That something was held against the preview, if there is one. Nothing is dialled without it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cleared(());

/// What is left of a preview.
#[derive(Debug)]
pub(crate) struct Preview {
    names: BTreeSet<String>,
    rest: Mutex<Rest>,
}

#[derive(Debug)]
struct Rest {
    shown: AllShown,
    stray: Option<Stray>,
}

impl Preview {
    pub(crate) fn new(previewed: Previewed) -> Self {
        Self {
            names: previewed.names,
            rest: Mutex::new(Rest {
                shown: previewed.shown,
                stray: None,
            }),
        }
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn stray(&self) -> Option<Stray> {
        self.rest().stray.clone()
    }

    fn rest(&self) -> std::sync::MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is one, used up or not.
    fn any(&self, destination: &Destination) -> bool {
        let at = (destination.name().to_owned(), destination.port());
        self.rest().shown.contains_key(&at)
    }

    /// Whether there is such a one that is not used up.
    fn has_left(&self, destination: &Destination, what: impl Fn(&Shown) -> bool) -> bool {
        let at = (destination.name().to_owned(), destination.port());
        let rest = self.rest();
        let mut all = rest.shown.get(&at).into_iter().flatten();
        all.any(|(one, left)| *left > 0 && what(one))
    }

    /// Uses one up. None: there is none, and nothing may leave any more.
    fn take(
        &self,
        destination: &Destination,
        what: impl Fn(&Shown) -> bool,
        stray: impl FnOnce(&BTreeMap<Shown, u64>) -> Stray,
    ) -> Option<Cleared> {
        let at = (destination.name().to_owned(), destination.port());
        let mut rest = self.rest();
        if rest.stray.is_some() {
            return None;
        }
        let mut shown = rest.shown.get_mut(&at).into_iter().flatten();
        if let Some((_, left)) = shown.find(|(one, left)| **left > 0 && what(one)) {
            *left -= 1;
            return Some(Cleared(()));
        }
        rest.stray = Some(stray(rest.shown.get(&at).unwrap_or(&BTreeMap::new())));
        None
    }

    fn take_connection(
        &self,
        destination: &Destination,
        what: impl Fn(&Shown) -> bool,
    ) -> Option<Cleared> {
        self.take(destination, what, |_| Stray {
            host: destination.name().to_owned(),
            port: destination.port(),
            method: None,
            path: None,
            differs: None,
        })
    }

    fn take_request(
        &self,
        destination: &Destination,
        leaving: Leaving<'_>,
        content: &Content,
    ) -> Option<Cleared> {
        let is_it = |one: &Whole| leaving.differs(one).is_none() && one.has(content);
        let cut = |text: &str| Some(text.chars().take(PATH_MOST).collect());
        self.take(
            destination,
            |one| one.request().is_some_and(is_it),
            |all| {
                let requests = || all.keys().filter_map(Shown::request);
                let differs = |one| leaving.differs(one).unwrap_or(Differs::Body);
                // One that was shown, and not so often, differs in nothing.
                let closest = match requests().any(is_it) {
                    true => None,
                    false => requests().map(differs).max(),
                };
                Stray {
                    host: destination.name().to_owned(),
                    port: destination.port(),
                    method: cut(leaving.method),
                    path: cut(leaving.path),
                    differs: closest.and_then(|it| it.told(content)),
                }
            },
        )
    }
}
