# Generated from openapi.json and records.in.py by clients/python/generate.py: do not edit.
"""What the server answers with, typed. Every record keeps in `extra` what this version
does not know. Times are aware datetimes in UTC. Where values are listed, a newer server may send
others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Optional, TypedDict, Union

from glovebox import decode
from glovebox.decode import Text
from glovebox.errors import ExecFailed


@dataclass(frozen=True)
class Bound:
    """What an approval holds of the files that its exec may run."""

    #: `nothing`, `files` or `workspace`.
    to: str = ""
    #: The run stands on them as they were approved, for its whole length. Otherwise they are
    #: compared right before it starts, and can be changed while it runs.
    held: bool = False
    #: Why it is bound to that.
    because: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class FileRead:
    """Of a `filesystem_read`."""

    #: Relative to the workspace; absolute for what lies outside it.
    path: Text = decode.text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class FileFacts:
    """One side of a change of a file."""

    #: `file`, `directory`, `symlink` and so on.
    kind: str = ""
    size: int = 0
    #: A number, such as `0o644`.
    mode: int = 0
    #: BLAKE3 of a file's bytes; none when there were more than may be read.
    digest: Optional[str] = None
    #: BLAKE3 of the extended attributes that are carried over; none when there are none.
    attributes: Optional[str] = None
    #: The text of a link.
    target: Optional[Text] = decode.maybe_text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class FileWrite:
    """Of a `filesystem_write`."""

    SAID: ClassVar[Mapping[str, str]] = {
        "moved_from": "from",
    }

    #: `created`, `modified`, `replaced` by something of another kind, `removed`, `renamed`,
    #: `touched`, or `attempted`: it was refused, and what would have come of it is not known.
    operation: str = ""
    #: Relative to the workspace; absolute for what lies outside it.
    path: Text = decode.text()
    #: Where something that was renamed stood before.
    moved_from: Optional[Text] = decode.maybe_text()
    before: Optional[FileFacts] = decode.maybe(FileFacts)
    after: Optional[FileFacts] = decode.maybe(FileFacts)
    #: Of text: unified hunks. Not in an exec's record, which more may read than files.
    diff: Optional[str] = None
    #: The system call, of an attempt.
    call: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class NetworkRequest:
    """Of a `network_request`."""

    #: `direct`, `connect`, `socks`, `proxied` or `dns`.
    approach: str = ""
    #: `dns`, `udp`, `tcp`, `tls`, `http` or `https`.
    spoken: str = ""
    #: The name that was asked for, or the address where there was none.
    host: str = ""
    port: int = 0
    #: What policy says to it.
    code: str = ""
    method: Optional[str] = None
    #: Without its query.
    path: Optional[str] = None
    #: Its beginning, with `[secret …]` in the place of values that are secrets or look like one.
    query: Optional[str] = None
    #: BLAKE3 of the whole query as it was; none of a request without one.
    query_digest: Optional[str] = None
    #: The names of the headers that a rerun is held to, sorted.
    header_names: list[str] = decode.values(list)
    #: BLAKE3 of those headers with their values.
    headers_digest: Optional[str] = None
    #: Bytes of the body that would have been sent.
    body_bytes: int = 0
    #: BLAKE3 of that body.
    body_digest: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ProcessSpawn:
    """Of a `process_spawn`."""

    #: Inside the sandbox.
    pid: int = 0
    parent: int = 0
    program: Text = decode.text()
    argv: list[Text] = decode.texts()
    #: There were more arguments, or longer ones, than are kept.
    argv_truncated: bool = False
    cwd: Optional[Text] = decode.maybe_text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Reported:
    """Of a `state_mutation` or an `external_api_call`: what a tool said of itself."""

    #: What it acts on: a table, a queue, an endpoint.
    target: str = ""
    #: What it does there.
    action: str = ""
    data: Any = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Effect:
    """One thing that a program did, or would have done, in the order in which it was seen."""

    #: Counts within the exec, from 1.
    seq: int = 0
    at: Optional[datetime] = decode.moment()
    #: `filesystem_write`, `filesystem_read`, `network_request`, `state_mutation`,
    #: `external_api_call` or `process_spawn`.
    type: str = ""
    details: Details = decode.values(dict)
    #: Whether policy lets it happen when it is run for real.
    would_succeed: bool = False
    #: Why not, and the way out.
    failure_reason: Optional[str] = None
    #: Told while the program ran, before anybody knew what would come of it; the last word is told
    #: at its end.
    provisional: bool = False
    #: What the program was told instead of what would have come of it.
    simulated_result: Any = None
    extra: Mapping[str, Any] = decode.values(dict)

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


@dataclass(frozen=True)
class Preview:
    """What ties a simulation to what is done after it."""

    #: The simulation: itself, or the one that is carried out.
    exec_id: str = ""
    #: SHA-256 over its program and its effects.
    digest: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Reason:
    """Why policy asks."""

    #: `allow`, `ask` or `deny`.
    permit: str = ""
    #: `hard_limit`, `tool_policy`, `deny_from`, `rule`, `grant`, `upgrade`, `tier`, `assessed`,
    #: `mode` or `simulation`.
    kind: str = ""
    #: A sentence for people: lower case, no full stop.
    text: str = ""
    #: A word for programs, of what wants more network than policy gives:
    #: `NET_UNRESTRICTED_REQUESTED`, `NET_NON_DEFAULT_PORT_REQUESTED`,
    #: `NET_WILDCARD_DOMAIN_REQUESTED`, `NET_PRIVATE_DESTINATION_REQUESTED` or
    #: `NET_CUSTOM_POLICY_REQUESTED`.
    code: Optional[str] = None
    #: What it is about: the segment of a command, a field, a path, a host.
    part: Optional[str] = None
    rule: Optional[Mapping[str, Any]] = None
    rule_name: Optional[str] = None
    #: What would change it.
    way: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class RiskSignal:
    name: str = ""
    #: `safe`, `low`, `medium`, `high` or `critical`.
    tier: str = "safe"
    at: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class BoundScript:
    """A script of the workspace that is run, and what was in it when people were asked."""

    path: str = ""
    #: SHA-256, hexadecimal.
    digest: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class GivenInput:
    """What a program is given to read."""

    bytes: int = 0
    #: SHA-256, hexadecimal.
    digest: str = ""
    #: At most 500 characters.
    preview: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Upgrade:
    """A field that is wanted beyond what policy gives. A person may give it, up to the ceilings."""

    field: str = ""
    asked: str = ""
    #: What policy gives without anybody's approval.
    given: str = ""
    layer: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Ask:
    """What people are shown. Texts are for reading: bytes that are none are replaced, and of the
    environment only names are here."""

    description: str = ""
    argv: list[str] = decode.values(list)
    #: At most 500 characters.
    code_preview: str = ""
    cwd: str = ""
    env_names: list[str] = decode.values(list)
    workspace: str = ""
    #: `native`, `docker` or `host`.
    backend: Optional[str] = None
    #: `none`, `retrieval`, `allowlist` or `unrestricted`.
    network: str = "none"
    #: `safe`, `low`, `medium`, `high` or `critical`.
    tier: str = "safe"
    signals: list[RiskSignal] = decode.many(RiskSignal)
    reasons: list[Reason] = decode.many(Reason)
    #: What it wants beyond policy.
    upgrades: list[Upgrade] = decode.many(Upgrade)
    #: Why, in the words of who asks.
    justification: Optional[str] = None
    #: The files that it names to run; where the whole workspace is bound, that as well, by the
    #: digest of its state.
    scripts: list[BoundScript] = decode.many(BoundScript)
    bound: Optional[Bound] = decode.maybe(Bound)
    #: What changed in the workspace since an earlier answer to this request, which that made void.
    changed: list[str] = decode.values(list)
    #: What it is given to read, which may be a program itself.
    stdin: Optional[GivenInput] = decode.maybe(GivenInput)
    #: The files that are placed for it.
    inputs: list[BoundScript] = decode.many(BoundScript)
    #: The simulation that it would do for real.
    preview: Optional[Preview] = decode.maybe(Preview)
    #: What that simulation showed: the first of its effects.
    effects: list[Effect] = decode.many(Effect)
    extra: Mapping[str, Any] = decode.values(dict)


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
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Reply:
    #: The name of the token, or of the user.
    by: str = ""
    #: The user of that token, when it is somebody's own: all tokens of a user are one person.
    user_id: Optional[str] = None
    at: Optional[datetime] = decode.moment()
    #: `rest`, `websocket`, `cli`, `terminal`, `elicitation` or `automatic`.
    via: str = ""
    #: `decision`, `reason`, and what it narrows or edits.
    answer: Mapping[str, Any] = decode.values(dict)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Approval:
    """One request to people, with what they replied."""

    id: str = ""
    space_id: str = ""
    exec_id: str = ""
    ids: Ids = decode.one(Ids)
    #: As in the exec.
    vouched: Any = None
    #: The name of the token, or of the user. Who this is cannot reply.
    requested_by: str = ""
    #: The user of that token, when it is somebody's own. None of their tokens can reply.
    requested_user: Optional[str] = None
    created_at: Optional[datetime] = decode.moment()
    expires_at: Optional[datetime] = decode.moment()
    #: `pending`, `approved`, `denied`, `expired`, `used` or `void`.
    state: str = ""
    #: Of all that is approved; what is started must have the same.
    digest: str = ""
    #: How many different people must say yes.
    quorum: int = 1
    replies: list[Reply] = decode.many(Reply)
    ask: Ask = decode.one(Ask)
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def pending(self) -> bool:
        return self.state == "pending"


@dataclass(frozen=True)
class Artifact:
    path: Text = decode.text()
    size: int = 0
    #: SHA-256, hexadecimal.
    hash: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Artifacts:
    exec_id: str = ""
    #: Relative to the state directory.
    artifacts_dir: Optional[str] = None
    files: list[Artifact] = decode.many(Artifact)
    missing_manifest: bool = False
    missing_reason: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Retry:
    allowed: bool = False
    after_ms: Optional[int] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ExecError:
    """Why an exec did not end by itself."""

    code: str = ""
    #: Lower case, no full stop, literals in backticks.
    message: str = ""
    #: `parse`, `resolve`, `assess`, `obtain`, `open`, `admit`, `run`, `collect`, `judge` or
    #: `close`.
    stage: Optional[str] = None
    #: `caller`, `policy`, `program`, `host` or `glovebox`.
    blame: Optional[str] = None
    retry: Retry = decode.one(Retry)
    hints: list[str] = decode.values(list)
    #: Causes, outermost first.
    causes: list[str] = decode.values(list)
    rule: Optional[Mapping[str, Any]] = None
    exec_id: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Evidence:
    """One guarantee, and how it is known."""

    guarantee: str = ""
    #: `unavailable`, `supervised` or `kernel`.
    grade: str = ""
    evidence: str = ""
    #: What would give it.
    fix: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Backend:
    """One way to run something, as `backend ls` shows it."""

    #: `native`, `docker` or `host`.
    name: str = ""
    runtime: Optional[str] = None
    usable: bool = False
    error: Optional[ExecError] = decode.maybe(ExecError)
    guarantees: list[Evidence] = decode.many(Evidence)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Capped:
    """A field that a request wanted wider than a layer allows, brought down because it said
    `cap`."""

    field: str = ""
    asked: str = ""
    granted: str = ""
    layer: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ChangeCount:
    """How much an exec changed that did not write to the workspace itself."""

    created: int = 0
    modified: int = 0
    removed: int = 0
    #: Of what was created or modified.
    bytes: int = 0
    #: There were more than could be looked at.
    truncated: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Checkpoint:
    """A signed statement that a ledger had this entry. Kept outside, it proves a cut tail or a full
    rewrite. The last line of an export is one."""

    space_id: str = ""
    seq: int = 0
    hash: str = ""
    public_key: str = ""
    signature: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class CollectedSpace:
    space_id: str = ""
    #: Snapshots that were kept for their time.
    removed: list[str] = decode.values(list)
    snapshots_left: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    #: What a crash had left.
    orphans_removed: int = 0
    #: Why nothing was done.
    error: Optional[ExecError] = decode.maybe(ExecError)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Collected:
    spaces: list[CollectedSpace] = decode.many(CollectedSpace)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Copied:
    path: Text = decode.text()
    files: int = 0
    directories: int = 0
    links: int = 0
    bytes: int = 0
    #: Special files, which are never copied, and what could not be read.
    skipped: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Settled:
    """What became of changes that waited."""

    exec_id: str = ""
    count: ChangeCount = decode.one(ChangeCount)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class DiffEntry:
    """What stands somewhere, on one side of a comparison."""

    #: `file`, `directory`, `symlink`, `fifo` or `other`.
    type: str = ""
    size: Optional[int] = None
    #: Permissions, octal, where they differ.
    mode: Optional[str] = None
    target: Optional[Text] = decode.maybe_text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class DiffText:
    #: `none`, `binary`, `too_large` or `hunks`.
    kind: str = "none"
    #: In unified form, without the lines that name the file.
    unified: str = ""
    lines_added: int = 0
    lines_removed: int = 0
    #: The rest did not fit.
    truncated: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class DiffChange:
    path: Text = decode.text()
    #: `added`, `removed`, `modified`, `type`, `mode` or `link`.
    change: str = ""
    before: Optional[DiffEntry] = decode.maybe(DiffEntry)
    after: Optional[DiffEntry] = decode.maybe(DiffEntry)
    text: DiffText = decode.one(DiffText)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Diff:
    #: By path.
    changes: list[DiffChange] = decode.many(DiffChange)
    added: int = 0
    removed: int = 0
    #: Everything else that changed.
    changed: int = 0
    #: There are more changes than are listed.
    truncated: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class EffectCount:
    """How many effects there were, and how many are not told."""

    total: int = 0
    #: Those that policy would not let happen.
    violations: int = 0
    #: Seen, counted and not kept.
    dropped: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class EffectPage:
    """Effects from a place in their log on."""

    effects: list[Effect] = decode.many(Effect)
    #: The place after these.
    next: int = 0
    #: Nothing comes after these.
    complete: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Validation:
    """What one validator of a gate said."""

    #: Which validator of the gate.
    validator: str = ""
    valid: bool = False
    #: Between 0 and 1.
    confidence: float = 0.0
    reason: Optional[str] = None
    #: `MISSING_DATA`, `CONFLICT`, `OUT_OF_SCOPE`, `LOW_CONFIDENCE`, `POLICY_VIOLATION`,
    #: `TOOL_ERROR` or `NON_DETERMINISM`.
    failure_code: Optional[str] = None
    remediation: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class GateResult:
    """What one gate said."""

    gate: str = ""
    #: `passed`, `blocked` or `warning`.
    status: str = ""
    #: Nothing is kept because of this.
    blocked: bool = False
    #: `MISSING_DATA`, `CONFLICT`, `OUT_OF_SCOPE`, `LOW_CONFIDENCE`, `POLICY_VIOLATION`,
    #: `TOOL_ERROR` or `NON_DETERMINISM`.
    failure_code: Optional[str] = None
    remediation: Optional[str] = None
    #: What to do after a block: `retry_alt_tool`, `ask_user`, `escalate` or `ignore`.
    recovery: Optional[str] = None
    validations: list[Validation] = decode.many(Validation)
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def reasons(self) -> list[str]:
        """Why it did not pass."""
        return [it.reason for it in self.validations if not it.valid and it.reason]


@dataclass(frozen=True)
class Receipt:
    """Proof that the outcome is in the ledger."""

    seq: int = 0
    hash: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Risk:
    #: `safe`, `low`, `medium`, `high` or `critical`.
    tier: str = "safe"
    signals: list[RiskSignal] = decode.many(RiskSignal)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SecretGiven:
    """What an exec was given, in its record."""

    name: str = ""
    version: int = 0
    #: `file`, `descriptor`, `broker` or `env`.
    delivery: str = "file"
    #: The standing grant that gave it; without one somebody agreed to this exec.
    grant_id: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class TerminalSize:
    """The size of a terminal, in characters."""

    columns: int = 0
    rows: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SessionTerms:
    """What makes an exec a session: its program is talked to while it runs."""

    #: It is ended when nothing was written or read for so long.
    idle_timeout_ms: Optional[int] = None
    #: None: three pipes.
    terminal: Optional[TerminalSize] = decode.maybe(TerminalSize)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Refused:
    """A destination that was refused, however often."""

    host: str = ""
    port: int = 0
    code: str = ""
    times: int = 0
    #: What is missing, and how to ask for it.
    hint: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Traffic:
    """What an exec did with its network, in its record."""

    connections: int = 0
    sent: int = 0
    received: int = 0
    #: The first few destinations that were refused; `refused_more` counts the rest.
    refused: list[Refused] = decode.many(Refused)
    refused_more: int = 0
    #: What it tried that its simulation had not shown; nothing got out from there on.
    strayed: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Usage:
    cpu_ms: int = 0
    max_memory_bytes: int = 0
    max_pids: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


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
    cmd: Text = decode.text()
    args: list[Text] = decode.texts()
    cwd: Text = decode.text()
    #: Names only: values are never stored.
    env_keys: list[str] = decode.values(list)
    image: Optional[str] = None
    sandbox_id: Optional[str] = None
    #: `queued`, `awaiting_approval`, `running`, `succeeded`, `failed`, `timed_out`, `killed`,
    #: `canceled`, `policy_denied`, `held`, `lost` or `error`.
    status: str = ""
    #: How many of its space are before it, while it waits. Known to the server alone, not stored.
    queue_position: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    timed_out: bool = False
    killed: bool = False
    #: `wall`, `cpu`, `memory`, `pids`, `disk`, `inodes`, `output` or `idle`.
    limit_hit: Optional[str] = None
    started_at: Optional[datetime] = decode.moment()
    ended_at: Optional[datetime] = decode.moment()
    duration_ms: Optional[int] = None
    #: Head and tail, with a marker between them; `execs.stdout()` has the rest.
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    #: Relative to the state directory, like every path here.
    stdout_path: Optional[str] = None
    stderr_path: Optional[str] = None
    artifacts_dir: Optional[str] = None
    artifacts: list[Artifact] = decode.many(Artifact)
    #: How many were not kept, for their size or their kind; `manifest.json` names them.
    artifacts_dropped: int = 0
    #: `native`, `docker` or `host`.
    backend: Optional[str] = None
    #: The container runtime that was asked for or configured.
    runtime: Optional[str] = None
    #: What was enforced, and by what.
    isolation: Mapping[str, Any] = decode.values(dict)
    #: The whole effective policy, not only what was asked.
    policy_snapshot: Optional[Mapping[str, Any]] = None
    capped: list[Capped] = decode.many(Capped)
    #: The request's own layer, without the values of variables.
    asked: Mapping[str, Any] = decode.values(dict)
    risk: Risk = decode.one(Risk)
    usage: Usage = decode.one(Usage)
    #: What it did with its network, if it had one.
    traffic: Optional[Traffic] = decode.maybe(Traffic)
    #: What it was given, by name.
    secrets: list[SecretGiven] = decode.many(SecretGiven)
    #: The first of them, without differences of text, of an exec whose effects were captured;
    #: `execs.effects()` has all.
    effects: list[Effect] = decode.many(Effect)
    effect_count: Optional[EffectCount] = decode.maybe(EffectCount)
    #: In the order in which they were asked; the first that blocks is the last.
    gates: list[GateResult] = decode.many(GateResult)
    #: A simulation that this does for real, or the digest of what this one showed.
    preview: Optional[Preview] = decode.maybe(Preview)
    #: Where what it wrote to its workspace went: `direct`, `held`, `if_ok` or `dropped`.
    writes: str = "direct"
    #: Of an exec whose writes were not direct.
    changes: Optional[ChangeCount] = decode.maybe(ChangeCount)
    #: The workspace as it was before.
    snapshot_before: Optional[str] = None
    #: What people are asked about it, while it waits for them.
    approval_id: Optional[str] = None
    #: What policy said to it, and why.
    ruling: Optional[Mapping[str, Any]] = None
    #: Who agreed that it may start.
    consent: Optional[Mapping[str, Any]] = None
    #: `keep`, `hold` or `discard`.
    verdict: Optional[str] = None
    error: Optional[ExecError] = decode.maybe(ExecError)
    #: What the caller should know though nothing went wrong.
    notes: list[str] = decode.values(list)
    receipt: Optional[Receipt] = decode.maybe(Receipt)
    ids: Ids = decode.one(Ids)
    #: On whose word the ids stand; absent for an agent that is bound to neither user nor
    #: conversation.
    vouched: Any = None
    #: It says that it runs, and the process that ran it is gone. Told by commands without a server,
    #: not stored: a server writes the end down by itself.
    abandoned: bool = False
    #: Of an exec that is a session.
    session: Optional[SessionTerms] = decode.maybe(SessionTerms)
    extra: Mapping[str, Any] = decode.values(dict)

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
class Decided:
    """One field, who decided it, and what would change it."""

    field: str = ""
    path: str = ""
    value: str = ""
    layer: str = ""
    subject: Optional[str] = None
    change: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Explanation:
    """What policy would decide about an exec."""

    #: `allow`, `ask` or `deny`.
    decision: str = ""
    #: Why it is denied.
    code: Optional[str] = None
    reason: Optional[str] = None
    #: Where the rule stands.
    rule: Optional[Mapping[str, Any]] = None
    #: What would change the decision.
    hints: list[str] = decode.values(list)
    risk: Optional[Risk] = decode.maybe(Risk)
    fields: list[Decided] = decode.many(Decided)
    capped: list[Capped] = decode.many(Capped)
    #: What the rules and the approval mode say, where the call fits the layers at all: `allow`,
    #: `ask` or `deny`.
    permit: Optional[str] = None
    reasons: list[Mapping[str, Any]] = decode.values(list)
    upgrades: list[Mapping[str, Any]] = decode.values(list)
    #: The workspace is kept as it is before this runs.
    snapshot_before: bool = False
    tools: Optional[Mapping[str, Any]] = None
    elevated: Optional[Mapping[str, Any]] = None
    #: Each thing that would change the decision, the nearest first.
    fix_it: list[str] = decode.values(list)
    #: The rules that deny paths, and who denies them.
    path_rules: list[Mapping[str, Any]] = decode.values(list)
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def allowed(self) -> bool:
        return self.decision == "allow"


@dataclass(frozen=True)
class FileInfo:
    """What a file is; a link is never followed to find out."""

    path: Text = decode.text()
    #: The last part of the path; `.` for the workspace itself.
    name: Text = decode.text()
    #: `file`, `directory`, `symlink` or `other`.
    type: str = ""
    #: Of a link: the length of its text.
    size: int = 0
    #: Permissions, octal.
    mode: str = ""
    modified_at: Optional[datetime] = decode.moment()
    #: Another one whenever the file is; goes into `If-Match`, `If-None-Match` and `If-Range`, in
    #: quotation marks.
    etag: str = ""
    #: The text of a link, which may lead anywhere.
    target: Optional[Text] = decode.maybe_text()
    extra: Mapping[str, Any] = decode.values(dict)


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
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Forked:
    #: The new workspace.
    project_id: str = ""
    #: Whose files it has.
    snapshot_id: str = ""
    restored: RestoreCounts = decode.one(RestoreCounts)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class GlobPath:
    path: Text = decode.text()
    #: `file`, `directory`, `symlink` or `other`.
    type: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Glob:
    #: Each directory before what is in it.
    paths: list[GlobPath] = decode.many(GlobPath)
    #: There may be more.
    truncated: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Grant:
    """That a kind of action needs no new answer in a conversation, until it is revoked."""

    id: str = ""
    space_id: str = ""
    conversation_id: str = ""
    #: In the one form that policy compares.
    kind: str = ""
    #: The same for people.
    shown: str = ""
    #: The request whose answer made it.
    approval_id: str = ""
    granted_by: str = ""
    created_at: Optional[datetime] = decode.moment()
    revoked_at: Optional[datetime] = decode.moment()
    revoked_by: Optional[str] = None
    #: Those that have no end were made before grants had one, and are in force no longer.
    expires_at: Optional[datetime] = decode.moment()
    used: int = 0
    last_used_at: Optional[datetime] = decode.moment()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Listing:
    """One page of a directory."""

    #: Each directory before what is in it, names by their bytes.
    entries: list[FileInfo] = decode.many(FileInfo)
    #: There are more than are listed.
    truncated: bool = False
    #: `after` of the next page.
    next: Optional[str] = None
    #: Directories on this page that could not be looked into.
    unread: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Attempt:
    """One attempt to get out, told when it was decided and, if it was let through, again at its
    end."""

    #: Counts within the sandbox's log.
    seq: int = 0
    at: Optional[datetime] = decode.moment()
    #: `OK`, or why not: `NOT_IN_ALLOWLIST`, `PORT_NOT_ALLOWED`, `INVALID_DESTINATION` …
    code: str = ""
    #: `direct`, `connect`, `socks`, `proxied` or `dns`.
    approach: str = ""
    #: `dns`, `udp`, `tcp`, `tls`, `http` or `https`.
    spoken: str = ""
    #: The name that was asked for, or the address where there was none.
    host: str = ""
    port: int = 0
    #: The entry of the list that let it through.
    rule: Optional[str] = None
    #: Where it really went.
    address: Optional[str] = None
    #: Of a request that could be read: the method and the path without its query.
    method: Optional[str] = None
    path: Optional[str] = None
    #: Bytes the sandbox sent and got, at the end.
    sent: int = 0
    received: int = 0
    #: Whether the connection is over.
    ended: bool = False
    #: What is missing and how to ask for it, of an attempt that was refused.
    hint: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class NetworkPage:
    """A part of the log."""

    attempts: list[Attempt] = decode.many(Attempt)
    #: The place after these.
    next: int = 0
    #: The exec has ended, and nothing comes after these.
    complete: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Token:
    """A token as it may be shown: everything but the secret."""

    token_id: str = ""
    name: str = ""
    #: `agent`, `approver`, `auditor` or `admin`.
    role: str = ""
    space_id: str = ""
    #: What it really may do: the role's scopes, or fewer.
    scopes: list[str] = decode.values(list)
    #: Whoever holds it acts for this user, and for no other.
    user_id: Optional[str] = None
    #: The one agent that its holder is; `*` for an orchestrator.
    agent_id: Optional[str] = None
    #: Its holder takes part in this conversation, and in no other.
    conversation_id: Optional[str] = None
    created_at: Optional[datetime] = decode.moment()
    expires_at: Optional[datetime] = decode.moment()
    revoked_at: Optional[datetime] = decode.moment()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class NewToken:
    """A token and the one sight of its secret."""

    token: Token = decode.one(Token)
    #: Shown this once; only a hash is kept.
    secret: str = field(default="", repr=False)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Output:
    """Output with what is known about it."""

    content: str = ""
    #: `utf-8`, or `base64` where it is no text.
    encoding: str = "utf-8"
    #: The program printed more than was kept.
    truncated: bool = False
    #: How much was printed.
    bytes: int = 0
    #: Nothing was kept: the exec never ran, or its files are gone.
    missing_file: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Observation:
    """All that an agent wants to see of an exec."""

    exec_id: str = ""
    #: `queued`, `awaiting_approval`, `running`, `succeeded`, `failed`, `timed_out`, `killed`,
    #: `canceled`, `policy_denied`, `held`, `lost` or `error`.
    status: str = ""
    exit_code: Optional[int] = None
    stdout: Output = decode.one(Output)
    stderr: Output = decode.one(Output)
    artifacts: Artifacts = decode.one(Artifacts)
    extra: Mapping[str, Any] = decode.values(dict)


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
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Pool:
    """Sandboxes that stand ready before they are asked for, and what became of them."""

    enabled: bool = False
    #: Why it is off, when the host is the reason.
    reason: Optional[str] = None
    max: int = 0
    idle: int = 0
    building: int = 0
    #: Execs that got a warm sandbox, and that found none and went cold.
    hits: int = 0
    misses: int = 0
    #: Found dead when they were to be given away, or while they waited.
    dead_on_borrow: int = 0
    dead_at_rest: int = 0
    built: int = 0
    failed: int = 0
    #: How long building one takes.
    refill_mean_us: int = 0
    refill_last_us: int = 0
    shapes: list[PoolShape] = decode.many(PoolShape)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Trouble:
    """Something that did not work for one of many."""

    name: str = ""
    error: ExecError = decode.one(ExecError)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Pruned:
    #: By name.
    removed: list[str] = decode.values(list)
    failed: list[Trouble] = decode.many(Trouble)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Published:
    """A port inside a container, and where on this machine's loopback it is reached."""

    port: int = 0
    #: `127.0.0.1:49153`.
    address: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Sandbox:
    """One that outlives an exec, as the server has it on record."""

    sandbox_id: str = ""
    #: Lower case letters, digits and `-`, at most 63: also the name of its container.
    name: str = ""
    space_id: str = ""
    project_id: str = ""
    #: `exec`, `session`, `agent` or `shared`.
    lifetime: str = ""
    #: The session or agent it is kept for.
    scope: Optional[str] = None
    #: The agent whose session it is.
    agent_id: Optional[str] = None
    #: What it was made with.
    config: Mapping[str, Any] = decode.values(dict)
    #: SHA-256 of the canonical configuration, hexadecimal: what it was really made with.
    config_hash: str = ""
    #: What was asked for when it was made, beside what policy says; it holds for every exec that
    #: comes to it by its scope, and when it is made anew.
    asked: Mapping[str, Any] = decode.values(dict)
    #: Only `sandboxes.get()` looks them up.
    ports: list[Published] = decode.many(Published)
    #: `down`, `idle`, `acquiring` or `busy`. One that is down is built again when it is used.
    state: str = ""
    #: Who is in it.
    exec_id: Optional[str] = None
    #: What the container engine calls it.
    container_id: Optional[str] = None
    created_at: Optional[datetime] = decode.moment()
    last_used_at: Optional[datetime] = decode.moment()
    uses: int = 0
    #: Why it is down, when that was not planned.
    trouble: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Recreated:
    #: Taken down; each is built from today's configuration when it is next used.
    recreated: list[Sandbox] = decode.many(Sandbox)
    failed: list[Trouble] = decode.many(Trouble)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SecretHold:
    """A running exec that has the value where nobody can take it away."""

    exec_id: str = ""
    secret: str = ""
    version: int = 0
    #: `file`, `descriptor`, `broker` or `env`.
    delivery: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Secret:
    """What is known of a secret without its value."""

    name: str = ""
    #: Counts the values that it had.
    version: int = 0
    #: Where a brokered value may go; no other delivery looks at it.
    hosts: list[str] = decode.values(list)
    #: The ways in which it may be given to a program: `file`, `descriptor`, `broker` or `env`.
    deliveries: list[str] = decode.values(list)
    created_at: Optional[datetime] = decode.moment()
    updated_at: Optional[datetime] = decode.moment()
    last_used_at: Optional[datetime] = decode.moment()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SecretGrant:
    """That the execs of a conversation, or of an agent, may have a secret without asking each
    time."""

    grant_id: str = ""
    secret: str = ""
    #: At least one of the two is there.
    conversation_id: Optional[str] = None
    agent_id: Optional[str] = None
    #: `file`, `descriptor`, `broker` or `env`.
    deliveries: list[str] = decode.values(list)
    granted_by: str = ""
    granted_at: Optional[datetime] = decode.moment()
    expires_at: Optional[datetime] = decode.moment()
    revoked_at: Optional[datetime] = decode.moment()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SecretRemoval:
    """A secret that is gone."""

    secret: Secret = decode.one(Secret)
    #: Grants that ended with it.
    revoked: list[SecretGrant] = decode.many(SecretGrant)
    #: Running execs that have the value and keep it until they end.
    still_held: list[SecretHold] = decode.many(SecretHold)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Replaced:
    times: int = 0
    #: As it is now.
    file: FileInfo = decode.one(FileInfo)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Difference:
    """An exec that would be decided otherwise."""

    exec_id: str = ""
    at: Optional[datetime] = decode.moment()
    command: str = ""
    #: `allow`, `ask` or `deny`.
    said: str = ""
    #: `allow`, `ask` or `deny`.
    would_say: str = ""
    reasons: list[Reason] = decode.many(Reason)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Replayed:
    """What another policy would have decided."""

    #: How many records were looked at.
    execs: int = 0
    #: Those that would be decided otherwise, newest first.
    differences: list[Difference] = decode.many(Difference)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SkippedSeed:
    path: Text = decode.text()
    why: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Seeded:
    """What came from the operator's template."""

    made: int = 0
    #: Something of that name was there, and was not touched.
    kept: int = 0
    skipped: list[SkippedSeed] = decode.many(SkippedSeed)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Reset:
    seeded: Seeded = decode.one(Seeded)
    #: Execs whose artifacts are gone.
    artifacts_removed: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Restored:
    #: What it is now as it was.
    snapshot_id: str = ""
    #: What stood there before; to restore it takes this back. None when it was not kept.
    before: Optional[str] = None
    restored: RestoreCounts = decode.one(RestoreCounts)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Refusal:
    """Why something was not read."""

    code: str = ""
    #: Lower case, no full stop, literals in backticks.
    message: str = ""
    hint: Optional[str] = None
    retry_after_ms: Optional[int] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Retrieved:
    """A page as text, or why there is none: either `text` or `error_code` is there."""

    #: Where the answer came from, after redirects.
    final_url: Optional[str] = None
    status_code: Optional[int] = None
    #: As the server declares it.
    content_type: Optional[str] = None
    #: As its bytes look.
    sniffed_type: Optional[str] = None
    charset: Optional[str] = None
    title: Optional[str] = None
    #: A file name that is safe to use.
    suggested_name: Optional[str] = None
    #: After decoding.
    bytes_read: int = 0
    wire_bytes: int = 0
    elapsed_ms: int = 0
    text: Optional[str] = None
    truncated: bool = False
    redirects: int = 0
    #: All that the last name led to.
    addresses: list[str] = decode.values(list)
    peer: Optional[str] = None
    #: SHA-256 of the server's certificate, in hex.
    certificate_sha256: Optional[str] = None
    #: SHA-256 of the decoded body, in hex.
    content_sha256: Optional[str] = None
    retrieved_at: Optional[datetime] = decode.moment()
    error_code: Optional[str] = None
    error: Optional[Refusal] = decode.maybe(Refusal)
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def ok(self) -> bool:
        return self.error_code is None


