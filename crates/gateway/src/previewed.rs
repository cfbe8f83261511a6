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

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use glovebox_egress::Host;
use glovebox_model::{NetCode, NetworkRequest, Spoken};

use crate::carry::Story;
use crate::denial::Denial;
use crate::destination::Destination;
use crate::head::Head;
use crate::record::PATH_MOST;
use crate::term::Term;
use crate::upload::Content;

/// What is kept back of a body for its digest.
pub(crate) const BODY_MOST: usize = 1024 * 1024;

/// The outward requests of a simulation that somebody agreed to.
#[derive(Debug, Clone, Default)]
pub struct Previewed {
    shown: AllShown,
    names: BTreeSet<String>,
}

/// By host and port, with how often each may still leave.
type AllShown = BTreeMap<(String, u16), BTreeMap<Shown, u64>>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Connection,
    Request(Box<Whole>),
}

/// A request of which all is known that is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Whole {
    is_secure: bool,
    method: String,
    path: String,
    query: Option<String>,
    headers: String,
    body: String,
}

impl Shown {
    /// None: nothing can be compared with it.
    fn of(request: &NetworkRequest) -> Option<Self> {
        if request.method.is_none() && request.path.is_none() {
            return Some(Self::Connection);
        }
        Some(Self::Request(Box::new(Whole {
            is_secure: request.spoken == Spoken::Https,
            method: request.method.clone()?,
            path: request.path.clone()?,
            query: request.query_digest.clone(),
            headers: request.headers_digest.clone()?,
            body: request.body_digest.clone()?,
        })))
    }

    fn request(&self) -> Option<&Whole> {
        match self {
            Self::Connection => None,
            Self::Request(whole) => Some(whole),
        }
    }
}

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

/// A request whose head has been read, and nothing of it has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving<'a> {
    pub(crate) is_secure: bool,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) head: &'a Head,
}

impl Leaving<'_> {
    /// In what it is not this one; `None` if it is.
    fn differs(&self, shown: &Whole) -> Option<Differs> {
        // What was cut off when it was recorded cannot be told from another with that beginning.
        let is_cut = self.path.chars().count() >= PATH_MOST;
        let asked = (shown.is_secure, &*shown.method, &*shown.path);
        if is_cut || asked != (self.is_secure, self.method, self.path) {
            return Some(Differs::Wholly);
        }
        if shown.query != self.head.query_digest {
            return Some(Differs::Query);
        }
        (shown.headers != self.head.headers_digest).then_some(Differs::Headers)
    }
}

/// The later the more alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differs {
    Wholly,
    Query,
    Headers,
    Body,
}

impl Differs {
    fn told(self, content: &Content) -> Option<&'static str> {
        match (self, content) {
            // Used up: its body was not even read.
            (Self::Wholly, _) | (Self::Body, Content::Unread) => None,
            (Self::Query, _) => Some("another query than was shown"),
            (Self::Headers, _) => Some("other headers than were shown"),
            (Self::Body, Content::TooLarge) => Some("a body too large to be compared"),
            (Self::Body, Content::Trailed) => Some("trailers, which cannot be compared"),
            (Self::Body, Content::Whole(_)) => Some("another body than was shown"),
        }
    }
}

fn is_body(shown: &Whole, content: &Content) -> bool {
    matches!(content, Content::Whole(digest) if *digest == shown.body)
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
        let is_it = |one: &Whole| leaving.differs(one).is_none() && is_body(one, content);
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

impl Term {
    /// Whether anything to it was shown, used up or not.
    pub(crate) fn previews(&self, destination: &Destination) -> bool {
        self.preview().is_some_and(|it| it.any(destination))
    }

    /// Whether requests to it may still be made.
    pub(crate) fn previews_requests(&self, destination: &Destination) -> bool {
        let request = |one: &Shown| one.request().is_some();
        self.preview()
            .is_some_and(|it| it.has_left(destination, request))
    }

    /// Whether a connection to it may still be made.
    pub(crate) fn previews_connections(&self, destination: &Destination) -> bool {
        let connection = |one: &Shown| *one == Shown::Connection;
        self.preview()
            .is_some_and(|it| it.has_left(destination, connection))
    }

    /// Whether a request may leave if its body is one that was shown.
    pub(crate) fn previews_head(&self, at: &Destination, leaving: Leaving<'_>) -> bool {
        let is_it = |one: &Whole| leaving.differs(one).is_none();
        let is_it = |one: &Shown| one.request().is_some_and(is_it);
        self.preview().is_some_and(|it| it.has_left(at, is_it))
    }

    /// For what is held to no preview.
    pub(crate) fn clear_unheld(&self) -> Option<Cleared> {
        self.preview().is_none().then_some(Cleared(()))
    }

    /// Before a connection is dialled of which nothing is read.
    pub(crate) fn clear_connection(
        &self,
        story: &Story,
        destination: &Destination,
    ) -> Result<Cleared, Denial> {
        let Some(preview) = self.preview() else {
            return Ok(Cleared(()));
        };
        let taken = preview.take_connection(destination, |one| *one == Shown::Connection);
        self.stay(story, preview, taken)
    }

    /// For what is a request to its host and cannot be read here: no preview shows it.
    pub(crate) fn clear_unread(
        &self,
        story: &Story,
        destination: &Destination,
    ) -> Result<(), Denial> {
        let Some(preview) = self.preview() else {
            return Ok(());
        };
        let taken = preview.take_connection(destination, |_| false);
        self.stay(story, preview, taken).map(drop)
    }

    /// Before anything of a request is sent.
    pub(crate) fn clear_request(
        &self,
        story: &Story,
        destination: &Destination,
        leaving: Leaving<'_>,
        content: &Content,
    ) -> Result<Cleared, Denial> {
        let Some(preview) = self.preview() else {
            return Ok(Cleared(()));
        };
        let taken = preview.take_request(destination, leaving, content);
        self.stay(story, preview, taken)
    }

    fn stay(
        &self,
        story: &Story,
        preview: &Preview,
        taken: Option<Cleared>,
    ) -> Result<Cleared, Denial> {
        if let Some(cleared) = taken {
            return Ok(cleared);
        }
        // Its own connection is kept for a moment, so that the refusal can be read.
        story.keep();
        self.close();
        let shown = preview.stray().map(|it| it.to_string());
        Err(strayed(&shown.unwrap_or_default()))
    }
}

pub(crate) fn strayed(what: &str) -> Denial {
    Denial::new(
        NetCode::NotPreviewed,
        format!(
            "`{what}` is not in the simulation that was agreed to, or not so often; nothing gets out any more"
        ),
        AGAIN,
    )
}

pub(crate) fn unknown_name(name: &str) -> Denial {
    Denial::new(
        NetCode::NotPreviewed,
        format!("`{name}` is not in the simulation that was agreed to"),
        AGAIN,
    )
}

pub(crate) const AGAIN: &str = "simulate it again, and agree to what that shows";
