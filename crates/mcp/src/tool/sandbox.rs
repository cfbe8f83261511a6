//! Sandboxes that are kept between execs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::program::put;
use super::{Hint, Tool};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::task::Task;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SandboxInfo {
    sandbox_id: String,
    /// For `sandbox` of `run_code` and `run_command`.
    name: String,
    lifetime: String,
    state: String,
    project_id: String,
    last_used_at: String,
}

impl SandboxInfo {
    fn line(&self) -> String {
        format!(
            "{} ({}): {}, lives as long as its {}, works on `{}`\n",
            self.name, self.sandbox_id, self.state, self.lifetime, self.project_id
        )
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Life {
    #[default]
    Session,
    Agent,
    Shared,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxCreate {
    /// How long it lives; `session` without it.
    #[serde(default)]
    lifetime: Life,
    /// Whose session it is; the connection's own without it. An agent has only its own.
    owner: Option<String>,
    /// The workspace that it works on. Without it the connection's own, or one of the sandbox's own
    /// where the connection works in a directory of the machine's user.
    project: Option<String>,
    /// The most memory: `512M`, `2G`.
    memory: Option<String>,
}

impl Tool for SandboxCreate {
    const NAME: &'static str = "sandbox_create";
    const TITLE: &'static str = "Keep a sandbox";
    const ABOUT: &'static str = "Makes a sandbox that stays: execs that name it share its processes' \
        home and start quicker. Without one each exec has a fresh sandbox, which is what you \
        usually want.";
    const HINT: Hint = Hint::Writes;
    type Output = SandboxInfo;

    async fn run(self, task: &Task) -> Done<SandboxInfo> {
        let mut body = json!({ "lifetime": self.lifetime });
        // What outlives the call may not stay in a directory that is only shared.
        let own = Some(task.project.as_str()).filter(|it| !it.starts_with("cwd-"));
        put(&mut body, "project_id", self.project.as_deref().or(own));
        match self.lifetime {
            Life::Session => {
                let owner = self.owner.or_else(|| task.conversation.clone());
                let owner = owner.unwrap_or_else(|| "mcp".to_owned());
                put(&mut body, "session_id", Some(owner));
            }
            Life::Agent => put(&mut body, "agent_id", self.owner),
            Life::Shared => {}
        }
        if let Some(memory) = self.memory {
            put(
                &mut body,
                "policy_overrides",
                Some(json!({ "memory": memory })),
            );
        }
        let made: SandboxInfo = task.ask(Call::post("/v1/sandboxes").json(&body)?).await?;
        let text = format!("made: {}", made.line());
        Ok(Answer::new(made, text))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxList {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Sandboxes {
    /// The last used first.
    items: Vec<SandboxInfo>,
}

impl Tool for SandboxList {
    const NAME: &'static str = "sandbox_list";
    const TITLE: &'static str = "List sandboxes";
    const ABOUT: &'static str = "Lists the sandboxes that are kept, with their names, what they \
        work on and how they are.";
    const HINT: Hint = Hint::Reads;
    type Output = Sandboxes;

    async fn run(self, task: &Task) -> Done<Sandboxes> {
        let list: Sandboxes = task.ask(Call::get("/v1/sandboxes")).await?;
        let mut text: String = list.items.iter().map(SandboxInfo::line).collect();
        if text.is_empty() {
            text = "no sandbox is kept\n".to_owned();
        }
        Ok(Answer::new(list, text))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxRemove {
    /// Its id or its name, from `sandbox_list`.
    sandbox: String,
}

impl Tool for SandboxRemove {
    const NAME: &'static str = "sandbox_remove";
    const TITLE: &'static str = "Remove a sandbox";
    const ABOUT: &'static str = "Takes a kept sandbox down, with every process in it. The project's \
        files stay.";
    const HINT: Hint = Hint::Destroys;
    type Output = SandboxInfo;

    async fn run(self, task: &Task) -> Done<SandboxInfo> {
        let call = Call::delete("/v1/sandboxes").segment(&self.sandbox);
        let gone: SandboxInfo = task.ask(call).await?;
        let text = format!("removed: {}", gone.line());
        Ok(Answer::new(gone, text))
    }
}
