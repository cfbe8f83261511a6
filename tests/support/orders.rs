//! Execs as most tests of the server ask for them, and a gate that holds one where it is.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Client, Trial, wait_until};

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A script of `sh`, in the project `p`.
pub fn sh(script: &str) -> Value {
    json!({
        "project_id": "p",
        "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
    })
}

/// The same with more fields, or with others in their place.
#[must_use]
pub fn with(mut body: Value, more: Value) -> Value {
    merge(&mut body, more);
    body
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

pub fn is_final(record: &Value) -> bool {
    !matches!(
        record["status"].as_str(),
        Some("queued" | "running" | "awaiting_approval")
    )
}

impl Client {
    /// Takes it on without waiting for its end; its id.
    ///
    /// # Panics
    /// When it is refused.
    #[track_caller]
    pub fn begin(&self, body: &Value) -> String {
        let answer = self.post("/v1/execs", &with(body.clone(), json!({"wait": false})));
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
        let id = answer.json()["exec_id"].as_str().map(str::to_owned);
        id.expect("an exec id")
    }

    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn record(&self, id: &str) -> Value {
        let answer = self.get(&format!("/v1/execs/{id}"));
        assert_eq!(answer.status, 200, "{id}: {}", answer.text());
        answer.json()
    }

    /// # Panics
    /// When it does not come to that.
    #[track_caller]
    pub fn record_when(&self, id: &str, so: impl Fn(&Value) -> bool) -> Value {
        let mut record = Value::Null;
        let came = wait_until(PATIENCE, || {
            record = self.record(id);
            so(&record)
        });
        assert!(came, "{id} stays as it is: {record}");
        record
    }

    #[track_caller]
    pub fn ended(&self, id: &str) -> Value {
        self.record_when(id, is_final)
    }

    /// # Panics
    /// When it is refused.
    #[track_caller]
    pub fn set(&self, settings: &Value) {
        let answer = self.send("PATCH", "/v1/settings", Some(settings));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    #[track_caller]
    pub fn cancel(&self, id: &str) -> Value {
        let answer = self.send("POST", &format!("/v1/execs/{id}/cancel"), None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// # Panics
    /// When the ledger does not verify.
    #[track_caller]
    pub fn verify_ledger(&self) {
        let answer = self.get("/v1/audit/verify");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["problems"], json!([]), "{}", answer.text());
    }
}

/// Execs stand at it until it is opened. It is a file of the project `p`.
#[derive(Debug)]
pub struct Gate {
    work: PathBuf,
    name: &'static str,
}

impl Gate {
    pub fn new(trial: &Trial, name: &'static str) -> Self {
        Self::in_space(trial, "local", name)
    }

    pub fn in_space(trial: &Trial, space: &str, name: &'static str) -> Self {
        let files = match space {
            "local" => trial.state(),
            space => trial.state().join("spaces").join(space),
        };
        Self {
            work: files.join("projects/p/work"),
            name,
        }
    }

    /// What a script does to wait.
    pub fn wait(&self) -> String {
        let name = self.name;
        format!("until [ -e {name} ]; do sleep 0.02; done")
    }

    /// # Panics
    /// When nobody has come to the project yet.
    pub fn open(&self) {
        fs::write(self.work.join(self.name), "").expect("open the gate");
    }

    /// A file that scripts have left in the project.
    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.work.join(name)).ok()
    }
}
