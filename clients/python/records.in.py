"""What `openapi.json` does not say of the records, for `generate.py`; never imported.

`class NAME(SCHEMA)` gives a schema another name here. In a class, a docstring and `field = "…"`
say what the class or the field is, a field with a type has that type and that default, and methods
are copied. What stands before the first class and after the last one is copied too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Optional, TypedDict, Union

from glovebox import decode
from glovebox.decode import Text
from glovebox.errors import ExecFailed


class Approval:
    quorum: int = 1

    @property
    def pending(self) -> bool:
        return self.state == "pending"


class Ask:
    code_preview = "At most 500 characters."
    network: str = "none"
    tier: str = "safe"


class Attempt:
    code = "`OK`, or why not: `NOT_IN_ALLOWLIST`, `PORT_NOT_ALLOWED`, `INVALID_DESTINATION` …"


class AuditEntry(LedgerEntry): ...
class Backend(BackendView): ...
class BoundScript(ScriptRef): ...


class Change(WaitingChange):
    what = (
        "`created`, `modified`, `replaced` by something of another kind, `removed`, or `touched`: "
        "the same contents with another mode, other attributes or another time."
    )


class ChangeSide:
    """What stands somewhere, before or after an exec."""


class ChangeText:
    unified = "A unified diff."


class Changes(WaitingAnswer):
    """What an exec would change in the workspace as it is now."""


class Collected(CollectAnswer): ...
class Copied(CopyAnswer): ...


class CrvValidation:
    """What all gates said together."""


class Diff(DiffAnswer): ...


class DiffEntry:
    """What stands somewhere, on one side of a comparison."""


class DiffText:
    kind: str = "none"
    unified: str = ""


class Effect:
    """One thing that a program did, or would have done, in the order in which it was seen."""

    details: Details = decode.values(dict)

    def __post_init__(self) -> None:
        # What `details` are is known only here, where their type is.
        kind = _DETAILS.get(self.type)
        if kind is not None and not isinstance(self.details, kind):
            object.__setattr__(self, "details", decode.record(kind, self.details))

    @property
    def target(self) -> Text:
        """What it acts on, for people: a path, `host:port`, a program, or what the tool says."""
        if isinstance(self.details, (FileWrite, FileRead)):
            return self.details.path
        if isinstance(self.details, NetworkRequest):
            return f"{self.details.host}:{self.details.port}"
        if isinstance(self.details, ProcessSpawn):
            return self.details.program
        return self.details.target if isinstance(self.details, Reported) else ""


class EffectPage:
    next = "The place after these."


class Evidence:
    """One guarantee, and how it is known."""

    fix = "What would give it."


class Exec:
    """One run of something, as the server has it on record."""

    mode: str = "run"
    stdout = "Head and tail, with a marker between them; `execs.stdout()` has the rest."
    isolation: Mapping[str, Any] = decode.values(dict)
    isolation = "What was enforced, and by what."
    effects = (
        "The first of them, without differences of text, of an exec whose effects were captured; "
        "`execs.effects()` has all."
    )
    writes: str = "direct"
    writes = "Where what it wrote to its workspace went."

    @property
    def ended(self) -> bool:
        return self.status not in OPEN

    @property
    def ok(self) -> bool:
        """The program ran and returned zero, and no gate holds it back."""
        return self.status == "succeeded"

    def check(self) -> Exec:
        """Returns itself if it is `ok`; raises `ExecFailed` if not."""
        if not self.ok:
            raise ExecFailed(self)
        return self


class ExecError(Error):
    """Why an exec did not end by itself."""

    stage: Optional[str] = None
    blame: Optional[str] = None


class Explanation:
    reasons: list[Mapping[str, Any]] = decode.values(list)
    upgrades: list[Mapping[str, Any]] = decode.values(list)

    @property
    def allowed(self) -> bool:
        return self.decision == "allow"


class Fault:
    """How the world fails in a simulation. One of `host` and `tool` must be there."""


class FileFacts:
    mode = "A number, such as `0o644`."


class FileRead:
    """Of a `filesystem_read`."""


class FileWrite:
    """Of a `filesystem_write`."""

    SAID = {"moved_from": "from"}
    operation = (
        "`created`, `modified`, `replaced` by something of another kind, `removed`, `renamed`, "
        "`touched`, or `attempted`: it was refused, and what would have come of it is not known."
    )
    diff = "Of text: unified hunks. Not in an exec's record, which more may read than files."


class Forked(ForkedWorkspace):
    project_id = "The new workspace."


class GateResult:
    """What one gate said."""

    recovery = "What to do after a block."

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def reasons(self) -> list[str]:
        """Why it did not pass."""
        return [it.reason for it in self.validations if not it.valid and it.reason]


class GivenInput(StdinRef):
    preview = "At most 500 characters."


class Glob(GlobAnswer):
    paths = "Each directory before what is in it."


class Health(SandboxHealth):
    """How the server is, and what its host enforces."""

    guarantees: list[Mapping[str, Any]] = decode.values(list)

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Ids(Correlation):
    """On whose behalf something happened."""


class InvalidSkill:
    """A directory that would be a skill and is not right."""


class Listing:
    """One page of a directory."""


class NetworkRequest:
    """Of a `network_request`."""


class NewToken:
    secret: str = field(default="", repr=False)


class Output:
    encoding: str = "utf-8"
    encoding = "`utf-8`, or `base64` where it is no text."


class Pool(PoolStats):
    """Sandboxes that stand ready before they are asked for, and what became of them."""


class PoolShape(ShelfStats):
    """The sandboxes of one configuration that stand ready."""


class PresetResponse:
    """An answer to a simulated program's requests, over TLS or not. `host` must be there."""

    status = "200 without it."
    body = "At most one of `body`, `body_base64` and `json`."


