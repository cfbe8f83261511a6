"""Workspaces as they were, for code that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Optional

from glovebox import calls
from glovebox.records import (
    Collected,
    Diff,
    Forked,
    Restored,
    RolledBack,
    Snapshot,
    SnapshotVerification,
    TakenSnapshot,
    Undone,
)

if TYPE_CHECKING:
    from glovebox.async_client import AsyncGlovebox

# As many as a server lists.
_ALL = 10_000


class AsyncSnapshots:
    """Workspaces as they were."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    async def take(
        self,
        project_id: str,
        *,
        label: Optional[str] = None,
        note: Optional[str] = None,
        live: bool = False,
    ) -> TakenSnapshot:
        """Only what changed since the last one is read and stored. One with a `label` is never
        removed by its age. While execs run it is a `Conflict`, unless `live` is said: then files
        that they write meanwhile may be half in it.

            before = gb.snapshots.take("demo", label="before the upgrade").snapshot_id
        """
        return await self._client._send(calls.take_snapshot(project_id, label, note, live))

    def list(self, project_id: str, *, limit: Optional[int] = None) -> AsyncIterator[Snapshot]:
        """The newest first, at most `limit` of them."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_snapshots(project_id, _ALL if limit is None else limit)
            )
        )

    async def get(self, project_id: str, snapshot_id: str) -> Snapshot:
        return await self._client._send(calls.get_snapshot(project_id, snapshot_id))

    async def remove(self, project_id: str, snapshot_id: str) -> None:
        return await self._client._send(calls.remove_snapshot(project_id, snapshot_id))

    async def diff(
        self,
        project_id: str,
        before: Optional[str] = None,
        after: Optional[str] = None,
        *,
        limit: Optional[int] = None,
        text: bool = True,
    ) -> Diff:
        """What differs between two snapshots; the workspace as it is now stands for one that is
        left out. At most `limit` changes are listed, all are counted; with `text` what is text
        comes with its lines.

            for it in gb.snapshots.diff("demo", before).changes:
                print(it.change, it.path)
                print(it.text.unified)
        """
        return await self._client._send(
            calls.diff_workspace(project_id, before, after, limit, text)
        )

    async def restore(
        self, project_id: str, snapshot_id: str, *, snapshot_before: bool = True
    ) -> Restored:
        """Makes everything as it was then. What stands there now is kept as a snapshot first, unless
        it is said that it may be lost.

            restored = gb.snapshots.restore("demo", before)
            gb.snapshots.restore("demo", restored.before)  # As if nothing had happened.
        """
        return await self._client._send(calls.restore_snapshot(project_id, snapshot_id, snapshot_before))

    async def undo(
        self, project_id: str, *, exec_id: Optional[str] = None, snapshot_before: bool = True
    ) -> Undone:
        """Makes the workspace as it was before the last exec that a snapshot was taken before, or
        before this one. Asked again, it goes one further back. The operator says before which execs
        snapshots are taken."""
        return await self._client._send(calls.undo_exec(project_id, exec_id, snapshot_before))

    async def rollback(
        self, project_id: str, *, snapshot_id: Optional[str] = None, snapshot_before: bool = True
    ) -> RolledBack:
        """Makes the workspace as it was at the newest snapshot that was verified, or at this one,
        which has to be: `verified_at` says so, and an operator's `verify` gives it. What stands
        there now is kept as a snapshot first, unless it is said that it may be lost.

            back = gb.snapshots.rollback("demo")
            gb.snapshots.restore("demo", back.before)  # As if nothing had happened.
        """
        return await self._client._send(
            calls.roll_back_workspace(project_id, snapshot_id, snapshot_before)
        )

    async def fork(
        self, project_id: str, into: str, *, snapshot_id: Optional[str] = None
    ) -> Forked:
        """Makes a new workspace with the files of a snapshot, or with those that are there now.

            for attempt in ("plan-a", "plan-b"):
                gb.snapshots.fork("demo", attempt)
        """
        return await self._client._send(calls.fork_workspace(project_id, into, snapshot_id))

    async def collect(self) -> Collected:
        """Removes those that were kept for their time, of every space: for the operator."""
        return await self._client._send(calls.collect_snapshots())

    async def verify(self) -> SnapshotVerification:
        """Reads everything that is stored, of every space: for the operator."""
        return await self._client._send(calls.verify_snapshots())
