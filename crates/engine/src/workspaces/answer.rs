//! What the parts below say about a workspace, as the API's answers.

use glovebox_api::{
    ChangeSide, ChangeText, ChangeWhat, CollectAnswer, CollectedSpace, CopyAnswer, DiffAnswer,
    DiffChange, DiffEntry, DiffEntryKind, DiffKind, DiffText, FileInfo, FileKind, GlobAnswer,
    GlobPath, HurtSnapshot, Listing, RestoreCounts, SearchAnswer, SearchLine, SearchMatch,
    SeedAnswer, SkippedSeed, SnapshotCounts, SnapshotInfo, StoreDamage, TakenSnapshot,
    VerifiedSpace, VerifyAnswer, WaitingChange, WatchChange, WatchKind,
};
use glovebox_model::{ByteString, Result, SpaceId};
use glovebox_snapshot::{
    Change, ChangedEntry, CollectionReport, Counts, Diff, EntryKind, Restored, Snapshot, Taken,
    Text, Verified,
};
use glovebox_workspace::change::{self, EntryChange, Facts};
use glovebox_workspace::files::{
    self, ChangeKind, Copied, FileStat, Found, Globbed, Grepped, Line,
};
use glovebox_workspace::{Kind, RelPath, Seeded};
use jiff::Timestamp;

fn file_kind(kind: Kind) -> FileKind {
    match kind {
        Kind::File => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Symlink => FileKind::Symlink,
        Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown => FileKind::Other,
    }
}

fn octal(mode: u32) -> String {
    format!("{:04o}", mode & 0o7777)
}

/// None: the workspace itself.
pub(super) fn file_info(path: Option<&RelPath>, stat: FileStat) -> FileInfo {
    let path = path.map(RelPath::to_byte_string);
    let itself = || ByteString::new(".").unwrap_or_default();
    info_at(path.unwrap_or_else(itself), stat)
}

fn info_at(path: ByteString, stat: FileStat) -> FileInfo {
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
    let nsec = i32::try_from(stat.modified.nsec).unwrap_or(0);
    FileInfo {
        name: name.and_then(ByteString::new).unwrap_or_default(),
        path,
        kind: file_kind(stat.kind),
        size: stat.size,
        mode: octal(stat.mode),
        modified_at: Timestamp::new(stat.modified.sec, nsec).ok(),
        etag: stat.etag.to_string(),
        target: stat.target,
    }
}

/// A path that was found below another.
fn below(under: Option<&RelPath>, path: ByteString) -> ByteString {
    match under {
        None => path,
        Some(under) => {
            ByteString::new([under.as_bytes(), b"/", path.as_bytes()].concat()).unwrap_or(path)
        }
    }
}

pub(super) fn listing(under: Option<&RelPath>, page: files::Page) -> Listing {
    let entries = page.entries.into_iter();
    Listing {
        entries: entries
            .map(|entry| info_at(below(under, entry.path), entry.stat))
            .collect(),
        truncated: page.next.is_some(),
        next: page.next.map(|cursor| cursor.to_string()),
        unread: page.unread,
    }
}

pub(super) fn copy_answer(to: &RelPath, copied: Copied) -> CopyAnswer {
    let Copied {
        files,
        directories,
        links,
        bytes,
        skipped,
    } = copied;
    CopyAnswer {
        path: to.to_byte_string(),
        files,
        directories,
        links,
        bytes,
        skipped,
    }
}

pub(super) fn search_answer(under: Option<&RelPath>, grepped: Grepped) -> SearchAnswer {
    let line = |line: Line| SearchLine {
        line: line.number,
        text: line.text,
    };
    let one = |found: Found| SearchMatch {
        path: below(under, found.path),
        line: found.line.number,
        column: found.column as u64,
        text: found.line.text,
        before: found.before.into_iter().map(line).collect(),
        after: found.after.into_iter().map(line).collect(),
    };
    SearchAnswer {
        matches: grepped.found.into_iter().map(one).collect(),
        files: grepped.files,
        bytes: grepped.bytes,
        binary: grepped.binary,
        skipped: grepped.skipped,
        long_lines: grepped.long_lines,
        truncated: grepped.truncated,
    }
}

