//! A space with one of everything that a path of the API can name.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::{Client, Operation, Response, Server};

#[derive(Debug, Clone)]
pub struct Furnished {
    /// An admin of it.
    pub admin: Client,
    pub exec: String,
    pub client_id: String,
    pub project: String,
    pub task: String,
    pub file: String,
    pub artifact: String,
    pub token: String,
}

/// An id of the right form that nothing has.
const RANDOM: &str = "5b0e7a53c1f94d0aa1b2c3d4e5f60718";

impl Furnished {
    /// # Panics
    /// When something cannot be made.
    pub fn new(server: &Server, space: &str) -> Self {
        let admin = match space {
            "local" => server.client(),
            _ => server.client_of(&server.token_of("admin", space, &format!("{space}-admin"))),
        };
        let mut furnished = Self {
            admin,
            exec: String::new(),
            client_id: String::new(),
            project: format!("{space}-project"),
            task: format!("{space}-task"),
            file: format!("{space}-file"),
            artifact: format!("{space}-artifact"),
            token: String::new(),
        };
        furnished.restore();
        furnished
    }

    /// Runs, prints and leaves an artifact.
    fn request(&self) -> Value {
        let script = format!(
            "echo {0}; echo {0} > /workspace/artifacts/{0}",
            self.artifact
        );
        let task = &self.task;
        json!({
            "project_id": self.project,
            "client_id": self.client_id,
            "task_ref": {"task_id": task, "conversation_id": task, "user_id": task,
                         "turn_id": task, "workflow_id": task, "agent_id": task, "session_id": task},
            "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
        })
    }

    /// Makes again what a test has removed.
    pub fn restore(&mut self) {
        self.client_id = unused(&self.project);
        let ran = self.admin.post("/v1/execs", &self.request());
        assert_eq!(ran.status, 200, "{}", ran.text());
        self.exec = text(&ran.json()["exec_id"]);
        let path = format!("/v1/workspaces/{}/files/{}", self.project, self.file);
        let kind = Some("application/octet-stream");
        let put = self.admin.try_bytes("PUT", &path, kind, b"x").expect("put");
        assert_eq!(put.status, 200, "{}", put.text());
        let name = unused(&self.project);
        let made = self
            .admin
            .post("/v1/tokens", &json!({"name": name, "role": "agent"}));
        assert_eq!(made.status, 201, "{}", made.text());
        self.token = text(&made.json()["token"]["token_id"]);
    }

    /// The path with the names of what is here. Every noun of the API has its line.
    ///
    /// # Panics
    /// When the path has a parameter that nothing here stands for.
    pub fn fill(&self, path: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        let filled = parts.iter().enumerate().map(|(index, part)| {
            if !part.starts_with('{') {
                return *part;
            }
            match parts[index - 1] {
                "execs" => self.exec.as_str(),
                "artifacts" => &self.artifact,
                "tokens" => &self.token,
                "workspaces" => &self.project,
                "files" => &self.file,
                noun => panic!("nothing stands for `{part}` after `{noun}` in {path}"),
            }
        });
        filled.collect::<Vec<_>>().join("/")
    }

    /// The same things, but none of them exists.
    #[must_use]
    pub fn nowhere(&self) -> Self {
        Self {
            exec: format!("e_{RANDOM}"),
            client_id: format!("c{RANDOM}"),
            project: format!("p{RANDOM}"),
            task: format!("k{RANDOM}"),
            file: format!("f{RANDOM}"),
            artifact: format!("a{RANDOM}"),
            token: format!("t_{RANDOM}"),
            ..self.clone()
        }
    }

    /// All that must never be in another space's answer.
    pub fn names(&self) -> [&str; 7] {
        [
            &self.exec,
            &self.client_id,
            &self.project,
            &self.task,
            &self.file,
            &self.artifact,
            &self.token,
        ]
    }

    /// Does what is described, with the things that are here.
    pub fn send(&self, client: &Client, operation: &Operation, query: &str) -> Response {
        let path = self.fill(&operation.path) + query;
        let method = operation.method.as_str();
        let body = match operation.body.as_deref() {
            None => return client.send(method, &path, None),
            Some("application/octet-stream") => {
                let kind = operation.body.as_deref();
                let sent = client.try_bytes(method, &path, kind, b"x");
                return sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
            }
            Some("ExecRequest") => json!({"exec": {"kind": "argv", "command": "true"}}),
            Some("TokenRequest") => {
                let name = unused("sent");
                json!({"name": name, "role": "agent", "expires_at": "2099-01-01T00:00:00Z"})
            }
            Some("SettingsPatch") => json!({}),
            Some(schema) => panic!("nothing is known to send as `{schema}` to {method} {path}"),
        };
        client.send(method, &path, Some(&body))
    }
}

/// A token's name is given once.
fn unused(name: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
