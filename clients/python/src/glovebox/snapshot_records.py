"""Snapshots of workspaces, as the server answers with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import Text, many, maybe, maybe_text, moment, one, text, texts, values
from glovebox.records import ExecError


@dataclass(frozen=True)
class SnapshotCounts:
    """What a snapshot holds, and what it does not."""

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    fifos: int = 0
    #: Further names of files that are counted once.
    hard_links: int = 0
    #: Sum of the files' sizes, holes included.
    bytes: int = 0
    sockets_skipped: int = 0
    devices_skipped: int = 0
    mounts_skipped: int = 0
    set_id_dropped: int = 0
    xattrs_dropped: int = 0
    #: Files that changed each time while they were read.
    unstable: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Snapshot:
    """A workspace as it was."""

    snapshot_id: str = ""
    project_id: str = ""
    taken_at: Optional[datetime] = moment()
    #: The one that it was compared with; it can be removed without harm.
    parent: Optional[str] = None
    label: Optional[str] = None
    note: Optional[str] = None
    #: When it was last read whole and found sound; None when it never was, or damage was found
    #: since.
    verified_at: Optional[datetime] = moment()
    counts: SnapshotCounts = one(SnapshotCounts)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class TakenSnapshot:
    """A new snapshot, and what it cost."""

    snapshot: Snapshot = one(Snapshot)
    #: The others were known to be unchanged.
    files_read: int = 0
    bytes_read: int = 0
    #: What the store grew by.
    stored_bytes: int = 0
    new_chunks: int = 0
    #: Files that changed while they were read, the first hundred.
    unstable: list[Text] = texts()
    extra: Mapping[str, Any] = values(dict)

    @property
    def snapshot_id(self) -> str:
        return self.snapshot.snapshot_id


@dataclass(frozen=True)
class RestoreCounts:
    """What was done to make files what a snapshot says."""

    files_written: int = 0
    bytes_written: int = 0
    #: Directories, links, FIFOs and further names that were made.
    made: int = 0
    #: Whose mode, time or attributes were set and nothing else.
    adjusted: int = 0
    #: Trees and files that were not in the snapshot.
    removed: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Restored:
    #: What the workspace is now as it was.
    snapshot_id: str = ""
    #: What stood there before; to restore it takes this back.
    before: Optional[str] = None
    restored: RestoreCounts = one(RestoreCounts)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class RolledBack:
    """A workspace that is at a verified snapshot again."""

    #: What it is now as it was.
    snapshot_id: str = ""
    verified_at: Optional[datetime] = moment()
    #: What stood there before; to restore it takes this back.
    before: Optional[str] = None
    #: Digest of all that stood there before; None when it was not kept.
    state_before: Optional[str] = None
    #: Digest of all that stands there now.
    state_after: str = ""
    restored: RestoreCounts = one(RestoreCounts)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Undone:
    #: The exec whose changes are gone.
    exec_id: str = ""
    snapshot_id: str = ""
    #: What stood there before; to restore it takes this back.
    before: Optional[str] = None
    restored: RestoreCounts = one(RestoreCounts)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Forked:
    #: The new workspace.
    project_id: str = ""
    #: Whose files it has.
    snapshot_id: str = ""
    restored: RestoreCounts = one(RestoreCounts)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class DiffEntry:
    """What stands somewhere, on one side of a comparison."""

    #: `file`, `directory`, `symlink`, `fifo` or `other`.
    type: str = ""
    size: Optional[int] = None
    #: Permissions, octal, where they differ.
    mode: Optional[str] = None
    target: Optional[Text] = maybe_text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class DiffText:
    #: `hunks`; `none` where no bytes changed, `binary`, or `too_large`.
    kind: str = "none"
    #: In unified form, without the lines that name the file.
    unified: str = ""
    lines_added: int = 0
    lines_removed: int = 0
    #: The rest did not fit.
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class DiffChange:
    path: Text = text()
    #: `added`, `removed`, `modified`, `type`, `mode` or `link`.
    change: str = ""
    before: Optional[DiffEntry] = maybe(DiffEntry)
    after: Optional[DiffEntry] = maybe(DiffEntry)
    text: DiffText = one(DiffText)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Diff:
    #: By path.
    changes: list[DiffChange] = many(DiffChange)
    added: int = 0
    removed: int = 0
    #: Everything else that changed.
    changed: int = 0
    #: There are more changes than are listed.
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class CollectedSpace:
    space_id: str = ""
    #: Snapshots that were kept for their time.
    removed: list[str] = values(list)
    snapshots_left: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    #: What a crash had left.
    orphans_removed: int = 0
    #: Why nothing was done.
    error: Optional[ExecError] = maybe(ExecError)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Collected:
    spaces: list[CollectedSpace] = many(CollectedSpace)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class StoreDamage:
    #: `record`, `pack`, `chunk` or `manifest`.
    what: str = ""
    name: str = ""
    why: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class HurtSnapshot:
    snapshot_id: str = ""
    #: None: all of it.
    path: Optional[Text] = maybe_text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class VerifiedSpace:
    space_id: str = ""
    snapshots: int = 0
    packs: int = 0
    chunks: int = 0
    #: Bytes that were held against their hashes.
    bytes: int = 0
    #: The first thousand.
    damage: list[StoreDamage] = many(StoreDamage)
    #: Snapshots that cannot be restored whole because of it.
    hurts: list[HurtSnapshot] = many(HurtSnapshot)
    #: Why it could not be looked at.
    error: Optional[ExecError] = maybe(ExecError)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SnapshotVerification:
    """Whether what is stored is what was stored."""

    #: Nothing is damaged anywhere.
    sound: bool = False
    spaces: list[VerifiedSpace] = many(VerifiedSpace)
    extra: Mapping[str, Any] = values(dict)