pub(super) fn glob_answer(under: Option<&RelPath>, globbed: Globbed) -> GlobAnswer {
    let one = |(path, kind): (ByteString, Kind)| GlobPath {
        path: below(under, path),
        kind: file_kind(kind),
    };
    GlobAnswer {
        paths: globbed.paths.into_iter().map(one).collect(),
        truncated: globbed.truncated,
    }
}

pub(super) fn watch_change(under: Option<&RelPath>, change: files::Change) -> WatchChange {
    WatchChange {
        seq: change.seq,
        kind: match change.kind {
            ChangeKind::Created => WatchKind::Created,
            ChangeKind::Modified => WatchKind::Modified,
            ChangeKind::Removed => WatchKind::Removed,
            ChangeKind::Moved => WatchKind::Moved,
        },
        path: below(under, change.path),
        is_dir: change.is_dir,
        from: change.from.map(|from| below(under, from)),
    }
}

pub(super) fn seed_answer(seeded: Seeded) -> SeedAnswer {
    let skipped = seeded.skipped.into_iter().map(|it| SkippedSeed {
        path: it.path,
        why: it.why.why().to_owned(),
    });
    SeedAnswer {
        made: seeded.made.len() as u64,
        kept: seeded.kept.len() as u64,
        skipped: skipped.collect(),
    }
}

fn counts(it: Counts) -> SnapshotCounts {
    SnapshotCounts {
        files: it.files,
        directories: it.directories,
        symlinks: it.symlinks,
        fifos: it.fifos,
        hard_links: it.hard_links,
        bytes: it.bytes,
        sockets_skipped: it.sockets_skipped,
        devices_skipped: it.devices_skipped,
        mounts_skipped: it.mounts_skipped,
        set_id_dropped: it.set_id_dropped,
        xattrs_dropped: it.xattrs_dropped,
        unstable: it.unstable,
    }
}

pub(super) fn snapshot_info(it: Snapshot, verified_at: Option<Timestamp>) -> SnapshotInfo {
    SnapshotInfo {
        snapshot_id: it.id,
        project_id: it.project,
        taken_at: it.taken_at,
        parent: it.parent,
        label: it.label,
        note: it.note,
        verified_at,
        counts: counts(it.counts),
    }
}

pub(super) fn taken_snapshot(it: Taken) -> TakenSnapshot {
    TakenSnapshot {
        snapshot: snapshot_info(it.snapshot, None),
        files_read: it.files_read,
        bytes_read: it.bytes_read,
        stored_bytes: it.stored_bytes,
        new_chunks: it.new_chunks,
        unstable: it.unstable,
    }
}

pub(super) fn restore_counts(it: Restored) -> RestoreCounts {
    RestoreCounts {
        files_written: it.files_written,
        bytes_written: it.bytes_written,
        made: it.made,
        adjusted: it.adjusted,
        removed: it.removed,
    }
}

fn diff_entry(it: EntryKind, mode: Option<u32>) -> DiffEntry {
    let (kind, size, target) = match it {
        EntryKind::File { bytes } => (DiffEntryKind::File, Some(bytes), None),
        EntryKind::Directory => (DiffEntryKind::Directory, None, None),
        EntryKind::Symlink { target } => (DiffEntryKind::Symlink, None, Some(target)),
        EntryKind::Fifo => (DiffEntryKind::Fifo, None, None),
        EntryKind::Other => (DiffEntryKind::Other, None, None),
    };
    DiffEntry {
        kind,
        size,
        mode: mode.map(octal),
        target,
    }
}

