"""What the server answers with, typed. Every record keeps in `extra` what this version does not
know. Times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Optional, TypeVar

from glovebox.decode import Text, many, maybe, moment, one, text, texts, values
from glovebox.errors import ExecFailed

T = TypeVar("T")

OPEN = frozenset({"queued", "awaiting_approval", "running"})
"""The states that an exec can still leave. Every other one is its last."""


@dataclass(frozen=True)
class Artifact:
    path: Text = text()
    size: int = 0
    #: SHA-256, hexadecimal.
    hash: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class RiskSignal:
    name: str = ""
    tier: str = "safe"
    at: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Risk:
    tier: str = "safe"
    signals: list[RiskSignal] = many(RiskSignal)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Usage:
    cpu_ms: int = 0
    max_memory_bytes: int = 0
    max_pids: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Capped:
    """A field that the request wanted wider than it got."""

    field: str = ""
    asked: str = ""
    granted: str = ""
    layer: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Receipt:
    """Proof that the outcome is in the ledger."""

    seq: int = 0
    hash: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Retry:
    allowed: bool = False
    after_ms: Optional[int] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class ExecError:
    """Why an exec did not end by itself."""

    code: str = ""
    message: str = ""
    stage: Optional[str] = None
    blame: Optional[str] = None
    retry: Retry = one(Retry)
    hints: list[str] = values(list)
    causes: list[str] = values(list)
    rule: Optional[Mapping[str, Any]] = None
    exec_id: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Ids:
    """On whose behalf something happened."""

    space_id: str = ""
    user_id: Optional[str] = None
    conversation_id: Optional[str] = None
    turn_id: Optional[str] = None
    task_id: Optional[str] = None
    workflow_id: Optional[str] = None
    agent_id: Optional[str] = None
    session_id: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Exec:
    """One run of something, as the server has it on record."""

    exec_id: str = ""
    client_id: Optional[str] = None
    project_id: str = ""
    mode: str = "run"
    skill_id: Optional[str] = None
    cmd: Text = text()
    args: list[Text] = texts()
    cwd: Text = text()
    #: Names only: the server never keeps values.
    env_keys: list[str] = values(list)
    image: Optional[str] = None
    sandbox_id: Optional[str] = None
    status: str = ""
    #: How many are before it, while it is `queued`.
    queue_position: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    timed_out: bool = False
    killed: bool = False
    limit_hit: Optional[str] = None
    started_at: Optional[datetime] = moment()
    ended_at: Optional[datetime] = moment()
    duration_ms: Optional[int] = None
    #: Head and tail, with a marker between them; `execs.stdout()` has the rest.
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    stdout_path: Optional[str] = None
    stderr_path: Optional[str] = None
    artifacts_dir: Optional[str] = None
    artifacts: list[Artifact] = many(Artifact)
    artifacts_dropped: int = 0
    backend: Optional[str] = None
    #: What was enforced, and by what.
    isolation: Mapping[str, Any] = values(dict)
    #: The whole effective policy.
    policy_snapshot: Optional[Mapping[str, Any]] = None
    capped: list[Capped] = many(Capped)
    risk: Risk = one(Risk)
    usage: Usage = one(Usage)
    effects: list[Any] = values(list)
    gates: list[Any] = values(list)
    verdict: Optional[str] = None
    error: Optional[ExecError] = maybe(ExecError)
    receipt: Optional[Receipt] = maybe(Receipt)
    ids: Ids = one(Ids)
    extra: Mapping[str, Any] = values(dict)

    @property
    def ended(self) -> bool:
        return self.status not in OPEN

    @property
    def ok(self) -> bool:
        """The program ran and returned zero."""
        return self.status == "succeeded"

    def check(self) -> Exec:
        """Returns itself if it is `ok`; raises `ExecFailed` if not."""
        if not self.ok:
            raise ExecFailed(self)
        return self


@dataclass(frozen=True)
class Page(Generic[T]):
    items: list[T]
    #: Pass it as `cursor` for what follows; None on the last page.
    next: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Event:
    """One thing that happened to an exec. `seq` begins with 1 and has no gaps."""

    seq: int = 0
    #: `state` or `output`; a newer server may send others, with their fields in `extra`.
    kind: str = ""
    at: Optional[datetime] = moment()
    #: Of a `state`.
    status: Optional[str] = None
    queue_position: Optional[int] = None
    #: Of an `output`: `stdout` or `stderr`.
    stream: Optional[str] = None
    data: bytes = b""
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)

    @property
    def text(self) -> str:
        """The output as text. A character may be split between two events; `data` is exact."""
        return self.data.decode("utf-8", "replace")

    @property
    def last(self) -> bool:
        """Nothing comes after this one."""
        return self.kind == "state" and self.status is not None and self.status not in OPEN


@dataclass(frozen=True)
class Artifacts:
    exec_id: str = ""
    artifacts_dir: Optional[str] = None
    files: list[Artifact] = many(Artifact)
    missing_manifest: bool = False
    missing_reason: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Output:
    """What a program printed, and what is known about it."""

    content: str = ""
    #: `utf-8`, or `base64` where it is no text.
    encoding: str = "utf-8"
    truncated: bool = False
    bytes: int = 0
    missing_file: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Observation:
    """All that an agent wants to see of an exec."""

    exec_id: str = ""
    status: str = ""
    exit_code: Optional[int] = None
    stdout: Output = one(Output)
    stderr: Output = one(Output)
    artifacts: Artifacts = one(Artifacts)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Workspace:
    project_id: str = ""
    #: Only `workspaces.get()` measures it.
    bytes: Optional[int] = None
    files: Optional[int] = None
    #: False when it was too large to be measured in time.
    complete: Optional[bool] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class FileEntry:
    name: Text = text()
    #: `file`, `directory`, `symlink` or `other`.
    type: str = ""
    size: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Listing:
    entries: list[FileEntry] = many(FileEntry)
    #: There are more than are listed.
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)


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
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Problem:
    #: The entry it is about; None when it is about the whole.
    seq: Optional[int] = None
    what: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Verification:
    """Whether the ledger is as it was written."""

    sound: bool = False
    entries: int = 0
    head: Optional[Receipt] = maybe(Receipt)
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


@dataclass(frozen=True)
class Decided:
    """One field of the policy, who decided it, and what would change it."""

    field: str = ""
    path: str = ""
    value: str = ""
    layer: str = ""
    subject: Optional[str] = None
    change: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Explanation:
    """What policy says about an exec that was not run."""

    decision: str = ""
    code: Optional[str] = None
    reason: Optional[str] = None
    rule: Optional[Mapping[str, Any]] = None
    hints: list[str] = values(list)
    risk: Optional[Risk] = maybe(Risk)
    fields: list[Decided] = many(Decided)
    capped: list[Capped] = many(Capped)
    extra: Mapping[str, Any] = values(dict)

    @property
    def allowed(self) -> bool:
        return self.decision == "allow"


@dataclass(frozen=True)
class ServerSettings:
    version: int = 0
    settings: Mapping[str, Any] = values(dict)
    #: What the server was started with; `max_concurrent_execs` never goes above it.
    ceiling: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Token:
    """A token as it may be shown: everything but the secret."""

    token_id: str = ""
    name: str = ""
    role: str = ""
    space_id: str = ""
    scopes: list[str] = values(list)
    user_id: Optional[str] = None
    agent_id: Optional[str] = None
    created_at: Optional[datetime] = moment()
    expires_at: Optional[datetime] = moment()
    revoked_at: Optional[datetime] = moment()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class NewToken:
    token: Token = one(Token)
    #: Nobody is ever shown it again.
    secret: str = field(default="", repr=False)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Health:
    """How the server is, and what its host enforces."""

    status: str = ""
    runtime_mode: str = ""
    workspace_root_native: Optional[str] = None
    workspace_writable: bool = False
    docker_cli_path: Optional[str] = None
    docker_version: Optional[str] = None
    docker_context: Optional[str] = None
    store: bool = False
    running: int = 0
    queued: int = 0
    max_concurrent_execs: int = 0
    guarantees: list[Mapping[str, Any]] = values(list)
    probe_run: bool = False
    probe_ok: Optional[bool] = None
    probe_error: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"