@dataclass(frozen=True)
class SecretRevocation:
    """Grants that give nothing any more."""

    revoked: list[SecretGrant] = decode.many(SecretGrant)
    #: Running execs that have the value and keep it until they end.
    still_held: list[SecretHold] = decode.many(SecretHold)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class RolledBack:
    """A workspace that is at a verified snapshot again."""

    #: What it is now as it was.
    snapshot_id: str = ""
    verified_at: Optional[datetime] = decode.moment()
    #: What stood there before; to restore it takes this back. None when it was not kept.
    before: Optional[str] = None
    #: Digest of all that stood there before; None when it was not kept.
    state_before: Optional[str] = None
    #: Digest of all that stands there now.
    state_after: str = ""
    restored: RestoreCounts = decode.one(RestoreCounts)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SandboxExplanation:
    """Which sandbox an exec would get, and what it would be made with."""

    name: str = ""
    #: `exec`, `session`, `agent` or `shared`.
    lifetime: str = ""
    scope: Optional[str] = None
    project_id: str = ""
    #: The one that is there, if one is.
    sandbox: Optional[Sandbox] = decode.maybe(Sandbox)
    #: What one that is made now is made with.
    config: Mapping[str, Any] = decode.values(dict)
    config_hash: str = ""
    #: What the next exec finds: `new`, `same`, `kept`, `replaced` or `refused`.
    next: str = ""
    #: What policy demands of the backend.
    demanded: list[str] = decode.values(list)
    #: Which section of the configuration decided each container setting.
    sources: list[Mapping[str, Any]] = decode.values(list)
    fix_it: list[str] = decode.values(list)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Health:
    """How the server is, and what its host enforces."""

    #: `ok` or `degraded`.
    status: str = ""
    #: The backend of a call that wishes for none: `native` or `docker`.
    runtime_mode: str = ""
    #: A path of the host: for an admin alone.
    workspace_root_native: Optional[str] = None
    workspace_writable: bool = False
    #: As `workspace_root_native`; these three only where the configuration speaks of containers.
    docker_cli_path: Optional[str] = None
    docker_version: Optional[str] = None
    docker_context: Optional[str] = None
    store: bool = False
    #: Of all spaces: for an admin of the server alone.
    running: int = 0
    #: As `running`.
    queued: int = 0
    max_concurrent_execs: int = 0
    guarantees: list[Mapping[str, Any]] = decode.values(list)
    probe_run: bool = False
    probe_ok: Optional[bool] = None
    probe_error: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True)
