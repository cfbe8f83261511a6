//! The API within one process, with a directory that is shared with its agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use glovebox_engine::{
    DirectoryToShare, Dispatcher, KeySource, ServerConfig, ServerPurpose, Spawner,
    ToolchainSettings, host_facts,
};
use glovebox_model::Result;
use glovebox_policy::Config;
use glovebox_serve::{Inside, LocalAgent, Who};
use glovebox_store::StateDir;
use glovebox_workspace::toolchain;
use serde_json::Value;

pub(crate) struct Desk {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) inside: Inside,
    runtime: tokio::runtime::Runtime,
}

pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {}",
            self.status,
            String::from_utf8_lossy(&self.body)
        )
    }
}

/// The directory that is shared, in the test's own.
pub(crate) const SHARED: &str = "project";

/// What is shared is `SHARED` below the directory that comes back, made anew.
pub(crate) fn place() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(SHARED)).unwrap();
    directory
}

pub(crate) fn open_rules(
    spawner: Spawner,
    directory: &Path,
    shared: PathBuf,
    homes: Vec<PathBuf>,
    config: &str,
) -> Result<Arc<Dispatcher>> {
    let rules = ServerConfig {
        state: StateDir::open(directory.join("state")).unwrap(),
        database: None,
        config: Config::parse(config, "none").unwrap(),
        shadow: None,
        host: host_facts(),
        concurrency_ceiling: 4,
        secrets_key: KeySource::Usual,
        purpose: ServerPurpose::Callers,
        shared: Some(DirectoryToShare {
            toolchains: ToolchainSettings {
                host: toolchain::Host::of_process(&shared, None),
                mode: toolchain::Mode::Off,
            },
            directory: shared,
            homes,
        }),
    };
    Dispatcher::open(rules, spawner)
}

impl Desk {
    pub(crate) fn open(config: &str) -> Self {
        Self::at(place(), config)
    }

    pub(crate) fn at(directory: tempfile::TempDir, config: &str) -> Self {
        Self::of(Spawner::fork().unwrap(), directory, config)
    }

    pub(crate) fn of(spawner: Spawner, directory: tempfile::TempDir, config: &str) -> Self {
        let shared = directory.path().join(SHARED);
        let dispatcher = open_rules(spawner, directory.path(), shared, Vec::new(), config).unwrap();
        let agent = LocalAgent {
            name: "mcp".parse().unwrap(),
            user_id: Some("ann".to_owned()),
        };
        let keys = dispatcher.state().keys().to_owned();
        let inside = Inside::open(Arc::clone(&dispatcher), &keys, agent).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self {
            directory,
            dispatcher,
            inside,
            runtime,
        }
    }

    pub(crate) fn agent(&self) -> Who {
        self.inside.caller(None).unwrap()
    }

    pub(crate) fn project(&self) -> String {
        self.dispatcher.shared_project().unwrap().to_string()
    }

    pub(crate) fn shared(&self) -> PathBuf {
        self.directory.path().join(SHARED)
    }

    pub(crate) fn send(&self, who: &Who, request: Request<Body>) -> Said {
        self.runtime.block_on(async {
            let response = self.inside.send(who, request).await;
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            Said {
                status,
                body: body.to_vec(),
            }
        })
    }

    pub(crate) fn get(&self, path: &str) -> Said {
        self.send(&self.agent(), request(Method::GET, path, None))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Said {
        self.send(&self.agent(), request(Method::POST, path, Some(body)))
    }

    pub(crate) fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.shared().join(path)).unwrap()
    }

    /// An exec of a line of shell on what is shared.
    pub(crate) fn run(&self, line: &str, also: &Value) -> Said {
        let mut body = crate::house::shell(line);
        body["project_id"] = Value::from(self.project());
        for (key, value) in also.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.post("/v1/execs", &body)
    }

    /// Gives back everything but the directory.
    pub(crate) fn close(self) -> tempfile::TempDir {
        let drained = self.dispatcher.drain(Duration::from_secs(60), &|| false);
        drained.unwrap();
        self.directory
    }
}

pub(crate) fn request(method: Method, path: &str, body: Option<&Value>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    match body {
        Some(body) => request
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap(),
        None => request.body(Body::empty()).unwrap(),
    }
}