fn diff_change(it: ChangedEntry) -> DiffChange {
    let (mode_before, mode_after) = (it.mode_before, it.mode_after);
    DiffChange {
        path: it.path,
        change: match it.change {
            Change::Added => DiffKind::Added,
            Change::Removed => DiffKind::Removed,
            Change::Modified => DiffKind::Modified,
            Change::Type => DiffKind::Type,
            Change::Mode => DiffKind::Mode,
            Change::Link => DiffKind::Link,
        },
        before: it.before.map(|entry| diff_entry(entry, mode_before)),
        after: it.after.map(|entry| diff_entry(entry, mode_after)),
        text: match it.text {
            Text::None => DiffText::None,
            Text::Binary => DiffText::Binary,
            Text::TooLarge => DiffText::TooLarge,
            Text::Hunks {
                unified,
                lines_added,
                lines_removed,
                truncated,
            } => DiffText::Hunks {
                unified,
                lines_added,
                lines_removed,
                truncated,
            },
        },
    }
}

pub(super) fn diff_answer(it: Diff) -> DiffAnswer {
    DiffAnswer {
        changes: it.changes.into_iter().map(diff_change).collect(),
        added: it.added,
        removed: it.removed,
        changed: it.changed,
        truncated: it.truncated,
    }
}

pub(crate) fn collect_answer(all: Vec<(SpaceId, Result<CollectionReport>)>) -> CollectAnswer {
    let spaces = all.into_iter().map(|(space_id, done)| {
        let (done, error) = match done {
            Ok(done) => (done, None),
            Err(error) => (CollectionReport::default(), Some(error)),
        };
        CollectedSpace {
            space_id,
            removed: done.removed,
            snapshots_left: done.snapshots_left,
            bytes_before: done.bytes_before,
            bytes_after: done.bytes_after,
            orphans_removed: done.orphans_removed,
            error,
        }
    });
    CollectAnswer {
        spaces: spaces.collect(),
    }
}

pub(crate) fn verify_answer(all: Vec<(SpaceId, Result<Verified>)>) -> VerifyAnswer {
    let spaces = all.into_iter().map(|(space_id, done)| {
        let (done, error) = match done {
            Ok(done) => (done, None),
            Err(error) => (Verified::default(), Some(error)),
        };
        let damage = done.damage.into_iter().map(|it| StoreDamage {
            what: it.what.to_owned(),
            name: it.name,
            why: it.why,
        });
        let hurts = done.hurts.into_iter().map(|it| HurtSnapshot {
            snapshot_id: it.snapshot,
            path: it.path,
        });
        VerifiedSpace {
            space_id,
            snapshots: done.snapshots,
            packs: done.packs,
            chunks: done.chunks,
            bytes: done.bytes,
            damage: damage.collect(),
            hurts: hurts.collect(),
            error,
        }
    });
    let spaces: Vec<VerifiedSpace> = spaces.collect();
    let is_sound = |it: &VerifiedSpace| it.error.is_none() && it.damage.is_empty();
    VerifyAnswer {
        sound: spaces.iter().all(is_sound),
        spaces,
    }
}

fn change_side(it: Facts) -> ChangeSide {
    ChangeSide {
        kind: file_kind(it.kind),
        size: it.size,
        mode: octal(it.mode),
        digest: it.digest,
        target: it.target,
    }
}

pub(super) fn waiting_change(it: change::Change) -> WaitingChange {
    WaitingChange {
        path: it.path,
        what: match it.what {
            EntryChange::Created => ChangeWhat::Created,
            EntryChange::Modified => ChangeWhat::Modified,
            EntryChange::Replaced => ChangeWhat::Replaced,
            EntryChange::Removed => ChangeWhat::Removed,
            EntryChange::Touched => ChangeWhat::Touched,
        },
        before: it.before.map(change_side),
        after: it.after.map(change_side),
    }
}

pub(super) fn change_text((path, unified): (ByteString, String)) -> ChangeText {
    ChangeText { path, unified }
}
