//! What is asked of a preview before anything is dialled or sent.

use glovebox_model::NetCode;

use super::shown::{Leaving, Shown, Whole};
use super::{Cleared, Preview};
use crate::connection::Story;
use crate::denial::Denial;
use crate::destination::Destination;
use crate::exec_session::Term;
use crate::upload::Content;

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
