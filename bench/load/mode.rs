//! Where the sandboxes of a load come from.

use clap::ValueEnum;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// A fresh sandbox for each exec, made when it comes.
    Cold,
    /// A fresh sandbox for each exec, made ahead as long as the pool keeps up.
    Pool,
    /// As many execs at one instant as the pool has sandboxes; then a pause until it is full again.
    Burst,
    /// One sandbox for each agent, kept from exec to exec.
    Kept,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Pool => "pool",
            Self::Burst => "burst",
            Self::Kept => "kept",
        }
    }

    /// The server's configuration file.
    pub(crate) fn config(self, size: usize) -> String {
        match self {
            Self::Cold => "[pool]\nenabled = false\n".to_owned(),
            // As it is without a word.
            Self::Pool | Self::Kept => String::new(),
            Self::Burst => format!("[pool]\nmin = {size}\nmax = {size}\npython = 0\nnode = 0\n"),
        }
    }

    /// What a client asks for.
    pub(crate) fn request(self, agent: usize) -> Value {
        let exec = json!({"kind": "argv", "command": "/bin/true"});
        match self {
            Self::Cold | Self::Pool => json!({"exec": exec}),
            // With a workspace, as those are that always stand ready: in a pool that holds no more
            // than these, no other shape finds a place.
            Self::Burst => json!({"exec": exec, "project_id": format!("burst-{agent}")}),
            Self::Kept => json!({
                "exec": exec,
                "task_ref": {"agent_id": format!("agent-{agent}")},
                "sandbox": {"lifetime": "agent"},
            }),
        }
    }
}