class ProcessSpawn:
    """Of a `process_spawn`."""


class Pruned:
    removed = "By name."


class Reason:
    """Why policy asks."""

    code = "A word for programs, of what wants more network than policy gives."


class Receipt(ReceiptRef): ...


class Refusal:
    """Why something was not read."""


class Refused:
    hint = "What is missing, and how to ask for it."


class Replaced(ReplaceAnswer):
    file = "As it is now."


class Replayed:
    """What another policy would have decided."""


class Reply:
    answer = "`decision`, `reason`, and what it narrows or edits."


class Reported:
    """Of a `state_mutation` or an `external_api_call`: what a tool said of itself."""


class Reset(ResetAnswer): ...
class Restored(RestoredWorkspace): ...


class Retrieved:
    """A page as text, or why there is none: either `text` or `error_code` is there."""

    @property
    def ok(self) -> bool:
        return self.error_code is None


class Risk:
    tier: str = "safe"


class RiskSignal:
    tier: str = "safe"


class RolledBack(RolledBackWorkspace): ...


class Sandbox:
    """One that outlives an exec, as the server has it on record."""

    config = "What it was made with."
    ports = "Only `sandboxes.get()` looks them up."
    state = (
        "`down`, `idle`, `acquiring` or `busy`. One that is down is built again when it is used."
    )


class SandboxExplanation:
    """Which sandbox an exec would get, and what it would be made with."""

    next = "What the next exec finds."


class Search(SearchAnswer):
    """What was found, and what was not looked at."""


class SecretGiven:
    delivery: str = "file"


class SecretHold(Hold): ...
class SecretRemoval(Removal): ...
class SecretRevocation(Revocation): ...
class Seeded(SeedAnswer): ...
class ServerSettings(SettingsAnswer): ...


class SessionInfo:
    @property
    def exec_id(self) -> str:
        """Of its record: `execs.get` has it."""
        return self.session_id

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "running")

    @property
    def ok(self) -> bool:
        """The program returned zero, and no gate holds it back."""
        return self.status == "succeeded"


class SessionOutput:
    retry_after_ms = "There is no sense in asking earlier."


class SessionPiece:
    encoding = "Of `content`: `utf-8`, or `base64` where it is no text."

    @property
    def data(self) -> bytes:
        return decode.content(self.content, self.encoding)

    @property
    def text(self) -> str:
        """A character may be split between two pieces; `data` is exact."""
        return self.data.decode("utf-8", "replace")


class SessionScreen:
    @property
    def text(self) -> str:
        """All rows."""
        return "\n".join(self.lines)


class Settled(DecidedAnswer): ...


class Simulation:
    """What a simulated program is told instead of the truth; all of it is optional."""

    data = (
        "What tools that know of the simulation are given, by name; "
        "of a mock, `output` is the answer."
    )


class Skill(SkillInfo):
    """A program with described inputs and outputs, and with what it may do and use."""


class SkillAnswer:
    @property
    def ok(self) -> bool:
        """It has ended well, and answered what it promises."""
        return self.status == "succeeded" and self.output_valid is True


class Snapshot(SnapshotInfo): ...


class SnapshotVerification(VerifyAnswer):
    """Whether what is stored is what was stored."""


class SpaceLedger:
    """A space that was looked at, and where its ledger ends."""


class TakenSnapshot:
    """A new snapshot, and what it cost."""

    @property
    def snapshot_id(self) -> str:
        return self.snapshot.snapshot_id


class TaskMetadata:
    side_effects = "The first of them; `execs.effects` has all."


class Token:
    agent_id = "The one agent that its holder is; `*` for an orchestrator."


class Undone(UndoneExec): ...
class Unpacked(UnpackAnswer): ...


class Validation:
    """What one validator of a gate said."""

    confidence = "Between 0 and 1."


class Webhook(WebhookInfo):
    """An address that is told of approvals or of the ends of execs."""


class Workspace:
    bytes: Optional[int] = None
    bytes = "On disk. Only `workspaces.get()` measures it, and fills in what follows."
    files: Optional[int] = None
    complete: Optional[bool] = None
    snapshots: Optional[int] = None


#: What a newer server tells of stays as it came.
Details = Union[FileWrite, FileRead, NetworkRequest, ProcessSpawn, Reported, Mapping[str, Any]]

_DETAILS: Mapping[str, Any] = {
    "filesystem_write": FileWrite,
    "filesystem_read": FileRead,
    "network_request": NetworkRequest,
    "process_spawn": ProcessSpawn,
    "state_mutation": Reported,
    "external_api_call": Reported,
}

OPEN = frozenset({"queued", "awaiting_approval", "running"})
"""The states that an exec can still leave. Every other one is its last."""
