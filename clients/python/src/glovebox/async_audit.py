"""The ledger, for code that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Optional

from glovebox import audit_calls
from glovebox.records import AuditEntry, Checkpoint, TaskStep, Verification
from glovebox.request import AuditFilters

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from glovebox.async_client import AsyncGlovebox


class AsyncAudit:
    """The ledger."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    def list(
        self, *, page_size: Optional[int] = None, **filters: Unpack[AuditFilters]
    ) -> AsyncIterator[AuditEntry]:
        """The newest first."""
        return self._client._pages(
            lambda cursor: self._client._send(
                audit_calls.query_audit(filters, page_size, cursor)
            )
        )

    def timeline(
        self, task_id: str, *, page_size: Optional[int] = None
    ) -> AsyncIterator[TaskStep]:
        """All of a task, the oldest first: each exec with what was planned and how it ended. A task
        that nobody knows is `NotFound`.

            for step in gb.audit.timeline("task-7"):
                print(step.exec_id, step.outcome and step.outcome.body["status"])
        """
        return self._client._pages(
            lambda cursor: self._client._send(
                audit_calls.task_timeline(task_id, page_size, cursor)
            )
        )

    async def verify(self, *, space: Optional[str] = None) -> Verification:
        """Of all spaces for an admin or an auditor of ``local``, else of the token's own."""
        return await self._client._send(audit_calls.verify_audit(space))

    async def export(self, *, format: str = "jsonl", space: Optional[str] = None) -> bytes:
        """`jsonl` or `ocsf`; of all spaces for an admin or an auditor of ``local``."""
        return await self._client._send(audit_calls.export_audit(format, space))

    async def checkpoint(self) -> Checkpoint:
        return await self._client._send(audit_calls.audit_checkpoint())
