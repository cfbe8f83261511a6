"""What the server answers with, typed. Every record keeps in `extra` what this version does not
know. Times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Optional, TypeVar

from glovebox.change_records import ChangeCount
from glovebox.decode import Text, many, maybe, moment, one, text, texts, values
from glovebox.effect_records import Effect, EffectCount, Preview
from glovebox.errors import ExecFailed
from glovebox.gate_records import GateResult
from glovebox.secret_records import SecretGiven
from glovebox.traffic_records import Traffic

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
    #: `run`, `simulate`, `transactional` or `mock`.
    mode: str = "run"
    skill_id: Optional[str] = None
    skill_version: Optional[str] = None
    #: `sha256:…` over all files of the skill.
    skill_digest: Optional[str] = None
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
    #: The container runtime that was asked for or configured.
    runtime: Optional[str] = None
    #: What was enforced, and by what.
    isolation: Mapping[str, Any] = values(dict)
    #: The whole effective policy.
    policy_snapshot: Optional[Mapping[str, Any]] = None
    capped: list[Capped] = many(Capped)
    #: What the request itself wanted of its policy.
    asked: Mapping[str, Any] = values(dict)
    risk: Risk = one(Risk)
    usage: Usage = one(Usage)
    #: What it did with its network, if it had one.
    traffic: Optional[Traffic] = maybe(Traffic)
    #: What it was given, by name.
    secrets: list[SecretGiven] = many(SecretGiven)
    #: The first of them, without differences of text, of an exec whose effects were captured;
    #: `execs.effects()` has all.
    effects: list[Effect] = many(Effect)
    effect_count: Optional[EffectCount] = maybe(EffectCount)
    #: In the order in which they were asked; the first that blocks is the last.
    gates: list[GateResult] = many(GateResult)
    #: The simulation that this does for real, or the digest of what this one showed.
    preview: Optional[Preview] = maybe(Preview)
    #: Where what it wrote to its workspace went: `direct`, `held`, `if_ok` or `dropped`.
    writes: str = "direct"
    #: Of an exec whose writes were not direct.
    changes: Optional[ChangeCount] = maybe(ChangeCount)
    #: The snapshot of the workspace as it was before, if one was taken.
    snapshot_before: Optional[str] = None
    #: What people are or were asked, if they were.
    approval_id: Optional[str] = None
    #: What policy said, with its reasons.
    ruling: Optional[Mapping[str, Any]] = None
    #: Who agreed that it may start.
    consent: Optional[Mapping[str, Any]] = None
    verdict: Optional[str] = None
    error: Optional[ExecError] = maybe(ExecError)
    #: What you should know though nothing went wrong.
    notes: list[str] = values(list)
    receipt: Optional[Receipt] = maybe(Receipt)
    ids: Ids = one(Ids)
    #: On whose word the ids stand: "people", or an agent, and what its token is bound to.
    vouched: Any = None
    extra: Mapping[str, Any] = values(dict)

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
    #: `state`, `output` or `effect`; a newer server may send others, with their fields in `extra`.
    kind: str = ""
    at: Optional[datetime] = moment()
    #: Of a `state`.
    status: Optional[str] = None
    queue_position: Optional[int] = None
    #: Of an `output`: `stdout` or `stderr`.
    stream: Optional[str] = None
    data: bytes = b""
    truncated: bool = False
    #: Of an `effect`.
    effect: Optional[Effect] = maybe(Effect)
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
    #: What the rules and the approval mode say: `allow`, `ask` or `deny`.
    permit: Optional[str] = None
    reasons: list[Mapping[str, Any]] = values(list)
    upgrades: list[Mapping[str, Any]] = values(list)
    snapshot_before: bool = False
    tools: Optional[Mapping[str, Any]] = None
    elevated: Optional[Mapping[str, Any]] = None
    #: Each thing that would change the decision, the nearest first.
    fix_it: list[str] = values(list)
    #: Rules that deny paths, and whether the sandbox holds them.
    path_rules: list[Mapping[str, Any]] = values(list)
    extra: Mapping[str, Any] = values(dict)

    @property
    def allowed(self) -> bool:
        return self.decision == "allow"


@dataclass(frozen=True)
class ToolAnswer:
    """Whether a tool exists for the caller, and which list of the configuration says so."""

    tool: str = ""
    allowed: bool = False
    #: `default`, `global` or `agent`.
    source: str = ""
    key: str = ""
    #: The entry of the list that decides, if one does.
    entry: Optional[str] = None
    rule: Optional[Mapping[str, Any]] = None
    #: What would change it.
    fix: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class ToolsAnswer:
    answers: list[ToolAnswer] = many(ToolAnswer)
    extra: Mapping[str, Any] = values(dict)


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
    #: The one agent that its holder is; `*` for an orchestrator.
    agent_id: Optional[str] = None
    conversation_id: Optional[str] = None
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


@dataclass(frozen=True)
class Published:
    """A port inside a container, and where on the server's loopback it is reached."""

    port: int = 0
    address: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Sandbox:
    """One that outlives an exec, as the server has it on record."""

    sandbox_id: str = ""
    name: str = ""
    space_id: str = ""
    project_id: str = ""
    #: `session`, `agent` or `shared`.
    lifetime: str = ""
    #: The session or agent that it is kept for.
    scope: Optional[str] = None
    #: The agent whose session it is.
    agent_id: Optional[str] = None
    #: What it was made with.
    config: Mapping[str, Any] = values(dict)
    config_hash: str = ""
    #: What was asked for when it was made, beside what policy says.
    asked: Mapping[str, Any] = values(dict)
    #: Only `sandboxes.get()` looks them up.
    ports: list[Published] = many(Published)
    #: `down`, `idle`, `acquiring` or `busy`. One that is down is built again when it is used.
    state: str = ""
    #: Who is in it.
    exec_id: Optional[str] = None
    container_id: Optional[str] = None
    created_at: Optional[datetime] = moment()
    last_used_at: Optional[datetime] = moment()
    uses: int = 0
    #: Why it is down, when that was not planned.
    trouble: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SandboxExplanation:
    """Which sandbox an exec would get, and what it would be made with."""

    name: str = ""
    lifetime: str = ""
    scope: Optional[str] = None
    project_id: str = ""
    #: The one that is there, if one is.
    sandbox: Optional[Sandbox] = maybe(Sandbox)
    config: Mapping[str, Any] = values(dict)
    config_hash: str = ""
    #: What the next exec finds: `new`, `same`, `kept`, `replaced` or `refused`.
    next: str = ""
    demanded: list[str] = values(list)
    sources: list[Mapping[str, Any]] = values(list)
    fix_it: list[str] = values(list)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Trouble:
    """One of many with which something did not work."""

    name: str = ""
    error: ExecError = one(ExecError)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Recreated:
    recreated: list[Sandbox] = many(Sandbox)
    failed: list[Trouble] = many(Trouble)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Pruned:
    #: By name.
    removed: list[str] = values(list)
    failed: list[Trouble] = many(Trouble)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class PoolShape:
    """The sandboxes of one configuration that stand ready."""

    config_hash: str = ""
    #: `native`, `python`, `node` or `container`.
    kind: str = ""
    idle: int = 0
    building: int = 0
    wanted: int = 0
    hits: int = 0
    misses: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Pool:
    """Sandboxes that stand ready before anybody asks, and what became of them."""

    enabled: bool = False
    #: Why it is off, when the host is the reason.
    reason: Optional[str] = None
    max: int = 0
    idle: int = 0
    building: int = 0
    hits: int = 0
    misses: int = 0
    dead_on_borrow: int = 0
    dead_at_rest: int = 0
    built: int = 0
    failed: int = 0
    refill_mean_us: int = 0
    refill_last_us: int = 0
    shapes: list[PoolShape] = many(PoolShape)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Evidence:
    """One guarantee, and how it is known."""

    guarantee: str = ""
    #: `kernel`, `supervised` or `unavailable`.
    grade: str = ""
    evidence: str = ""
    #: What would give it.
    fix: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Backend:
    """One way to run something on the server's host."""

    name: str = ""
    runtime: Optional[str] = None
    usable: bool = False
    error: Optional[ExecError] = maybe(ExecError)
    guarantees: list[Evidence] = many(Evidence)
    extra: Mapping[str, Any] = values(dict)
