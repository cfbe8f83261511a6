//! From TOML to the settings.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use glovebox_model::{Bytes, Count, Error, Millis, Result, Tier};
use toml::de::DeTable;

use super::super::document::{Document, entries, shown};
use super::super::section::read_word;
use super::super::value::{read_size, read_text, read_time, read_whole};
use super::cache::read_caches;
use super::{WorkspaceSection, path};
use crate::word::Word;

pub(super) const KEYS: [&str; 15] = [
    "max_bytes",
    "max_files",
    "snapshot_before",
    "snapshots_max_bytes",
    "snapshots_keep_last",
    "snapshots_keep_within",
    "artifacts_keep_within",
    "artifacts_keep_last",
    "artifacts_max_bytes",
    "template",
    "cache",
    "runtime",
    "root_win",
    "root_wsl",
    "audit",
];

/// The same that an exec must be given at least.
const LEAST_BYTES: Bytes = Bytes(64 << 10);
const FILES: RangeInclusive<u64> = 16..=1_000_000_000;
const KEPT: RangeInclusive<u64> = 0..=1_000_000;
const LONGEST: Millis = Millis::secs(10 * 365 * 24 * 3600);

/// `none`, or a tier.
#[derive(Clone, Copy)]
struct Before(Option<Tier>);

impl Word for Before {
    const ALL: &'static [Self] = &[
        Self(None),
        Self(Some(Tier::Safe)),
        Self(Some(Tier::Low)),
        Self(Some(Tier::Medium)),
        Self(Some(Tier::High)),
        Self(Some(Tier::Critical)),
    ];
    fn word(self) -> &'static str {
        self.0.map_or("none", Tier::as_str)
    }
}

pub(in super::super) fn read_workspace(
    document: &Document<'_>,
    table: &DeTable<'_>,
) -> Result<WorkspaceSection> {
    let mut section = WorkspaceSection {
        file: document.file.to_owned(),
        ..WorkspaceSection::default()
    };
    for (key, node) in entries(table) {
        let name = key.get_ref().as_ref();
        let settings = &mut section.settings;
        // What is kept is bounded by nothing when the bound is 0, as with kept sandboxes.
        let kept_bytes = || {
            let size = read_size(document, key, node, Bytes(0))?;
            Ok(Some(size).filter(|it| it.get() > 0))
        };
        let kept_last = || {
            let count = read_whole(document, key, node, KEPT)?;
            Ok(Some(Count(count)).filter(|it| it.get() > 0))
        };
        let kept_within = || {
            let time = read_time(document, key, node, Millis(0)..=LONGEST)?;
            Ok(Some(time).filter(|it| it.get() > 0))
        };
        let text = |check| read_text(document, key, node, check).map(Some);
        match name {
            "max_bytes" => {
                let most = read_size(document, key, node, LEAST_BYTES);
                settings.max_bytes = Some(most.map_err(without_quota)?);
            }
            "max_files" => {
                let most = read_whole(document, key, node, FILES);
                settings.max_files = Some(Count(most.map_err(without_quota)?));
            }
            "snapshot_before" => {
                let Before(tier) = read_word(document, key, node)?;
                settings.snapshot_before = tier;
            }
            "snapshots_max_bytes" => settings.snapshots_max_bytes = kept_bytes()?,
            "snapshots_keep_last" => settings.snapshots_keep_last = kept_last()?,
            "snapshots_keep_within" => settings.snapshots_keep_within = kept_within()?,
            "artifacts_keep_within" => settings.artifacts_keep_within = kept_within()?,
            "artifacts_keep_last" => settings.artifacts_keep_last = kept_last()?,
            "artifacts_max_bytes" => settings.artifacts_max_bytes = kept_bytes()?,
            "template" => settings.template = text(path::template)?.map(PathBuf::from),
            "cache" => read_caches(document, key, node, &mut section)?,
            "runtime" => settings.runtime = read_word(document, key, node)?,
            "root_win" => settings.root_win = text(path::root_win)?,
            "root_wsl" => settings.root_wsl = text(path::root_wsl)?,
            "audit" => settings.audit = read_word(document, key, node)?,
            other => {
                let message = format!("unknown key `{}` under `[workspace]`", shown(other));
                return Err(document.unknown(key.span(), message, other, &KEYS));
            }
        }
        let line = document.line(&key.span());
        section.lines.insert(name.to_owned(), line);
    }
    Ok(section)
}

/// Unlike what is kept, 0 could be meant as nothing at all.
fn without_quota(error: Error) -> Error {
    error.hint("leave it out for a workspace without this quota")
}
