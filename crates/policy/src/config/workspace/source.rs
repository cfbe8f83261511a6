//! Where each setting came from, in the form that every other field is explained in.

use std::fmt::Display;

use glovebox_model::RuleRef;

use super::{WorkspaceSection, WorkspaceSettings};
use crate::decided::Decided;
use crate::layer::{Decider, LayerName};
use crate::word::Word;

/// One row for each key, and one for each cache.
pub(super) fn rows(section: &WorkspaceSection) -> Vec<Decided> {
    let row = |(key, value): (String, String)| {
        let source = section.lines.get(&key).map(|&line| RuleRef {
            file: section.file.clone(),
            line,
        });
        let change = match &source {
            Some(source) => format!("change `{key}` at `{}:{}`", source.file, source.line),
            None => format!("set `{key}` under `[workspace]`"),
        };
        let layer = match source {
            Some(_) => LayerName::Settings,
            None => LayerName::System,
        };
        Decided {
            field: format!("workspace.{key}"),
            path: format!("workspace.{key}"),
            value,
            by: Decider {
                source,
                ..Decider::plain(layer)
            },
            change,
        }
    };
    values(&section.settings).into_iter().map(row).collect()
}

/// Taken apart, so that a new field does not compile until it is shown.
fn values(settings: &WorkspaceSettings) -> Vec<(String, String)> {
    let WorkspaceSettings {
        max_bytes,
        max_files,
        snapshot_before,
        snapshots_max_bytes,
        snapshots_keep_last,
        snapshots_keep_within,
        artifacts_keep_within,
        artifacts_keep_last,
        artifacts_max_bytes,
        template,
        caches,
        runtime,
        root_win,
        root_wsl,
        audit,
    } = settings;
    let before = snapshot_before.map_or("none", |tier| tier.as_str());
    let keys = [
        ("max_bytes", show(max_bytes)),
        ("max_files", show(max_files)),
        ("snapshot_before", before.to_owned()),
        ("snapshots_max_bytes", show(snapshots_max_bytes)),
        ("snapshots_keep_last", show(snapshots_keep_last)),
        ("snapshots_keep_within", show(snapshots_keep_within)),
        ("artifacts_keep_within", show(artifacts_keep_within)),
        ("artifacts_keep_last", show(artifacts_keep_last)),
        ("artifacts_max_bytes", show(artifacts_max_bytes)),
        (
            "template",
            show(&template.as_ref().map(|path| path.display())),
        ),
        ("runtime", runtime.word().to_owned()),
        ("root_win", show(root_win)),
        ("root_wsl", show(root_wsl)),
        ("audit", audit.word().to_owned()),
    ];
    let caches = caches.iter().map(|(name, cache)| {
        let value = format!("{} at {}", cache.mode.word(), cache.at.display());
        (format!("cache.{name}"), value)
    });
    let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
    keys.chain(caches).collect()
}

fn show<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "-".to_owned(), T::to_string)
}
