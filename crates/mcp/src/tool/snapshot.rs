//! The project as it was.

use glovebox_api::TakenSnapshot;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::program::put;
use super::{Hint, Tool};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::fence::{NOTE, WINDOW, cut, fenced};
use crate::task::Task;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SnapshotInfo {
    snapshot_id: String,
    taken_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl SnapshotInfo {
    fn of(snapshot: glovebox_api::SnapshotInfo) -> Self {
        Self {
            snapshot_id: snapshot.snapshot_id.to_string(),
            taken_at: snapshot.taken_at.to_string(),
            label: snapshot.label,
            note: snapshot.note,
        }
    }

    fn line(&self) -> String {
        let label = self.label.as_deref().or(self.note.as_deref());
        format!(
            "{} {} {:?}\n",
            self.snapshot_id,
            self.taken_at,
            label.unwrap_or_default()
        )
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotTake {
    /// What to find it by; one with a label is never removed by its age.
    label: Option<String>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

impl Tool for SnapshotTake {
    const NAME: &'static str = "snapshot_take";
    const TITLE: &'static str = "Take a snapshot";
    const ABOUT: &'static str = "Keeps the project as it is now, to compare with or go back to. It \
        takes the room of what changed since the one before. Do it before anything risky.";
    const HINT: Hint = Hint::Writes;
    type Output = SnapshotInfo;

    async fn run(self, task: &Task) -> Done<SnapshotInfo> {
        let mut body = json!({});
        put(&mut body, "label", self.label);
        let route = format!("{}/snapshots", task.workspace(&self.project));
        let taken: TakenSnapshot = task.ask(Call::post(&route).json(&body)?).await?;
        let taken = SnapshotInfo::of(taken.snapshot);
        let text = format!("taken: {}", taken.line());
        Ok(Answer::new(taken, text))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotList {
    /// Snapshots at most, newest first.
    limit: Option<u32>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Snapshots {
    /// Newest first.
    items: Vec<SnapshotInfo>,
    /// There are more.
    truncated: bool,
}

impl Tool for SnapshotList {
    const NAME: &'static str = "snapshot_list";
    const TITLE: &'static str = "List snapshots";
    const ABOUT: &'static str = "Lists the snapshots of the project, newest first: those that \
        somebody took, and those that were taken before risky execs.";
    const HINT: Hint = Hint::Reads;
    type Output = Snapshots;

    async fn run(self, task: &Task) -> Done<Snapshots> {
        let route = format!("{}/snapshots", task.workspace(&self.project));
        let limit = self.limit.unwrap_or(50).clamp(1, 1000);
        let list: glovebox_api::SnapshotList =
            task.ask(Call::get(&route).query("limit", limit)).await?;
        let list = Snapshots {
            items: list.items.into_iter().map(SnapshotInfo::of).collect(),
            truncated: list.truncated,
        };
        let lines: String = list.items.iter().map(SnapshotInfo::line).collect();
        let text = format!("{NOTE}\n{}", fenced("snapshots", &lines));
        Ok(Answer::new(list, text))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotDiff {
    /// The older side.
    from: String,
    /// The newer side; the project as it is now without it.
    to: Option<String>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Differences {
    added: u64,
    removed: u64,
    changed: u64,
    /// By path, with differences of text.
    #[schemars(with = "Vec<JsonObject>")]
    changes: Vec<Value>,
    truncated: bool,
}

impl Tool for SnapshotDiff {
    const NAME: &'static str = "snapshot_diff";
    const TITLE: &'static str = "Compare snapshots";
    const ABOUT: &'static str = "Shows what changed in the project between two snapshots, or since \
        one of them until now, with differences of text.";
    const HINT: Hint = Hint::Reads;
    type Output = Differences;

    async fn run(self, task: &Task) -> Done<Differences> {
        let route = format!("{}/diff", task.workspace(&self.project));
        let mut call = Call::get(&route)
            .query("from", &self.from)
            .query("limit", 200)
            .query("text", true);
        if let Some(to) = &self.to {
            call = call.query("to", to);
        }
        let mut found: Differences = task.ask(call).await?;
        let lines: String = found.changes.iter().map(|it| format!("{it}\n")).collect();
        if lines.len() > WINDOW * 2 {
            // The model gets the names at least.
            for change in &mut found.changes {
                if let Some(change) = change.as_object_mut() {
                    found.truncated |= change.remove("text").is_some();
                }
            }
        }
        let what = format!(
            "{} added, {} removed, {} changed",
            found.added, found.removed, found.changed
        );
        let text = format!("{NOTE}\n{}", fenced(&what, &cut(&lines, WINDOW).text));
        Ok(Answer::new(found, text))
    }
}

/// What was put back.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Restored {
    /// What the project is now as it was.
    snapshot_id: String,
    /// What stood there before; to restore it takes this back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The exec whose changes are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exec_id: Option<String>,
}

fn restored(value: Restored) -> Answer<Restored> {
    let mut text = format!("the project is as it was in {}\n", value.snapshot_id);
    if let Some(before) = &value.before {
        text.push_str(&format!(
            "next: `snapshot_restore` of {before} takes this back\n"
        ));
    }
    Answer::new(value, text)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotRestore {
    /// From `snapshot_list`.
    snapshot_id: String,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

impl Tool for SnapshotRestore {
    const NAME: &'static str = "snapshot_restore";
    const TITLE: &'static str = "Restore a snapshot";
    const ABOUT: &'static str = "Makes the project what it was in a snapshot. What stands there now \
        is kept in a snapshot of its own, so that this can be taken back.";
    const HINT: Hint = Hint::Destroys;
    type Output = Restored;

    async fn run(self, task: &Task) -> Done<Restored> {
        let call = Call::post(&format!("{}/snapshots", task.workspace(&self.project)))
            .segment(&self.snapshot_id)
            .then("/restore");
        Ok(restored(task.ask(call).await?))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    /// This exec and everything after it; without it, the last that a snapshot was taken before.
    exec_id: Option<String>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
}

impl Tool for Undo {
    const NAME: &'static str = "undo";
    const TITLE: &'static str = "Undo an exec";
    const ABOUT: &'static str = "Makes the project what it was before an exec that a snapshot was \
        taken before. What stands there now is kept, so that this can be taken back.";
    const HINT: Hint = Hint::Destroys;
    type Output = Restored;

    async fn run(self, task: &Task) -> Done<Restored> {
        let mut body = json!({});
        put(&mut body, "exec_id", self.exec_id);
        let route = format!("{}/undo", task.workspace(&self.project));
        Ok(restored(task.ask(Call::post(&route).json(&body)?).await?))
    }
}
