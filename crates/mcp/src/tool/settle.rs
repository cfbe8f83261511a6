//! What becomes of a simulation.

use glovebox_api::DecidedAnswer;
use glovebox_model::{ApprovalId, ChangeCount, Code, Error, ExecId, Stage, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Hint, Tool};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::follow;
use crate::task::Task;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Apply {
    /// The simulation.
    exec_id: String,
    /// Run it again for real, held to what it showed, instead of keeping the files it wrote: for
    /// simulations that sent requests.
    rerun: Option<bool>,
}

/// What became of what waited.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Settled {
    exec_id: String,
    /// `applied`, `discarded`, or the status of the exec that did it for real.
    status: String,
    /// What a person has to answer first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    approval_id: Option<ApprovalId>,
    /// The exec that did it for real.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    done_by: Option<ExecId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Count {
    created: u64,
    modified: u64,
    removed: u64,
    bytes: u64,
}

impl Tool for Apply {
    const NAME: &'static str = "apply";
    const TITLE: &'static str = "Apply a simulation";
    const ABOUT: &'static str = "Makes a simulation true: exactly the files that it wrote become \
        the project's, all or none. Where a person has to agree, or with `rerun: true`, it is run \
        for real instead, held to what it showed, and what it writes is kept if it succeeds.";
    const HINT: Hint = Hint::Destroys;
    type Output = Settled;

    async fn run(self, task: &Task) -> Done<Settled> {
        // The second half of a call whose first half asked.
        if self.rerun.unwrap_or(false) || task.state.is_some() {
            return rerun(task, self.exec_id).await;
        }
        let kept: Result<DecidedAnswer, Error> = task.ask(route(&self.exec_id, "/apply")).await;
        match kept {
            Ok(decided) => Ok(settled(self.exec_id, "applied", decided.count)),
            // People agree to a program that is held to what they saw.
            Err(error) if needs_people(&error) => rerun(task, self.exec_id).await,
            Err(error) => Err(error.into()),
        }
    }
}

fn route(exec: &str, what: &str) -> Call {
    Call::post("/v1/execs").segment(exec).then(what)
}

/// What an agent may not decide alone: the API forbids it where it would obtain an agreement.
fn needs_people(error: &Error) -> bool {
    match error.code {
        Code::AwaitingApproval | Code::ApprovalUnavailable => true,
        code => code == Code::Forbidden && error.stage == Stage::Obtain,
    }
}

fn settled(exec: String, status: &str, count: ChangeCount) -> Answer<Settled> {
    let ChangeCount {
        created,
        modified,
        removed,
        bytes,
        truncated: _,
    } = count;
    let text = format!(
        "{status}: {created} created, {modified} modified, {removed} removed, {bytes} bytes ({exec})\n"
    );
    let value = Settled {
        exec_id: exec,
        status: status.to_owned(),
        approval_id: None,
        done_by: None,
        count: Some(Count {
            created,
            modified,
            removed,
            bytes,
        }),
        next: None,
    };
    Answer::new(value, text)
}

async fn rerun(task: &Task, exec: String) -> Done<Settled> {
    let submit = route(&exec, "/rerun").query("wait", "false");
    let done = follow::run(task, submit, super::program::window(None), false).await?;
    let status = match done.value.status {
        Status::Succeeded => "applied".to_owned(),
        other => other.to_string(),
    };
    let value = Settled {
        exec_id: exec,
        status,
        approval_id: done.value.approval_id,
        done_by: Some(done.value.exec_id),
        count: None,
        next: done.value.next,
    };
    Ok(Answer {
        value,
        text: done.text,
        links: done.links,
        failed: done.failed,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Discard {
    /// The simulation.
    exec_id: String,
}

impl Tool for Discard {
    const NAME: &'static str = "discard";
    const TITLE: &'static str = "Discard a simulation";
    const ABOUT: &'static str = "Drops what a simulation wrote. The project stays as it is; the \
        record of what it did stays readable.";
    const HINT: Hint = Hint::Writes;
    type Output = Settled;

    async fn run(self, task: &Task) -> Done<Settled> {
        let decided: DecidedAnswer = task.ask(route(&self.exec_id, "/discard")).await?;
        Ok(settled(self.exec_id, "discarded", decided.count))
    }
}
