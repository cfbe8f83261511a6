//! The one list of tools, and who gets to see which of them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use glovebox_model::{Code, Error, Stage};
use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::json;

use crate::api::Call;
use crate::task::Task;
use crate::tool::{self, Entry, skill};

static ALL: LazyLock<Vec<Entry>> = LazyLock::new(tool::all);

fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|it| it.described.name.as_ref())
}

/// Every tool that is no skill, as clients see it.
pub fn tools() -> Vec<Tool> {
    ALL.iter().map(|it| it.described.clone()).collect()
}

pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|it| it.described.name == name)
}

/// As the API tells whether a tool exists for somebody.
#[derive(Debug, Deserialize)]
struct Checked {
    answers: Vec<ToolAnswer>,
}

#[derive(Debug, Deserialize)]
struct ToolAnswer {
    tool: String,
    allowed: bool,
    #[serde(default)]
    key: String,
    fix: String,
}

async fn check(task: &Task, names: &[&str]) -> Result<Vec<ToolAnswer>, Error> {
    let mut body = json!({ "tools": names });
    tool::put(&mut body, "task_ref", tool::task_ref(task));
    let checked: Checked = task.ask(Call::post("/v1/tools/check").json(&body)?).await?;
    Ok(checked.answers)
}

/// Those that exist for the caller.
pub(crate) async fn list(task: &Task) -> Result<Vec<Tool>, Error> {
    let mut tools = tools();
    tools.extend(skill::list(task).await?);
    let names: Vec<&str> = tools.iter().flat_map(|it| all_names(&it.name)).collect();
    let answers = check(task, &names).await?;
    let allowed = answers.into_iter().filter(|it| it.allowed);
    let allowed: BTreeSet<String> = allowed.map(|it| it.tool).collect();
    tools.retain(|it| all_names(&it.name).all(|it| allowed.contains(it)));
    Ok(tools)
}

/// Its own name, and that of the tool that it could be used for in its place.
fn all_names(name: &str) -> impl Iterator<Item = &str> {
    let other = find(name).and_then(|it| it.stands_for);
    std::iter::once(name).chain(other)
}

/// Whether the caller may use one.
pub(crate) async fn permit(task: &Task, name: &str) -> Result<(), Error> {
    let names: Vec<&str> = all_names(name).collect();
    let answers = check(task, &names).await?;
    for asked in names {
        let answer = answers.iter().find(|it| it.tool == asked);
        let ToolAnswer {
            allowed, key, fix, ..
        } = answer.ok_or_else(|| unknown(name))?;
        if !allowed {
            let message = format!("the tool `{name}` does not exist for you: `{key}` says so");
            let error = Error::new(Code::PolicyDenied, Stage::Resolve, message);
            return Err(error.hint(fix.as_str()));
        }
    }
    Ok(())
}

fn unknown(name: &str) -> Error {
    let message = format!("nobody knows whether `{name}` may be used");
    Error::new(Code::Internal, Stage::Resolve, message)
}

/// The nearest name, for whoever misspelt one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let distance = |it: &&str| strsim::damerau_levenshtein(it, name);
    let nearest = names().min_by_key(distance)?;
    (distance(&nearest) <= 3).then_some(nearest)
}
