//! Changing a place in a file.

use glovebox_api::ReplaceAnswer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::program::{put, within};
use super::{Hint, Tool};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::task::Task;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEdit {
    /// Relative to the project.
    path: String,
    /// The text to replace, exactly as it stands there. It must be there once, unless `all` is true.
    old: String,
    /// What takes its place.
    new: String,
    /// Replace every occurrence.
    all: Option<bool>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
    /// Edit only if the file still has this mark, from `file_read`.
    etag: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Edited {
    path: String,
    /// How often it was replaced.
    times: u64,
    size: u64,
    etag: String,
}

impl Tool for FileEdit {
    const NAME: &'static str = "file_edit";
    const TITLE: &'static str = "Edit a file";
    const ABOUT: &'static str = "Replaces a text in a file of the project. The text must be there \
        exactly once, so that the right place is changed: give enough of what is around it.";
    const HINT: Hint = Hint::Destroys;
    type Output = Edited;

    async fn run(self, task: &Task) -> Done<Edited> {
        let mut body = json!({"path": within(&self.path), "old": self.old, "new": self.new});
        put(&mut body, "all", self.all);
        put(&mut body, "etag", self.etag);
        let route = format!("{}/replace", task.workspace(&self.project));
        let ReplaceAnswer { times, file } = task.ask(Call::post(&route).json(&body)?).await?;
        let (path, size, etag) = (file.path.display(), file.size, file.etag);
        let text = format!("edited: {path:?}, {times} replaced, now {size} bytes\n");
        Ok(Answer::new(
            Edited {
                path,
                times,
                size,
                etag,
            },
            text,
        ))
    }
}
