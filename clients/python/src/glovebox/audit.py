# Generated from async_audit.py by clients/python/generate.py: do not edit.
"""The ledger, for code that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Optional

from glovebox import audit_calls
from glovebox.records import AuditEntry, Checkpoint, TaskStep, Verification
from glovebox.request import AuditFilters

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from glovebox.client import Glovebox


class Audit:
    """The ledger."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def list(
        self, *, page_size: Optional[int] = None, **filters: Unpack[AuditFilters]
    ) -> Iterator[AuditEntry]:
        """The newest first."""
        return self._client._pages(
            lambda cursor: self._client._send(
                audit_calls.query_audit(filters, page_size, cursor)
            )
        )

    def timeline(
        self, task_id: str, *, page_size: Optional[int] = None
    ) -> Iterator[TaskStep]:
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

    def verify(self, *, space: Optional[str] = None) -> Verification:
        """Of all spaces for an admin or an auditor of ``local``, else of the token's own."""
        return self._client._send(audit_calls.verify_audit(space))

    def export(self, *, format: str = "jsonl", space: Optional[str] = None) -> bytes:
        """`jsonl` or `ocsf`; of all spaces for an admin or an auditor of ``local``."""
        return self._client._send(audit_calls.export_audit(format, space))

    def checkpoint(self) -> Checkpoint:
        return self._client._send(audit_calls.audit_checkpoint())
