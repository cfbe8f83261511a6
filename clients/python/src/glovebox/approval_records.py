"""What people are asked and what they answered, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import many, maybe, moment, one, values
from glovebox.effect_records import Effect, Preview
from glovebox.records import Ids, RiskSignal


@dataclass(frozen=True)
class Reason:
    """Why policy asks."""

    permit: str = ""
    kind: str = ""
    text: str = ""
    #: A word for programs, of what wants more network than policy gives.
    code: Optional[str] = None
    part: Optional[str] = None
    rule: Optional[Mapping[str, Any]] = None
    rule_name: Optional[str] = None
    #: What would change it.
    way: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Upgrade:
    """A field that is wanted beyond what policy gives."""

    field: str = ""
    asked: str = ""
    given: str = ""
    layer: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class BoundScript:
    """A script of the workspace, and what was in it when people were asked."""

    path: str = ""
    digest: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class GivenInput:
    """What a program is given to read."""

    bytes: int = 0
    digest: str = ""
    #: At most 500 characters.
    preview: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Bound:
    """What an approval holds of the files that its exec may run."""

    #: `nothing`, `files` or `workspace`.
    to: str = ""
    #: The run stands on them as they were approved, for its whole length.
    held: bool = False
    because: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Ask:
    """What people are shown."""

    description: str = ""
    argv: list[str] = values(list)
    #: At most 500 characters.
    code_preview: str = ""
    cwd: str = ""
    env_names: list[str] = values(list)
    workspace: str = ""
    backend: Optional[str] = None
    network: str = "none"
    tier: str = "safe"
    signals: list[RiskSignal] = many(RiskSignal)
    reasons: list[Reason] = many(Reason)
    upgrades: list[Upgrade] = many(Upgrade)
    #: Why, in the words of who asks.
    justification: Optional[str] = None
    #: The files that it names to run; where the whole workspace is bound, that as well.
    scripts: list[BoundScript] = many(BoundScript)
    bound: Optional[Bound] = maybe(Bound)
    #: What changed in the workspace since an earlier answer, which that made void.
    changed: list[str] = values(list)
    #: What it is given to read, which may be a program itself.
    stdin: Optional[GivenInput] = maybe(GivenInput)
    #: The files that are placed for it.
    inputs: list[BoundScript] = many(BoundScript)
    #: The simulation that it would do for real.
    preview: Optional[Preview] = maybe(Preview)
    #: What that simulation showed: the first of its effects.
    effects: list[Effect] = many(Effect)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Reply:
    by: str = ""
    #: Of that token: all tokens of a user are one person.
    user_id: Optional[str] = None
    at: Optional[datetime] = moment()
    #: `rest`, `websocket`, `cli`, `terminal`, `elicitation` or `automatic`.
    via: str = ""
    #: `decision`, `reason`, and what it narrows or edits.
    answer: Mapping[str, Any] = values(dict)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Approval:
    """One request to people, with what they replied."""

    id: str = ""
    space_id: str = ""
    exec_id: str = ""
    ids: Ids = one(Ids)
    #: On whose word the ids stand.
    vouched: Any = None
    #: Who this is cannot reply.
    requested_by: str = ""
    #: Of that token. None of this user's tokens can reply.
    requested_user: Optional[str] = None
    created_at: Optional[datetime] = moment()
    expires_at: Optional[datetime] = moment()
    #: `pending`, `approved`, `denied`, `expired`, `used` or `void`.
    state: str = ""
    digest: str = ""
    #: How many different people must say yes.
    quorum: int = 1
    replies: list[Reply] = many(Reply)
    ask: Ask = one(Ask)
    extra: Mapping[str, Any] = values(dict)

    @property
    def pending(self) -> bool:
        return self.state == "pending"


@dataclass(frozen=True)
class Difference:
    """An exec that another policy would decide otherwise."""

    exec_id: str = ""
    at: Optional[datetime] = moment()
    command: str = ""
    said: str = ""
    would_say: str = ""
    reasons: list[Reason] = many(Reason)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Replayed:
    """What another policy would have decided."""

    #: How many records were looked at.
    execs: int = 0
    differences: list[Difference] = many(Difference)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Grant:
    """That a kind of action needs no new answer in a conversation, until it ends or is revoked."""

    id: str = ""
    space_id: str = ""
    conversation_id: str = ""
    kind: str = ""
    #: The same for people.
    shown: str = ""
    approval_id: str = ""
    granted_by: str = ""
    created_at: Optional[datetime] = moment()
    revoked_at: Optional[datetime] = moment()
    revoked_by: Optional[str] = None
    expires_at: Optional[datetime] = moment()
    used: int = 0
    last_used_at: Optional[datetime] = moment()
    extra: Mapping[str, Any] = values(dict)
