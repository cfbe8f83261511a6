//! One request that was shown, and one that wants to leave.

use glovebox_model::{NetworkRequest, Spoken};

use crate::head::Head;
use crate::record::PATH_MOST;
use crate::upload::Content;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Connection,
    Request(Box<Whole>),
}

/// A request of which all is known that is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Whole {
    is_secure: bool,
    method: String,
    path: String,
    query: Option<String>,
    headers: String,
    body: String,
}

impl Shown {
    /// None: nothing can be compared with it.
    pub(super) fn of(request: &NetworkRequest) -> Option<Self> {
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

    pub(super) fn request(&self) -> Option<&Whole> {
        match self {
            Self::Connection => None,
            Self::Request(whole) => Some(whole),
        }
    }
}

impl Whole {
    pub(super) fn has(&self, content: &Content) -> bool {
        matches!(content, Content::Whole(digest) if *digest == self.body)
    }
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
    pub(super) fn differs(&self, shown: &Whole) -> Option<Differs> {
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
pub(super) enum Differs {
    Wholly,
    Query,
    Headers,
    Body,
}

impl Differs {
    pub(super) fn told(self, content: &Content) -> Option<&'static str> {
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
