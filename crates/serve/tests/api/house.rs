//! A server of its own for each test.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use glovebox_engine::{Dispatcher, KeySource, ServerConfig, ServerPurpose, Spawner, host_facts};
use glovebox_policy::Config;
use glovebox_serve::{Listening, Options, Stop, Summary, TokenKey, bootstrap, run};
use glovebox_store::StateDir;
use serde_json::{Value, json};

use crate::client::{Ask, Reply};

pub(crate) struct House {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
    pub(crate) dispatcher: Arc<Dispatcher>,
    stop: Stop,
    server: Option<JoinHandle<Summary>>,
}

impl House {
    pub(crate) fn open() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::of(Spawner::fork().unwrap(), change)
    }

    /// With one that was forked before there were any threads.
    pub(crate) fn of(spawner: Spawner, change: impl FnOnce(&mut Options)) -> Self {
        Self::governed(spawner, "", change)
    }

    /// With a configuration of its operator.
    pub(crate) fn under(config: &str) -> Self {
        Self::governed(Spawner::fork().unwrap(), config, |_| {})
    }

    fn governed(spawner: Spawner, config: &str, change: impl FnOnce(&mut Options)) -> Self {
        // Nothing here is about a disk, and one that is busy elsewhere makes every commit long.
        let memory = tempfile::tempdir_in("/dev/shm");
        let directory = memory.or_else(|_| tempfile::tempdir()).unwrap();
        let rules = ServerConfig {
            state: StateDir::open(directory.path().join("state")).unwrap(),
            database: None,
            config: Config::parse(config, "none").unwrap(),
            shadow: None,
            host: host_facts(),
            concurrency_ceiling: 16,
            secrets_key: KeySource::Usual,
            shared: None,
            purpose: ServerPurpose::Callers,
        };
        let dispatcher = Dispatcher::open(rules, spawner).unwrap();
        let state = dispatcher.state().path().to_owned();
        let key = TokenKey::load_or_create(&state).unwrap();
        let token = bootstrap(dispatcher.store().unwrap(), &key, &state).unwrap();
        let admin = std::fs::read_to_string(token).unwrap().trim().to_owned();
        let mut options = Options::new(&state);
        options.listen = "127.0.0.1:0".to_owned();
        change(&mut options);
        let (told, ready) = mpsc::channel();
        let (stop, served) = (Stop::default(), Arc::clone(&dispatcher));
        let asked = stop.clone();
        let server = std::thread::spawn(move || {
            let ready = |listening: &Listening| told.send(listening.address).unwrap();
            run(options, served, asked, None, ready).unwrap()
        });
        let address = ready.recv_timeout(Duration::from_secs(60)).unwrap();
        Self {
            directory,
            address,
            admin,
            dispatcher,
            stop,
            server: Some(server),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        Ask::new("GET", path).token(&self.admin).send(self.address)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        Ask::new("POST", path)
            .token(&self.admin)
            .json(body)
            .send(self.address)
    }

    /// The secret of a new token.
    pub(crate) fn token(&self, request: &Value) -> String {
        let reply = self.post("/v1/tokens", request);
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["secret"].as_str().unwrap().to_owned()
    }

    pub(crate) fn agent(&self, space: &str) -> String {
        self.token(&json!({"name": format!("agent-{space}"), "role": "agent", "space_id": space}))
    }

    pub(crate) fn stop(&self) {
        self.stop.ask();
    }

    pub(crate) fn close(self) -> Summary {
        self.stop.ask();
        self.ended()
    }

    /// After it was asked to stop.
    pub(crate) fn ended(mut self) -> Summary {
        self.server.take().unwrap().join().unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.stop.ask();
            self.stop.ask();
            let ended = server.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// A line of shell.
pub(crate) fn shell(line: &str) -> Value {
    json!({"exec": {"kind": "shell", "command": "bash", "args": ["-lc", line]},
           "policy_overrides": {"timeout": "60s"}})
}

pub(crate) fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
