//! One call of a tool: who calls, what they may be asked, and the way to the API.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use glovebox_model::{Code, Error, Stage};
use rmcp::RoleServer;
use rmcp::model::{InputResponses, ProtocolVersion, RequestStateCodec};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::api::{Api, Call, Caller, Reply};

/// How long a call lasts at most whose client hears of its progress.
const PATIENT: Duration = Duration::from_secs(600);
/// Clients give up after a minute of silence; they get an answer before.
const SILENT: Duration = Duration::from_secs(50);

pub(crate) struct Task {
    pub(crate) api: Arc<dyn Api>,
    pub(crate) caller: Caller,
    pub(crate) context: RequestContext<RoleServer>,
    /// What is meant where no project is named.
    pub(crate) project: String,
    /// Execs of one conversation share grants.
    pub(crate) conversation: Option<String>,
    /// How people answer who cannot be asked here.
    pub(crate) approvals_at: String,
    pub(crate) codec: Arc<RequestStateCodec>,
    /// What the sealed state belongs to: who, which tool, which arguments.
    pub(crate) binding: Vec<u8>,
    pub(crate) state: Option<String>,
    pub(crate) responses: Option<InputResponses>,
}

impl Task {
    /// The state of a call can be taken up only by the same caller with the same call.
    pub(crate) fn bind(caller: &Caller, tool: &str, arguments: &serde_json::Value) -> Vec<u8> {
        let mut hash = Sha256::new();
        for part in [&caller.id, tool, &arguments.to_string()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().to_vec()
    }

    pub(crate) fn project<'a>(&'a self, named: &'a Option<String>) -> &'a str {
        named.as_deref().unwrap_or(&self.project)
    }

    /// A route of a workspace.
    pub(crate) fn workspace(&self, named: &Option<String>) -> String {
        let call = Call::get("/v1/workspaces").segment(self.project(named));
        call.target().to_owned()
    }

    pub(crate) async fn stream(&self, call: Call) -> Result<Response<Body>, Error> {
        Ok(self.api.send(&self.caller, call.request()?).await)
    }

    pub(crate) async fn reply(&self, call: Call) -> Result<Reply, Error> {
        self.reply_as(&self.caller, call).await
    }

    pub(crate) async fn reply_as(&self, caller: &Caller, call: Call) -> Result<Reply, Error> {
        Reply::of(self.api.send(caller, call.request()?).await).await
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.reply(call).await?.json()
    }

    /// Whether there is no such workspace at all; the error otherwise.
    pub(crate) async fn not_made(&self, named: &Option<String>, error: Error) -> Result<(), Error> {
        match self.reply(Call::get(&self.workspace(named))).await {
            Err(missing) if missing.code == Code::NotFound => Ok(()),
            _ => Err(error),
        }
    }

    /// Whether its request and its answer are all that there is, as since 2026-07-28.
    pub(crate) fn is_stateless(&self) -> bool {
        let version = self.context.protocol_version();
        version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    }

    /// How long the client is kept waiting.
    pub(crate) fn patience(&self) -> Duration {
        match self.context.meta.get_progress_token().is_some() {
            true => PATIENT,
            false => SILENT,
        }
    }

    /// The state that an earlier answer to this very call had sealed.
    pub(crate) fn resumed<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let Some(sealed) = &self.state else {
            return Ok(None);
        };
        let opened = self.codec.open_json_with(sealed, &self.binding);
        opened.map(Some).map_err(|error| {
            let message =
                format!("`requestState` is not what this call was answered with: {error}");
            Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("call the tool anew, without `requestState`")
        })
    }
}