class SearchLine:
    line: int = 0
    text: Text = decode.text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SearchMatch:
    path: Text = decode.text()
    #: From 1.
    line: int = 0
    #: Where the match begins in the line, in bytes from 0.
    column: int = 0
    #: The line, cut to 500 bytes around the match.
    text: Text = decode.text()
    before: list[SearchLine] = decode.many(SearchLine)
    after: list[SearchLine] = decode.many(SearchLine)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Search:
    """What was found, and what was not looked at."""

    matches: list[SearchMatch] = decode.many(SearchMatch)
    #: Files that were searched.
    files: int = 0
    bytes: int = 0
    #: Files with a NUL byte, which are not searched.
    binary: int = 0
    #: Files above 8 MiB, unreadable ones, and directories that could not be entered.
    skipped: int = 0
    #: Lines that were not searched to their end.
    long_lines: int = 0
    #: There may be more.
    truncated: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SessionStream:
    """One stream of a session: what was written since its start, and what of that can still be
    read."""

    #: The first byte that can still be read.
    start: int = 0
    #: One past the last.
    end: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SessionInfo:
    """A session as it is now. Its record is the exec of the same id."""

    #: Of its exec, too.
    session_id: str = ""
    project_id: str = ""
    command: list[Text] = decode.texts()
    #: `waiting`, `running`, `exited`, `signaled`, `timed_out`, `killed`, `lost` or `failed`.
    state: str = ""
    #: Of the exec: `queued`, `awaiting_approval`, `running`, `succeeded`, `failed`, `timed_out`,
    #: `killed`, `canceled`, `policy_denied`, `held`, `lost` or `error`.
    status: str = ""
    #: All that a terminal shows; of pipes the standard output.
    stdout: SessionStream = decode.one(SessionStream)
    stderr: SessionStream = decode.one(SessionStream)
    #: How long nothing was written or read.
    idle_ms: int = 0
    #: A guess: the program seems to wait for somebody to type.
    waiting_for_input: bool = False
    #: No more input is taken.
    input_closed: bool = False
    ids: Ids = decode.one(Ids)
    client_id: Optional[str] = None
    ended_at: Optional[datetime] = decode.moment()
    error: Optional[ExecError] = decode.maybe(ExecError)
    exit_code: Optional[int] = None
    #: It is ended when nothing was written or read for so long.
    idle_timeout_ms: Optional[int] = None
    #: `wall`, `cpu`, `memory`, `pids`, `disk`, `inodes`, `output` or `idle`.
    limit_hit: Optional[str] = None
    receipt: Optional[Receipt] = decode.maybe(Receipt)
    signal: Optional[int] = None
    started_at: Optional[datetime] = decode.moment()
    #: None: three pipes.
    terminal: Optional[TerminalSize] = decode.maybe(TerminalSize)
    #: What people are asked before it starts.
    approval_id: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)

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


