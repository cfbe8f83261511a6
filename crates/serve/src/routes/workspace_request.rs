//! What somebody wants of one workspace.

use axum::http::StatusCode;
use axum::response::Response;
use glovebox_engine::Workspace;
use glovebox_model::{Code, ProjectId, Result};
use glovebox_snapshot::Watch;
use serde::Serialize;

use super::workspaces;
use crate::app::App;
use crate::auth::Caller;
use crate::body::Mutation;
use crate::failure::Answer;
use crate::idempotency::{Outcome, once};

/// It owns everything, since what has a key goes on when the client goes away.
#[derive(Debug)]
pub(super) struct WorkspaceRequest {
    app: App,
    caller: Caller,
    project: ProjectId,
    /// A workspace that is not there is made.
    makes: bool,
}

impl WorkspaceRequest {
    pub(super) fn new(app: App, caller: Caller, name: &str) -> Answer<Self> {
        let project = workspaces::project(&caller, name)?;
        Ok(Self::of(app, caller, project))
    }

    pub(super) fn of(app: App, caller: Caller, project: ProjectId) -> Self {
        Self {
            app,
            caller,
            project,
            makes: false,
        }
    }

    /// The person at the machine gets a workspace that is not there yet, as their first run would.
    pub(super) fn making(self) -> Self {
        Self {
            makes: self.caller.is_at_machine(),
            ..self
        }
    }

    /// Asks about a workspace that is there.
    pub(super) async fn look<T: Send + 'static>(
        self,
        what: &'static str,
        work: impl FnOnce(&Workspace<'_>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let (eyes, by) = (self.caller.eyes(), self.caller.actor());
        let found = self.app.ask(what, move |dispatcher| {
            let workspace = match self.makes {
                true => dispatcher.make_workspace(&eyes, &self.project, Some(by)),
                false => dispatcher.workspace(&eyes, &self.project, Some(by)),
            };
            match workspace {
                Err(error) if error.code == Code::NotFound => Ok(None),
                workspace => work(&workspace?).map(Some),
            }
        });
        found.await?.ok_or_else(workspaces::unknown)
    }

    /// Goes through the whole of it, for as long as somebody waits.
    pub(super) async fn haul<T: Send + 'static>(
        self,
        what: &'static str,
        work: impl FnOnce(&Workspace<'_>, &mut dyn Watch) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let (eyes, by) = (self.caller.eyes(), self.caller.actor());
        let found = self.app.haul(what, move |dispatcher, watch| {
            match dispatcher.workspace(&eyes, &self.project, Some(by)) {
                Err(error) if error.code == Code::NotFound => Ok(None),
                workspace => work(&workspace?, watch).map(Some),
            }
        });
        found.await?.ok_or_else(workspaces::unknown)
    }

    /// As `look`, once for each key.
    pub(super) async fn change<T: Serialize + Send + 'static>(
        self,
        mutation: &Mutation,
        what: &'static str,
        done: StatusCode,
        work: impl FnOnce(&Workspace<'_>) -> Result<T> + Send + 'static,
    ) -> Answer<Response> {
        let (app, caller) = (self.app.clone(), self.caller.clone());
        let changed = async move { outcome(done, &self.look(what, work).await?) };
        once(&app, &caller, mutation, changed).await
    }

    /// As `haul`, once for each key.
    pub(super) async fn overhaul<T: Serialize + Send + 'static>(
        self,
        mutation: &Mutation,
        what: &'static str,
        done: StatusCode,
        work: impl FnOnce(&Workspace<'_>, &mut dyn Watch) -> Result<T> + Send + 'static,
    ) -> Answer<Response> {
        let (app, caller) = (self.app.clone(), self.caller.clone());
        let changed = async move { outcome(done, &self.haul(what, work).await?) };
        once(&app, &caller, mutation, changed).await
    }
}

fn outcome(done: StatusCode, body: &impl Serialize) -> Answer<Outcome> {
    match done {
        StatusCode::NO_CONTENT => Ok(Outcome::empty()),
        done => Outcome::json(done, body),
    }
}
