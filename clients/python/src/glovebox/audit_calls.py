"""What is asked of the ledger."""

from __future__ import annotations

from typing import Optional

from glovebox import request
from glovebox.call import Answer, Call, Page, as_bytes, getting, of, page_of, segment
from glovebox.records import AuditEntry, Checkpoint, TaskStep, TaskTimeline, Verification
from glovebox.request import AuditFilters


def query_audit(
    filters: AuditFilters, limit: Optional[int], cursor: Optional[str]
) -> Call[Page[AuditEntry]]:
    given = request.audit(filters)
    return getting("/v1/audit", page_of(AuditEntry), **given, limit=limit, cursor=cursor)


def task_timeline(
    task_id: str, limit: Optional[int], cursor: Optional[str]
) -> Call[Page[TaskStep]]:
    whole = of(TaskTimeline)

    def read(answer: Answer) -> Page[TaskStep]:
        timeline = whole(answer)
        return Page(timeline.steps, timeline.next, timeline.extra)

    path = f"/v1/audit/timeline/{segment(task_id)}"
    return getting(path, read, limit=limit, cursor=cursor)


def verify_audit(space: Optional[str]) -> Call[Verification]:
    return getting("/v1/audit/verify", of(Verification), space_id=space)


def export_audit(format: str, space: Optional[str]) -> Call[bytes]:
    return getting("/v1/audit/export", as_bytes, format=format, space_id=space)


def audit_checkpoint() -> Call[Checkpoint]:
    return getting("/v1/audit/checkpoint", of(Checkpoint))
