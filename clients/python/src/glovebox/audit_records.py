"""Entries of the ledger, as the server tells them, and what proves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import many, maybe, moment, values
from glovebox.records import Receipt


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the ledger."""

    space_id: str = ""
    seq: int = 0
    at: Optional[datetime] = moment()
    kind: str = ""
    exec_id: Optional[str] = None
    ids: Mapping[str, str] = values(dict)
    tags: list[str] = values(list)
    body: Mapping[str, Any] = values(dict)
    prev_hash: str = ""
    hash: str = ""
    #: How old it is now: `hot`, `warm`, `cold` or `archived`. Not a part of the entry.
    retention_tier: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class TaskStep:
    """What the ledger says of one exec of a task, or an entry about none."""

    exec_id: Optional[str] = None
    #: What was about to happen; None when it was refused at once.
    planned: Optional[AuditEntry] = maybe(AuditEntry)
    #: How it ended; None while it runs.
    outcome: Optional[AuditEntry] = maybe(AuditEntry)
    #: Everything else in order: its start after a wait, what people were asked, what became of its
    #: changes.
    others: list[AuditEntry] = many(AuditEntry)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class TaskTimeline:
    """A page of the steps of a task, the oldest first."""

    task_id: str = ""
    steps: list[TaskStep] = many(TaskStep)
    next: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Problem:
    #: The space whose entries or rows it is about.
    space_id: Optional[str] = None
    #: The entry it is about; None when it is about the whole.
    seq: Optional[int] = None
    what: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SpaceLedger:
    """A space that was looked at, and where its ledger ends."""

    space_id: str = ""
    entries: int = 0
    head: Optional[Receipt] = maybe(Receipt)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Verification:
    """Whether the ledger is as it was written."""

    sound: bool = False
    #: Whether all spaces were looked at, and not one alone.
    all_spaces: bool = False
    #: In all the spaces that were looked at.
    entries: int = 0
    #: The last entry; where all spaces were looked at, of the space ``local``.
    head: Optional[Receipt] = maybe(Receipt)
    spaces: list[SpaceLedger] = many(SpaceLedger)
    problems: list[Problem] = many(Problem)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Checkpoint:
    """A signed statement that the ledger had this entry."""

    space_id: str = ""
    seq: int = 0
    hash: str = ""
    public_key: str = ""
    signature: str = ""
    extra: Mapping[str, Any] = values(dict)
