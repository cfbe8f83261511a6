//! Moving, removing and making what holds files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::program::{put, within};
use super::{Hint, Tool};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::task::Task;

/// What was done to which path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Arranged {
    path: String,
    /// `moved`, `removed` or `made`.
    done: &'static str,
}

fn arranged(path: String, done: &'static str) -> Answer<Arranged> {
    let text = format!("{done}: {path:?}\n");
    Answer::new(Arranged { path, done }, text)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileMove {
    /// What is moved, relative to the project.
    from: String,
    /// Where to, with its new name. Directories on the way are made.
    to: String,
    /// Replace what stands there; a directory that is not empty never goes.
    overwrite: Option<bool>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

impl Tool for FileMove {
    const NAME: &'static str = "file_move";
    const TITLE: &'static str = "Move a file";
    const ABOUT: &'static str = "Moves or renames a file or a directory within the project. What \
        stands at the new place is an error unless `overwrite` is true.";
    const HINT: Hint = Hint::Destroys;
    type Output = Arranged;

    async fn run(self, task: &Task) -> Done<Arranged> {
        let (from, to) = (within(&self.from), within(&self.to));
        let mut body = json!({"from": from, "to": to, "parents": true});
        put(&mut body, "overwrite", self.overwrite);
        let route = format!("{}/move", task.workspace(&self.project));
        task.reply(Call::post(&route).json(&body)?).await?;
        Ok(arranged(self.to, "moved"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRemove {
    /// Relative to the project.
    path: String,
    /// A directory with everything in it.
    recursive: Option<bool>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

impl Tool for FileRemove {
    const NAME: &'static str = "file_remove";
    const TITLE: &'static str = "Remove a file";
    const ABOUT: &'static str = "Removes a file or, with `recursive`, a directory of the project. \
        Take a snapshot first (`snapshot_take`) if it may be needed again.";
    const HINT: Hint = Hint::Destroys;
    type Output = Arranged;

    async fn run(self, task: &Task) -> Done<Arranged> {
        let call = Call::delete(&task.workspace(&self.project))
            .then("/files")
            .path(within(&self.path))
            .query("recursive", self.recursive.unwrap_or(false));
        task.reply(call).await?;
        Ok(arranged(self.path, "removed"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileMkdir {
    /// Relative to the project. Those on the way are made too; one that is there is no error.
    path: String,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

impl Tool for FileMkdir {
    const NAME: &'static str = "file_mkdir";
    const TITLE: &'static str = "Make a directory";
    const ABOUT: &'static str = "Makes a directory in the project, with those on the way to it. \
        `file_write` makes the directories it needs by itself.";
    const HINT: Hint = Hint::Writes;
    type Output = Arranged;

    async fn run(self, task: &Task) -> Done<Arranged> {
        let body = json!({"path": within(&self.path), "parents": true});
        let route = format!("{}/mkdir", task.workspace(&self.project));
        task.reply(Call::post(&route).json(&body)?).await?;
        Ok(arranged(self.path, "made"))
    }
}
