//! `glovebox snapshot diff`.

use std::io::IsTerminal;

use glovebox_api::{DiffAnswer, DiffChange, DiffEntryKind, DiffKind, DiffText};
use glovebox_model::{Code, Error, Result, SnapshotId, Stage};

use super::resolve;
use crate::args::{DiffArgs, Global};
use crate::exit::Exit;
use crate::paint::{Paint, Tone};
use crate::patch::{Patch, Sides, tally};
use crate::table::{Cell, Table};
use crate::workspaces::{self, Missing, Workspace};
use crate::{render, stdout};

pub(super) fn run(global: &Global, args: &DiffArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let workspace = &workspace;
    let from = match &args.from {
        Some(name) => resolve(workspace, name)?,
        None => newest(workspace)?,
    };
    let to = args.to.as_ref().map(|name| resolve(workspace, name));
    let diff = workspace.diff(Some(&from), to.transpose()?.as_ref())?;
    if global.json {
        stdout::json(&diff)?;
        return Ok(Exit::SUCCESS);
    }
    let paint = Paint::on(&std::io::stdout());
    let text = match args.stat {
        true => stat(&diff, paint),
        false => patch(&diff, Patch::new(paint, std::io::stdout().is_terminal())),
    };
    stdout::text(&text)?;
    if !global.quiet {
        if diff.changes.is_empty() {
            render::note("nothing differs");
        }
        if diff.truncated {
            render::note("there are more changes than are shown");
        }
    }
    Ok(Exit::SUCCESS)
}

fn newest(workspace: &Workspace) -> Result<SnapshotId> {
    let newest = workspace.snapshots()?.items.into_iter().next();
    newest.map(|it| it.snapshot_id).ok_or_else(|| {
        let message = "this workspace has no snapshot to compare with";
        Error::new(Code::NotFound, Stage::Parse, message).hint("`glovebox snapshot take` takes one")
    })
}

const fn kind(kind: DiffEntryKind) -> &'static str {
    match kind {
        DiffEntryKind::File => "file",
        DiffEntryKind::Directory => "directory",
        DiffEntryKind::Symlink => "link",
        DiffEntryKind::Fifo => "FIFO",
        DiffEntryKind::Other => "special file",
    }
}

fn patch(diff: &DiffAnswer, mut patch: Patch) -> String {
    for change in &diff.changes {
        let path = change.path.display();
        patch.entry(&path, &remarks(change));
        if let DiffText::Hunks { unified, .. } = &change.text {
            let sides = match change.change {
                DiffKind::Added => Sides::After,
                DiffKind::Removed => Sides::Before,
                DiffKind::Modified | DiffKind::Type | DiffKind::Mode | DiffKind::Link => {
                    Sides::Both
                }
            };
            patch.hunks(&path, sides, unified);
        }
    }
    patch.text()
}

/// What lines of text do not say.
fn remarks(change: &DiffChange) -> Vec<String> {
    let mut remarks = Vec::new();
    let (before, after) = (&change.before, &change.after);
    match (change.change, before, after) {
        (DiffKind::Added, _, Some(after)) => remarks.push(format!("new {}", kind(after.kind))),
        (DiffKind::Removed, Some(before), _) => {
            remarks.push(format!("removed {}", kind(before.kind)));
        }
        (DiffKind::Type, Some(before), Some(after)) => {
            remarks.push(format!("{} became {}", kind(before.kind), kind(after.kind)));
        }
        _ => {}
    }
    for (name, side) in [("old", before), ("new", after)] {
        let Some(side) = side else { continue };
        if let Some(mode) = side
            .mode
            .as_ref()
            .filter(|_| before.is_some() && after.is_some())
        {
            remarks.push(format!("{name} mode {mode}"));
        }
        if let Some(target) = &side.target {
            remarks.push(format!("{name} target {}", target.display()));
        }
    }
    match &change.text {
        DiffText::Binary => remarks.push("binary".to_owned()),
        DiffText::TooLarge => remarks.push("too large to be shown".to_owned()),
        DiffText::Hunks {
            truncated: true, ..
        } => remarks.push("cut off".to_owned()),
        DiffText::None | DiffText::Hunks { .. } => {}
    }
    remarks
}

fn stat(diff: &DiffAnswer, paint: Paint) -> String {
    let mut table = Table::new(["WHAT", "LINES", "PATH"]);
    for change in &diff.changes {
        let (what, tone) = match change.change {
            DiffKind::Added => ("added", Tone::Good),
            DiffKind::Removed => ("removed", Tone::Bad),
            DiffKind::Modified => ("modified", Tone::Caution),
            DiffKind::Type => ("type", Tone::Caution),
            DiffKind::Mode => ("mode", Tone::Caution),
            DiffKind::Link => ("link", Tone::Caution),
        };
        let lines = match &change.text {
            DiffText::Hunks {
                lines_added,
                lines_removed,
                ..
            } => tally(
                Paint::Plain,
                u64::from(*lines_added),
                u64::from(*lines_removed),
            ),
            DiffText::Binary => "binary".to_owned(),
            DiffText::TooLarge => "large".to_owned(),
            DiffText::None => "-".to_owned(),
        };
        table.push([
            Cell::toned(tone, what),
            Cell::from(lines),
            Cell::from(change.path.display()),
        ]);
    }
    let sum = format!(
        "{} added, {} removed, {} changed\n",
        diff.added, diff.removed, diff.changed
    );
    match diff.changes.is_empty() {
        true => String::new(),
        false => table.body(paint) + &sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> DiffAnswer {
        serde_json::from_value(json!({"added": 1, "removed": 1, "changed": 2, "truncated": false,
            "changes": [
                {"path": "d", "change": "removed", "before": {"type": "directory"}, "after": null,
                 "text": {"kind": "none"}},
                {"path": "l", "change": "link", "before": {"type": "symlink", "target": "a"},
                 "after": {"type": "symlink", "target": "b\u{1b}"}, "text": {"kind": "none"}},
                {"path": "new", "change": "added", "before": null,
                 "after": {"type": "file", "size": 2},
                 "text": {"kind": "hunks", "unified": "@@ -0,0 +1,1 @@\n+x\n", "lines_added": 1,
                          "lines_removed": 0, "truncated": false}},
                {"path": "run", "change": "mode", "before": {"type": "file", "size": 1, "mode": "0644"},
                 "after": {"type": "file", "size": 1, "mode": "0755"}, "text": {"kind": "none"}},
            ]}))
        .unwrap()
    }

    #[test]
    fn each_kind_of_change_is_told() {
        let text = patch(&sample(), Patch::new(Paint::Plain, false));
        let expected = "\
diff a/d b/d
removed directory
diff a/l b/l
old target a
new target b\\u{1b}
diff a/new b/new
new file
--- /dev/null
+++ b/new
@@ -0,0 +1,1 @@
+x
diff a/run b/run
old mode 0644
new mode 0755
";
        assert_eq!(text, expected);
        let expected = "\
removed  -      d
link     -      l
added    +1 -0  new
mode     -      run
1 added, 1 removed, 2 changed
";
        assert_eq!(stat(&sample(), Paint::Plain), expected);
    }
}
