//! What a simulation showed, held against what leaves when the same is run for real. The first
//! thing that was not shown, or not so often, ends it.
//!
//! A request is compared by host, port, method and path. Its query is not: it was not recorded.
//! Its body is compared by its digest if the preview has one and the body is kept back whole
//! before any of it leaves; one that is larger than [`BODY_MOST`] is compared with nothing, except
//! that it cannot be one that was shown smaller. A path that is longer than what is recorded of
//! one matches nothing.
//!
//! A connection that was shown is none for requests: those are read, inside TLS too, and each must
//! have been shown itself. What is neither HTTP nor TLS is compared with nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use glovebox_egress::Host;
use glovebox_model::{NetCode, NetworkRequest};

use crate::carry::Story;
use crate::denial::Denial;
use crate::destination::Destination;
use crate::record::PATH_MOST;
use crate::term::Term;
use crate::upload::Content;

/// What is kept back of a body for its digest.
pub(crate) const BODY_MOST: u64 = 1024 * 1024;

/// The outward requests of a simulation that somebody agreed to.
#[derive(Debug, Clone, Default)]
pub struct Previewed {
    shown: AllShown,
    names: BTreeSet<String>,
}

/// By host and port, with how often each may still leave.
type AllShown = BTreeMap<(String, u16), BTreeMap<Shown, u64>>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    /// None: a connection.
    request: Option<(String, String)>,
    body: Option<(String, u64)>,
}

/// One of them. Without a method it is a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewedRequest {
    pub host: String,
    pub port: u16,
    pub method: Option<String>,
    /// Without its query.
    pub path: Option<String>,
    pub body_bytes: u64,
    /// None: any body will do.
    pub body_digest: Option<String>,
}

impl From<&NetworkRequest> for PreviewedRequest {
    fn from(request: &NetworkRequest) -> Self {
        Self {
            host: request.host.clone(),
            port: request.port,
            method: request.method.clone(),
            path: request.path.clone(),
            body_bytes: request.body_bytes,
            body_digest: request.body_digest.clone(),
        }
    }
}

impl Previewed {
    /// Each one may leave as often as it is in there.
    pub fn new(requests: impl IntoIterator<Item = PreviewedRequest>) -> Self {
        let mut all = Self::default();
        for request in requests {
            let host = match Host::parse(&request.host) {
                Ok(host) => host.to_string(),
                Err(_) => request.host,
            };
            // One with a method and no path, or a path and no method, is like no request.
            let asked = match (request.method, request.path) {
                (None, None) => None,
                (method, path) => Some((method.unwrap_or_default(), path.unwrap_or_default())),
            };
            let digest = request.body_digest.filter(|_| asked.is_some());
            let shown = Shown {
                request: asked,
                body: digest.map(|it| (it, request.body_bytes)),
            };
            all.names.insert(host.clone());
            let at = all.shown.entry((host, request.port)).or_default();
            *at.entry(shown).or_default() += 1;
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
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.method, &self.path) {
            (Some(method), Some(path)) => {
                write!(f, "{method} {}:{}{path}", self.host, self.port)
            }
            _ => write!(f, "{}:{}", self.host, self.port),
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
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) content: &'a Content,
}

impl Shown {
    fn is(&self, method: &str, path: &str) -> bool {
        let same = |it: &(String, String)| it.0 == method && it.1 == path;
        self.request.as_ref().is_some_and(same)
    }

    fn has(&self, content: &Content) -> bool {
        match (&self.body, content) {
            (None, _) | (Some(_), Content::Unread) => true,
            (Some((shown, _)), Content::Whole(digest)) => shown == digest,
            (Some((_, bytes)), Content::TooLarge) => *bytes > BODY_MOST,
        }
    }
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
        request: Option<(&str, &str)>,
        what: impl Fn(&Shown) -> bool,
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
        let cut = |text: &str| text.chars().take(PATH_MOST).collect();
        rest.stray = Some(Stray {
            host: at.0,
            port: at.1,
            method: request.map(|(method, _)| cut(method)),
            path: request.map(|(_, path)| cut(path)),
        });
        None
    }
}

impl Term {
    /// Whether anything to it was shown, used up or not.
    pub(crate) fn previews(&self, destination: &Destination) -> bool {
        self.preview().is_some_and(|it| it.any(destination))
    }

    /// Whether requests to it may still be made.
    pub(crate) fn previews_requests(&self, destination: &Destination) -> bool {
        let request = |one: &Shown| one.request.is_some();
        self.preview()
            .is_some_and(|it| it.has_left(destination, request))
    }

    /// Whether a connection to it may still be made.
    pub(crate) fn previews_connections(&self, destination: &Destination) -> bool {
        let connection = |one: &Shown| one.request.is_none();
        self.preview()
            .is_some_and(|it| it.has_left(destination, connection))
    }

    /// Whether a request's body must be known before it leaves.
    pub(crate) fn previews_body(&self, at: &Destination, method: &str, path: &str) -> bool {
        let compared = |one: &Shown| one.is(method, path) && one.body.is_some();
        self.preview().is_some_and(|it| it.has_left(at, compared))
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
        let taken = preview.take(destination, None, |one| one.request.is_none());
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
        let taken = preview.take(destination, None, |_| false);
        self.stay(story, preview, taken).map(drop)
    }

    /// Before anything of a request is sent. One whose body is the same as was shown is used
    /// before one of which no body is known.
    pub(crate) fn clear_request(
        &self,
        story: &Story,
        destination: &Destination,
        leaving: Leaving<'_>,
    ) -> Result<Cleared, Denial> {
        let Some(preview) = self.preview() else {
            return Ok(Cleared(()));
        };
        let Leaving {
            method,
            path,
            content,
        } = leaving;
        // What was cut off when it was recorded cannot be told from another with that beginning.
        let whole = path.chars().count() < PATH_MOST;
        let fits = |one: &Shown| whole && one.is(method, path) && one.has(content);
        let best = preview.has_left(destination, |one| fits(one) && one.body.is_some());
        let asked = Some((method, path));
        let taken = preview.take(destination, asked, |one| {
            fits(one) && one.body.is_some() == best
        });
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