@dataclass(frozen=True)
class SessionPiece:
    """A piece of one stream."""

    #: Of the first byte of `content`. More than what was asked for: what is between is not kept any
    #: more.
    offset: int = 0
    #: To be asked for next. The same offset gives the same bytes again, as long as they are kept.
    next: int = 0
    content: str = ""
    #: Of `content`: `utf-8`, or `base64` where it is no text.
    encoding: str = ""
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def data(self) -> bytes:
        return decode.content(self.content, self.encoding)

    @property
    def text(self) -> str:
        """A character may be split between two pieces; `data` is exact."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class SessionOutput:
    """What a session has put out."""

    session: SessionInfo = decode.one(SessionInfo)
    stdout: SessionPiece = decode.one(SessionPiece)
    stderr: SessionPiece = decode.one(SessionPiece)
    #: Nothing comes after this: the session has ended, and this is the last of it.
    complete: bool = False
    #: There is no sense in asking earlier.
    retry_after_ms: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SessionScreen:
    """What a person would see on the terminal now."""

    size: TerminalSize = decode.one(TerminalSize)
    #: Every row, without what is blank at its end.
    lines: list[str] = decode.values(list)
    #: Row and column, both from 0.
    cursor: list[int] = decode.values(list)
    cursor_hidden: bool = False
    #: A program has the whole screen, as an editor does.
    alternate: bool = False
    #: As the program named the window.
    title: str = ""
    #: What draws this screen on an empty terminal of this size: text with escape sequences, in
    #: base64.
    redraw: str = ""
    #: The place in the output up to which this screen shows it: what is read from here on goes on
    #: with it. An escape sequence or a character that has begun and not ended comes after it,
    #: unless it is longer than 64 KiB.
    offset: int = 0
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def text(self) -> str:
        """All rows."""
        return "\n".join(self.lines)


@dataclass(frozen=True)
class ServerSettings:
    #: Grows with every change; `If-Match: "VERSION"` changes only this one.
    version: int = 0
    settings: Mapping[str, Any] = decode.values(dict)
    #: What this server was started with; `max_concurrent_execs` never goes above it.
    ceiling: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SkillRef:
    """A skill as it was when it was called: another manifest or another file has another digest."""

    id: str = ""
    version: Optional[str] = None
    #: `sha256:` and 64 hexadecimal digits, over all of its files.
    digest: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SkillAnswer:
    """A call of a skill, and what came of it. What the skill answers is data, whatever it says."""

    exec_id: str = ""
    #: `queued`, `awaiting_approval`, `running`, `succeeded`, `failed`, `timed_out`, `killed`,
    #: `canceled`, `policy_denied`, `held`, `lost` or `error`.
    status: str = ""
    skill: Optional[SkillRef] = decode.maybe(SkillRef)
    #: None while it runs, and when it has none.
    output: Any = None
    #: Whether it fits the skill's `outputs`. None when there is none yet, or when the skill is not
    #: what it was.
    output_valid: Optional[bool] = None
    #: What does not fit, and where.
    output_error: Optional[ExecError] = decode.maybe(ExecError)
    exec: Exec = decode.one(Exec)
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def ok(self) -> bool:
        """It has ended well, and answered what it promises."""
        return self.status == "succeeded" and self.output_valid is True


@dataclass(frozen=True)
class Skill:
    """A program with described inputs and outputs, and with what it may do and use."""

    id: str = ""
    name: str = ""
    description: str = ""
    version: Optional[str] = None
    #: `sha256:…` over all of its files.
    digest: str = ""
    #: `shipped` or `directory`.
    origin: str = ""
    #: One of the same id came with Glovebox, and this one stands in its place.
    replaces_shipped: bool = False
    #: Whether the policy of tools lets whoever asks call it, as `skill.ID`.
    allowed: bool = False
    #: A JSON Schema.
    inputs: Mapping[str, Any] = decode.values(dict)
    #: A JSON Schema.
    outputs: Mapping[str, Any] = decode.values(dict)
    #: As in its manifest.
    runtime: Mapping[str, Any] = decode.values(dict)
    permissions: Mapping[str, Any] = decode.values(dict)
    limits: Mapping[str, Any] = decode.values(dict)
    examples: list[Mapping[str, Any]] = decode.values(list)
    #: The text of its `SKILL.md`; only of one skill that is asked for by its id.
    instructions: Optional[str] = None
    #: All of them, relative to its directory; as `instructions`.
    files: Optional[list[str]] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class InvalidSkill:
    """A directory that would be a skill and is not right."""

    #: The name of its directory.
    dir: str = ""
    error: ExecError = decode.one(ExecError)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SkillList:
    #: By id.
    skills: list[Skill] = decode.many(Skill)
    #: What would be a skill and is not right.
    invalid: list[InvalidSkill] = decode.many(InvalidSkill)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SnapshotCounts:
    """What it holds, and what it does not."""

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
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Snapshot:
    """A workspace as it was."""

    snapshot_id: str = ""
    project_id: str = ""
    taken_at: Optional[datetime] = decode.moment()
    #: The one that it was compared with; it can be removed without harm.
    parent: Optional[str] = None
    label: Optional[str] = None
    note: Optional[str] = None
    #: When it was last read whole and found sound; None when it never was, or damage was found
    #: since.
    verified_at: Optional[datetime] = decode.moment()
    counts: SnapshotCounts = decode.one(SnapshotCounts)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class TakenSnapshot:
    """A new snapshot, and what it cost."""

    snapshot: Snapshot = decode.one(Snapshot)
    #: The others were known to be unchanged.
    files_read: int = 0
    bytes_read: int = 0
    #: What the store grew by. An agent is told what it would have grown by at most if nothing had
    #: been there: what others store is not told.
    stored_bytes: int = 0
    #: As `stored_bytes`.
    new_chunks: int = 0
    #: Files that changed while they were read, the first hundred.
    unstable: list[Text] = decode.texts()
    extra: Mapping[str, Any] = decode.values(dict)

    @property
    def snapshot_id(self) -> str:
        return self.snapshot.snapshot_id


@dataclass(frozen=True)
class CrvValidation:
    """What all gates said together."""

    SAID: ClassVar[Mapping[str, str]] = {
        "blocked_commit": "blockedCommit",
        "validation_results": "validationResults",
    }

    passed: bool = False
    blocked_commit: bool = False
    validation_results: list[Validation] = decode.many(Validation)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ResourceUsage:
    #: Milliseconds of processor time.
    cpu: int = 0
    #: Bytes.
    memory: int = 0
    #: Bytes that were written beside the workspace.
    disk: int = 0
    #: Bytes in both directions.
    network: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class TaskMetadata:
    SAID: ClassVar[Mapping[str, str]] = {
        "sandbox_id": "sandboxId",
        "execution_time": "executionTime",
        "simulation_mode": "simulationMode",
        "side_effects": "sideEffects",
        "side_effect_count": "sideEffectCount",
        "crv_validation": "crvValidation",
        "hip_cortex_entry_id": "hipCortexEntryId",
        "resource_usage": "resourceUsage",
        "permission_violations": "permissionViolations",
        "resource_limit_exceeded": "resourceLimitExceeded",
    }

    #: `none` for what ran without a sandbox.
    sandbox_id: str = ""
    #: Milliseconds.
    execution_time: int = 0
    simulation_mode: bool = False
    #: The first of them; `execs.effects` has all.
    side_effects: list[Effect] = decode.many(Effect)
    side_effect_count: int = 0
    crv_validation: Optional[CrvValidation] = decode.maybe(CrvValidation)
    #: The entry of the ledger, `SEQ:HASH`.
    hip_cortex_entry_id: Optional[str] = None
    resource_usage: ResourceUsage = decode.one(ResourceUsage)
    permission_violations: list[str] = decode.values(list)
    resource_limit_exceeded: bool = False
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class TaskResult:
    """A view of the exec record."""

    #: The program succeeded, nothing that policy forbids was tried, and no gate blocks.
    success: bool = False
    #: What it printed: JSON where it is JSON, else text.
    data: Any = None
    error: Optional[str] = None
    metadata: TaskMetadata = decode.one(TaskMetadata)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class AuditEntry:
    """One entry. It never holds arguments, output or values of the environment."""

    space_id: str = ""
    seq: int = 0
    at: Optional[datetime] = decode.moment()
    kind: str = ""
    exec_id: Optional[str] = None
    ids: Mapping[str, str] = decode.values(dict)
    tags: list[str] = decode.values(list)
    body: Mapping[str, Any] = decode.values(dict)
    prev_hash: str = ""
    hash: str = ""
    #: How old it is now: `hot`, `warm`, `cold` or `archived`. Not a part of the entry.
    retention_tier: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class TaskStep:
    """What the ledger says of one exec, or an entry about none."""

    exec_id: Optional[str] = None
    #: What was about to happen; None when it was refused at once.
    planned: Optional[AuditEntry] = decode.maybe(AuditEntry)
    #: How it ended; None while it runs.
    outcome: Optional[AuditEntry] = decode.maybe(AuditEntry)
    #: Everything else in order: its start after a wait, what people were asked, what became of its
    #: changes.
    others: list[AuditEntry] = decode.many(AuditEntry)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class TaskTimeline:
    """The steps of a task, the oldest first."""

    task_id: str = ""
    steps: list[TaskStep] = decode.many(TaskStep)
    #: The `cursor` of the next page; None on the last one.
    next: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ToolAnswer:
    """Whether a tool exists, and what says so."""

    tool: str = ""
    allowed: bool = False
    #: `default`, `global` or `agent`.
    source: str = ""
    #: The key of the configuration that decides.
    key: str = ""
    #: The entry that decides, if one does.
    entry: Optional[str] = None
    rule: Optional[Mapping[str, Any]] = None
    #: What would change it.
    fix: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ToolsAnswer:
    #: In the order of the request.
    answers: list[ToolAnswer] = decode.many(ToolAnswer)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Undone:
    #: The exec whose changes are gone.
    exec_id: str = ""
    snapshot_id: str = ""
    #: What stood there before; to restore it takes this back. None when it was not kept.
    before: Optional[str] = None
    restored: RestoreCounts = decode.one(RestoreCounts)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Unpacked:
    entries: int = 0
    files: int = 0
    #: Of the files' contents.
    bytes: int = 0
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Problem:
    """Something that is not as it was written."""

    #: The space whose entries or rows it is about.
    space_id: Optional[str] = None
    #: The entry it is about; None when it is about the whole.
    seq: Optional[int] = None
    what: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SpaceLedger:
    """A space that was looked at, and where its ledger ends."""

    space_id: str = ""
    #: How many entries were seen.
    entries: int = 0
    #: The last of them.
    head: Optional[Receipt] = decode.maybe(Receipt)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Verification:
    """Whether the ledger is as it was written."""

    sound: bool = False
    #: Whether all spaces were looked at, and not one alone.
    all_spaces: bool = False
    #: How many entries were seen, in all the spaces that were looked at.
    entries: int = 0
    #: The last of them; where all spaces were looked at, of the space `local`.
    head: Optional[Receipt] = decode.maybe(Receipt)
    #: What was looked at.
    spaces: list[SpaceLedger] = decode.many(SpaceLedger)
    problems: list[Problem] = decode.many(Problem)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class HurtSnapshot:
    snapshot_id: str = ""
    #: None: all of it.
    path: Optional[Text] = decode.maybe_text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class StoreDamage:
    #: `record`, `pack`, `chunk` or `manifest`.
    what: str = ""
    name: str = ""
    why: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class VerifiedSpace:
    space_id: str = ""
    snapshots: int = 0
    packs: int = 0
    chunks: int = 0
    #: Bytes that were held against their hashes.
    bytes: int = 0
    #: The first thousand.
    damage: list[StoreDamage] = decode.many(StoreDamage)
    #: Snapshots that cannot be restored whole because of it.
    hurts: list[HurtSnapshot] = decode.many(HurtSnapshot)
    #: Why it could not be looked at.
    error: Optional[ExecError] = decode.maybe(ExecError)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class SnapshotVerification:
    """Whether what is stored is what was stored."""

    #: Nothing is damaged anywhere.
    sound: bool = False
    spaces: list[VerifiedSpace] = decode.many(VerifiedSpace)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ChangeText:
    path: Text = decode.text()
    #: A unified diff.
    unified: str = ""
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class ChangeSide:
    """What stands somewhere, before or after an exec."""

    #: `file`, `directory`, `symlink` or `other`.
    type: str = ""
    size: int = 0
    #: Permissions, octal.
    mode: str = ""
    #: BLAKE3 of a file's bytes, unless there are too many.
    digest: Optional[str] = None
    #: The text of a link.
    target: Optional[Text] = decode.maybe_text()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Change:
    path: Text = decode.text()
    #: `created`, `modified`, `replaced` by something of another kind, `removed`, or `touched`: the
    #: same contents with another mode, other attributes or another time.
    what: str = ""
    #: As it stands in the workspace now.
    before: Optional[ChangeSide] = decode.maybe(ChangeSide)
    #: As the exec left it.
    after: Optional[ChangeSide] = decode.maybe(ChangeSide)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Changes:
    """What an exec would change in the workspace as it is now."""

    exec_id: str = ""
    count: ChangeCount = decode.one(ChangeCount)
    #: A directory before what lies in it.
    changes: list[Change] = decode.many(Change)
    #: Files that were opened for writing and are as they were.
    unchanged: int = 0
    #: FIFOs, sockets and devices, which are never carried over.
    skipped: list[Text] = decode.texts()
    #: Of the files that are text; not more than a megabyte.
    texts: list[ChangeText] = decode.many(ChangeText)
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class WebhookDelivery:
    """One message to one webhook."""

    #: The `webhook-id` of every attempt: whoever has seen it once may forget the others.
    message_id: str = ""
    #: The webhook's name in the configuration.
    webhook: str = ""
    #: `approval.requested`, `approval.settled`, `exec.ended` or `webhook.test`.
    event: str = ""
    #: None for what is about the server itself.
    space_id: Optional[str] = None
    exec_id: Optional[str] = None
    approval_id: Optional[str] = None
    created_at: Optional[datetime] = decode.moment()
    #: `pending`, `delivered` or `failed`.
    state: str = ""
    #: How often it was sent so far.
    attempts: int = 0
    #: When it is sent again.
    next_at: Optional[datetime] = decode.moment()
    #: What the receiver last answered.
    status_code: Optional[int] = None
    #: Why the last attempt failed.
    problem: Optional[str] = None
    #: When it was delivered or given up.
    ended_at: Optional[datetime] = decode.moment()
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Webhook:
    """An address that is told of approvals or of the ends of execs."""

    name: str = ""
    #: Where it is, without path and query: those are often what makes it secret.
    origin: str = ""
    #: `approval.requested`, `approval.settled`, `exec.ended` or `webhook.test`.
    events: list[str] = decode.values(list)
    #: It is told of this space alone; of all when None.
    space_id: Optional[str] = None
    extra: Mapping[str, Any] = decode.values(dict)


@dataclass(frozen=True)
class Workspace:
    project_id: str = ""
    #: On disk. Only `workspaces.get()` measures it, and fills in what follows.
    bytes: Optional[int] = None
    files: Optional[int] = None
    #: False when it was too large to be measured in time.
    complete: Optional[bool] = None
    #: What it may hold.
    max_bytes: Optional[int] = None
    max_files: Optional[int] = None
    #: Execs whose changes wait to be kept or discarded.
    waiting: list[str] = decode.values(list)
    snapshots: Optional[int] = None
    extra: Mapping[str, Any] = decode.values(dict)


class RateLimit(TypedDict):
    requests: int
    per_ms: int


class Fault(TypedDict, total=False):
    """How the world fails in a simulation. One of `host` and `tool` must be there."""

    #: As in a response. One of `host` and `tool` must be there.
    host: str
    #: The name of a tool that asks by itself, a glob.
    tool: str
    #: Of a hundred tries so many succeed.
    success_percent: int
    #: `random`, `alternating` or `burst`.
    pattern: str
    #: `error`, `timeout` or `crash`.
    failure: str
    latency_ms: int
    #: Up to so much more, at random.
    jitter_ms: int
    rate_limit: RateLimit


class PresetResponse(TypedDict, total=False):
    """An answer to a simulated program's requests, over TLS or not. `host` must be there."""

    #: A name; `*.x` is every name below `x`, `*` every name.
    host: str
    port: int
    method: str
    #: A glob over the path without its query: `*` stays within a segment, `**` does not.
    path: str
    #: 200 without it.
    status: int
    headers: Mapping[str, str]
    #: At most one of `body`, `body_base64` and `json`.
    body: str
    body_base64: str
    #: Sent as JSON.
    json: Any


class Simulation(TypedDict, total=False):
    """What a simulated program is told instead of the truth; all of it is optional."""

    #: The first that fits answers.
    responses: Sequence[PresetResponse]
    #: How the world fails. The first that fits holds.
    faults: Sequence[Fault]
    #: What tools that know of the simulation are given, by name; of a mock, `output` is the answer.
    data: Mapping[str, Any]
    #: Whether reads are effects too.
    reads: bool
    #: Makes what is random the same each time.
    seed: int


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
