//! The API for a command of the person at this machine: the server's own router, without a listener,
//! a token or a thread.

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use glovebox_api::client::{ApiRequest, Client, Content, Pieces, SendError, SendResult, Transport};
use glovebox_engine::{Dispatcher, Settings};
use glovebox_model::{Code, Error, ProjectId, Result, Stage};

use crate::app::LocalProgress;
use crate::failure::Failure;
use crate::inside::{Inside, LocalDirectory, LocalFile, Who};

/// The API in this process.
#[derive(Debug)]
pub struct LocalApi {
    dispatcher: Arc<Dispatcher>,
    pub client: Client,
}

impl LocalApi {
    /// `directory` is one of the user's own that requests may work on, under the name of
    /// [`LocalApi::project`].
    pub fn open(
        settings: Settings,
        directory: Option<&Path>,
        progress: Option<LocalProgress>,
    ) -> Result<Self> {
        Self::over(Dispatcher::of_command(settings, directory)?, progress)
    }

    /// For tokens, settings and secrets, which are in the store alone.
    pub fn of_store(settings: Settings) -> Result<Self> {
        Self::over(Dispatcher::of_store(settings)?, None)
    }

    fn over(dispatcher: Arc<Dispatcher>, progress: Option<LocalProgress>) -> Result<Self> {
        let inside = Inside::of_command(Arc::clone(&dispatcher), progress)?;
        let who = inside.caller(None).ok_or_else(|| internal("no caller"))?;
        let client = Client::in_process(Box::new(InProcess { inside, who }))?;
        Ok(Self { dispatcher, client })
    }

    pub fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// The workspace that the directory is.
    pub fn project(&self) -> Option<&ProjectId> {
        self.dispatcher.shared_project()
    }
}

#[derive(Debug)]
struct InProcess {
    inside: Inside,
    who: Who,
}

impl InProcess {
    async fn send(&self, request: &ApiRequest) -> SendResult<Pieces> {
        let request = http_request(request).map_err(SendError::Refused)?;
        let mut response = self.inside.send(&self.who, request).await;
        if let Some(failure) = response.extensions_mut().remove::<Failure>() {
            return Err(SendError::Refused(*failure.0));
        }
        let status = response.status();
        if !status.is_success() {
            let error = internal(&format!("the API answered {status}"));
            return Err(SendError::Refused(error));
        }
        let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
        let pieces = response.into_body().into_data_stream();
        Ok(Pieces::new(
            content_type,
            pieces.map(|piece| {
                piece.map_err(|error| {
                    let error = internal("the answer broke off").caused_by(error);
                    SendError::Broken(error)
                })
            }),
        ))
    }
}

impl Transport for InProcess {
    fn address(&self) -> String {
        "this machine".to_owned()
    }

    fn open<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, SendResult<Pieces>> {
        Box::pin(self.send(request))
    }
}

fn http_request(request: &ApiRequest) -> Result<Request<Body>> {
    let mut built = Request::builder()
        .method(&request.method)
        .uri(request.target.to_string())
        .header(header::ACCEPT, request.accept);
    for (name, value) in &request.headers {
        built = built.header(name, value);
    }
    let (kind, body) = match &request.content {
        Content::Nothing | Content::Directory(_) => (None, Body::empty()),
        Content::Json(bytes) => (Some("application/json"), Body::from(bytes.clone())),
        Content::Bytes(bytes) => (Some("application/octet-stream"), Body::from(bytes.clone())),
        Content::File(_) => (Some("application/octet-stream"), Body::empty()),
    };
    if let Some(kind) = kind {
        built = built.header(header::CONTENT_TYPE, kind);
    }
    match &request.content {
        Content::File(file) => built = built.extension(LocalFile(file.clone())),
        Content::Directory(path) => built = built.extension(LocalDirectory::new(path)),
        Content::Nothing | Content::Json(_) | Content::Bytes(_) => {}
    }
    built
        .body(body)
        .map_err(|error| internal("the request cannot be made").caused_by(error))
}

fn internal(message: &str) -> Error {
    Error::new(Code::Internal, Stage::Parse, message)
}
