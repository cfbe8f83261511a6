//! The API for this process itself: the same router without a listener. Whoever speaks another
//! protocol with agents asks here as the agent that it speaks for, and may do what that one may.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use glovebox_api::client::FileContent;
use glovebox_engine::Dispatcher;
use glovebox_model::{Code, Error, IdError, Result, Role, Scope, SpaceId, Stage, TokenName};
use glovebox_workspace::Dir;
use tower::ServiceExt;

use crate::app::{App, LocalProgress};
use crate::auth::{
    Authenticator, Caller, Identity, at_host, operator_at_machine, person_at, unauthenticated,
};
use crate::failure::{Answer, Failure};
use crate::metrics::Metrics;
use crate::options::{Options, Times};
use crate::origin_check::Hosts;
use crate::{routes, server};

/// All that a person at a host is asked through.
fn is_an_answer(path: &str) -> bool {
    path.starts_with("/v1/approvals/")
}

/// An agent whose host started this process. It is in the space `local`, with all that an agent may
/// do and nothing else: it answers no approval.
#[derive(Debug, Clone)]
pub struct LocalAgent {
    /// What it is called in records; also its `agent_id`.
    pub name: TokenName,
    /// For whom it acts.
    pub user_id: Option<String>,
}

/// A file of this machine in the place of a body; nothing from a network can bring one.
#[derive(Debug, Clone)]
pub(crate) struct LocalFile(pub(crate) FileContent);

/// A directory that the person at the machine named.
#[derive(Debug, Clone)]
pub(crate) struct LocalDirectory(PathBuf);

impl LocalDirectory {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn open(&self) -> Result<Dir> {
        Dir::open_trusted(&self.0).map_err(|error| {
            let message = format!("cannot open the directory `{}`", self.0.display());
            Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
        })
    }
}

/// Sends requests to the API from within. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inside {
    app: App,
    router: Router,
    /// Who asks when no request of the network stands behind it.
    agent: Option<Who>,
}

/// A caller that was made sure of.
#[derive(Debug, Clone)]
pub struct Who {
    caller: Caller,
    since: Instant,
}

impl Inside {
    /// Without any listener. `keys` is the directory of `token.key`. What the dispatcher shares is
    /// shared with this agent, and with nobody else.
    pub fn open(dispatcher: Arc<Dispatcher>, keys: &Path, agent: LocalAgent) -> Result<Self> {
        let auth = Authenticator::new(keys, Options::BAD_TOKENS);
        let shared = dispatcher.shared_project();
        let agent = at_host(auth.key()?, agent.name, agent.user_id, shared);
        let metrics = Arc::new(Metrics::new());
        server::count_ends(&dispatcher, &metrics);
        // Whoever started this process sits before the agent that it was started for.
        let elicits = dispatcher.elicitation().unwrap_or(true);
        let app = App::new(
            dispatcher,
            auth,
            Hosts::new(None, &[], false),
            metrics,
            Times::default(),
            elicits,
        );
        Ok(Self {
            agent: Some(Who::new(agent)),
            ..Self::beside(app)
        })
    }

    /// For a command of the person at the machine, whose dispatcher has no threads.
    pub(crate) fn of_command(
        dispatcher: Arc<Dispatcher>,
        progress: Option<LocalProgress>,
    ) -> Result<Self> {
        let keys = dispatcher.state().keys().to_owned();
        let name = "operator"
            .parse()
            .map_err(|why: IdError| Error::new(Code::Internal, Stage::Parse, why.to_string()))?;
        let who = Who::new(operator_at_machine(name, dispatcher.shared_project()));
        let app = App::new(
            dispatcher,
            Authenticator::new(&keys, Options::BAD_TOKENS),
            Hosts::new(None, &[], false),
            Arc::new(Metrics::new()),
            Times::default(),
            false,
        );
        Ok(Self {
            agent: Some(who),
            ..Self::beside(app.inline(progress))
        })
    }

    /// In a server, for callers of its own that came by the network.
    pub(crate) fn beside(app: App) -> Self {
        Self {
            router: routes::inside(app.clone()),
            app,
            agent: None,
        }
    }

    /// Who sent a request of the network, by what was found out about it on its way in; without
    /// one, the agent whose host started this process. `None`: nobody who may ask for anything.
    pub fn caller(&self, parts: Option<&Parts>) -> Option<Who> {
        match parts {
            None => self.agent.clone(),
            Some(parts) => match parts.extensions.get::<Identity>() {
                Some(Identity(Ok(caller))) => Some(Who::new(caller.clone())),
                Some(Identity(Err(_))) | None => None,
            },
        }
    }

    /// The person who is shown what this caller asks. They answer its approvals, and do nothing
    /// else.
    pub fn person(&self, who: &Who) -> Option<Who> {
        let caller = match who.caller.asker() {
            None => person_at(self.app.auth().key().ok()?, &who.caller),
            Some(_) => who.caller.clone(),
        };
        Some(Who {
            caller,
            since: who.since,
        })
    }

    /// Whether what a person answers at an agent's host counts.
    pub fn elicits(&self) -> bool {
        self.app.elicits()
    }

    /// What states are sealed with that callers bring back: the same at every server with this key.
    pub(crate) fn state_key(&self) -> Result<[u8; 32]> {
        Ok(self.app.auth().key()?.derive("mcp request state", &[]))
    }

    pub fn dispatcher(&self) -> &Arc<Dispatcher> {
        self.app.dispatcher()
    }

    /// The answer is what the network would get: its body may be a stream, and whoever drops it is a
    /// client that went away. Headers that say who asks are not looked at.
    pub async fn send(&self, who: &Who, mut request: Request<Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let checked = self.may_send(who, &path).await;
        let known = Identity(checked.map(|()| who.caller.clone()));
        request.extensions_mut().insert(known);
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn may_send(&self, who: &Who, path: &str) -> Answer<()> {
        if who.caller.asker().is_some() && !is_an_answer(path) {
            return Err(Failure::new(
                Code::Forbidden,
                "a person at an agent's host answers what it asks, and nothing else",
            ));
        }
        // A call may last longer than its token.
        let recent = who.since.elapsed() < self.app.times().recheck;
        match recent || self.app.auth().is_still_good(&self.app, &who.caller).await {
            true => Ok(()),
            false => Err(unauthenticated()),
        }
    }
}

impl Who {
    fn new(caller: Caller) -> Self {
        Self {
            caller,
            since: Instant::now(),
        }
    }

    /// The same for every request of one caller, and never another's.
    pub fn id(&self) -> &str {
        self.caller.token().token_id.as_str()
    }

    /// What it is called in records.
    pub fn name(&self) -> String {
        self.caller.name()
    }

    pub fn space(&self) -> &SpaceId {
        self.caller.space()
    }

    pub fn role(&self) -> Role {
        self.caller.token().role
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.caller.token().may(scope)
    }
}
