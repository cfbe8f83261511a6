//! What differs between two sides, each a snapshot or a directory as it stands.

mod body;
mod hunks;
mod side;

use std::cmp::Ordering;

use glovebox_model::{ByteString, Result, SnapshotId};
use glovebox_workspace::Dir;
use serde::Serialize;

use crate::bytes::byte_string;
use crate::lock::{CHUNKS, Lock};
use crate::progress::{Progress, Watch, tell};
use crate::snapshots::Snapshots;

use side::{Item, Tree};

#[derive(Debug, Clone, Copy)]
pub enum Side<'a> {
    Snapshot(&'a SnapshotId),
    Live(&'a Dir),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLimits {
    /// Changes that are listed; all are counted.
    pub changes: usize,
    /// A larger file has no hunks.
    pub file_bytes: u64,
    /// Of all hunks together.
    pub text_bytes: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            changes: 10_000,
            file_bytes: 1 << 20,
            text_bytes: 1 << 20,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Diff {
    /// By path.
    pub changes: Vec<ChangedEntry>,
    pub added: u64,
    pub removed: u64,
    /// Everything else that changed.
    pub changed: u64,
    /// There are more changes than are listed.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedEntry {
    pub path: ByteString,
    pub change: Change,
    pub before: Option<EntryKind>,
    pub after: Option<EntryKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_after: Option<u32>,
    pub text: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Added,
    Removed,
    /// Its bytes; maybe its mode too.
    Modified,
    /// Another kind of thing stands there.
    Type,
    /// Its mode alone.
    Mode,
    /// Where a symbolic link leads, or which names a file has.
    Link,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntryKind {
    File { bytes: u64 },
    Directory,
    Symlink { target: ByteString },
    Fifo,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Text {
    /// No bytes changed.
    None,
    Binary,
    /// The file, or all hunks so far, are larger than asked for.
    TooLarge,
    Hunks {
        /// In unified form, without the lines that name the file.
        unified: String,
        lines_added: u32,
        lines_removed: u32,
        /// The rest did not fit.
        truncated: bool,
    },
}

impl Snapshots {
    pub fn diff(
        &self,
        before: Side<'_>,
        after: Side<'_>,
        limits: DiffLimits,
        watch: &mut dyn Watch,
    ) -> Result<Diff> {
        let _lock = Lock::shared(&self.dir, CHUNKS, watch)?;
        let chunks = crate::chunks::Chunks::load(&self.packs)?;
        let before = Tree::load(self, &chunks, before, watch)?;
        let after = Tree::load(self, &chunks, after, watch)?;
        let mut comparison = Comparison {
            before: &before,
            after: &after,
            limits,
            text_left: limits.text_bytes,
            diff: Diff::default(),
        };
        comparison.run(watch)?;
        Ok(comparison.diff)
    }
}

struct Comparison<'c> {
    before: &'c Tree<'c>,
    after: &'c Tree<'c>,
    limits: DiffLimits,
    text_left: usize,
    diff: Diff,
}

impl Comparison<'_> {
    fn run(&mut self, watch: &mut dyn Watch) -> Result<()> {
        let (olds, news) = (self.before.items(), self.after.items());
        let (mut old, mut new) = (olds.iter().peekable(), news.iter().peekable());
        let mut seen = 0u64;
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.path().cmp(new.path()),
            };
            let before = if order.is_le() { old.next() } else { None };
            let after = if order.is_ge() { new.next() } else { None };
            self.compare(before, after)?;
            seen += 1;
            if seen.is_multiple_of(256) {
                tell(
                    watch,
                    Progress {
                        entries: seen,
                        bytes: 0,
                    },
                )?;
            }
        }
    }

    fn compare(&mut self, before: Option<&Item<'_>>, after: Option<&Item<'_>>) -> Result<()> {
        let Some(change) = self.change(before, after)? else {
            return Ok(());
        };
        match change {
            Change::Added => self.diff.added += 1,
            Change::Removed => self.diff.removed += 1,
            _ => self.diff.changed += 1,
        }
        if self.diff.changes.len() >= self.limits.changes {
            self.diff.truncated = true;
            return Ok(());
        }
        let Some(either) = after.or(before) else {
            return Ok(());
        };
        let modes = (
            before.map(|item| item.mode()),
            after.map(|item| item.mode()),
        );
        let (mode_before, mode_after) = match modes.0 == modes.1 {
            true => (None, None),
            false => modes,
        };
        let text = self.text(change, before, after)?;
        self.diff.changes.push(ChangedEntry {
            path: byte_string(either.path()),
            change,
            before: before.map(Item::kind),
            after: after.map(Item::kind),
            mode_before,
            mode_after,
            text,
        });
        Ok(())
    }

    fn change(
        &self,
        before: Option<&Item<'_>>,
        after: Option<&Item<'_>>,
    ) -> Result<Option<Change>> {
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (Some(_), None) => return Ok(Some(Change::Removed)),
            (None, Some(_)) => return Ok(Some(Change::Added)),
            (None, None) => return Ok(None),
        };
        let change = match (before.kind(), after.kind()) {
            (EntryKind::File { .. }, EntryKind::File { .. }) => {
                let same = body::same(self.before, before, self.after, after)?;
                match same {
                    false => Some(Change::Modified),
                    true if before.first_name() != after.first_name() => Some(Change::Link),
                    true => None,
                }
            }
            (EntryKind::Symlink { target: old }, EntryKind::Symlink { target: new }) => {
                // A link's own mode means nothing.
                return Ok((old != new).then_some(Change::Link));
            }
            (EntryKind::Directory, EntryKind::Directory)
            | (EntryKind::Fifo, EntryKind::Fifo)
            | (EntryKind::Other, EntryKind::Other) => None,
            _ => Some(Change::Type),
        };
        Ok(change.or_else(|| (before.mode() != after.mode()).then_some(Change::Mode)))
    }

    fn text(
        &mut self,
        change: Change,
        before: Option<&Item<'_>>,
        after: Option<&Item<'_>>,
    ) -> Result<Text> {
        if !matches!(change, Change::Added | Change::Removed | Change::Modified) {
            return Ok(Text::None);
        }
        let cap = self.limits.file_bytes;
        let read = |tree: &Tree<'_>, item: Option<&Item<'_>>| match item {
            None => Ok(Some(Vec::new())),
            Some(item) => body::read(tree, item, cap),
        };
        let is_file = |item: &&Item<'_>| matches!(item.kind(), EntryKind::File { .. });
        if before.iter().chain(&after).any(|item| !is_file(item)) {
            return Ok(Text::None);
        }
        if self.text_left == 0 {
            return Ok(Text::TooLarge);
        }
        let (Some(old), Some(new)) = (read(self.before, before)?, read(self.after, after)?) else {
            return Ok(Text::TooLarge);
        };
        let text = hunks::between(&old, &new, self.text_left);
        if let Text::Hunks { unified, .. } = &text {
            self.text_left = self.text_left.saturating_sub(unified.len());
        }
        Ok(text)
    }
}
