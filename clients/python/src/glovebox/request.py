"""What an exec is asked for."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, TypedDict, Union, cast

from glovebox.decode import Text
from glovebox.records import Simulation


class Options(TypedDict, total=False):
    """How something is to run; all of it is optional. Whatever is asked for, the exec never gets
    more than policy allows."""

    #: The workspace that it works on. Without one, an empty one that is gone afterwards.
    project_id: str
    #: Your own name for the exec, unique in the space. One is made up if you have none.
    client_id: str
    #: Relative to `/workspace/work`, or absolute below `/workspace`.
    cwd: str
    env: Mapping[str, str]
    stdin: Union[str, bytes]
    #: Files below `/workspace/inputs`, by their path there.
    inputs: Mapping[str, Union[str, bytes]]
    #: Seconds, or text such as `30s`.
    timeout: Union[float, str]
    #: Bytes, or text such as `512M`.
    memory: Union[int, str]
    disk: Union[int, str]
    cpus: float
    pids: int
    #: `native` or `docker`.
    backend: str
    #: A container runtime, such as `runsc`.
    runtime: str
    image: str
    #: Guarantees that must be the kernel's, such as `own_kernel`.
    require: Sequence[str]
    #: Other fields of `policy_overrides`, as the server names them.
    policy: Mapping[str, Any]
    #: The sandbox that it runs in, by its id or its name. Without one, a fresh one.
    sandbox: str
    #: Or the one of its `session` or `agent`, or the `shared` one; made if it is not there.
    lifetime: str
    #: `refuse`, `cap` to get what is allowed instead, or `ask` to have people asked for more.
    on_exceed: str
    #: Why it needs more than policy gives, for whoever is asked.
    justification: str
    #: Directories of the host that the operator grants, by where they stand inside.
    mounts: Sequence[str]
    #: Secrets that it needs: names, or dicts of `name`, `delivery` and `variable`.
    secrets: Sequence[Union[str, Mapping[str, str]]]
    #: `direct`; `held` to have its changes wait for `execs.keep` or `execs.discard`; `if_ok` to
    #: have them kept if it succeeds and discarded if not; `dropped` to have them gone with it.
    writes: str
    #: `run`; `simulate` to see what it would do, with nothing of it happening; `transactional` to
    #: have its changes kept if it succeeds and the gates agree; `mock` to ask policy and run
    #: nothing.
    mode: str
    #: What a simulated program is told instead of the truth, and the answer of a mocked one.
    simulate: Simulation
    #: The exec whose changes wait and are there for this one, as if they had been kept.
    over: str
    #: The same wishes in the words of workflow engines, such as `{"type": "simulation"}`; in the
    #: place of `mode`.
    sandbox_config: Mapping[str, Any]
    user_id: str
    conversation_id: str
    turn_id: str
    task_id: str
    workflow_id: str
    agent_id: str
    session_id: str


class SessionOptions(TypedDict, total=False):
    """How a session is to run; all of it is optional, and means what it means for an exec."""

    #: A terminal, or three pipes. Without it: a terminal for a shell without arguments, pipes for
    #: everything else.
    terminal: bool
    #: Columns and rows of the terminal; 80 and 24 without it.
    size: tuple[int, int]
    #: Seconds, or text such as `10m`: how long it may last at all.
    session_time: Union[float, str]
    #: It is ended when nothing was written or read for so long.
    idle_timeout: Union[float, str]
    #: `start` returns when the program waits for input or has ended, and after so many milliseconds
    #: at the latest; 1000 without it. It ends nothing.
    yield_ms: int
    project_id: str
    client_id: str
    cwd: str
    env: Mapping[str, str]
    inputs: Mapping[str, Union[str, bytes]]
    memory: Union[int, str]
    disk: Union[int, str]
    cpus: float
    pids: int
    backend: str
    runtime: str
    image: str
    require: Sequence[str]
    policy: Mapping[str, Any]
    sandbox: str
    lifetime: str
    on_exceed: str
    justification: str
    mounts: Sequence[str]
    secrets: Sequence[Union[str, Mapping[str, str]]]
    writes: str
    mode: str
    simulate: Simulation
    over: str
    sandbox_config: Mapping[str, Any]
    user_id: str
    conversation_id: str
    turn_id: str
    task_id: str
    workflow_id: str
    agent_id: str
    session_id: str


class SkillOptions(TypedDict, total=False):
    """How a skill is to be called; all of it is optional, and means what it means for an exec."""

    project_id: str
    client_id: str
    timeout: Union[float, str]
    memory: Union[int, str]
    disk: Union[int, str]
    cpus: float
    pids: int
    backend: str
    runtime: str
    image: str
    require: Sequence[str]
    policy: Mapping[str, Any]
    sandbox: str
    lifetime: str
    on_exceed: str
    justification: str
    secrets: Sequence[Union[str, Mapping[str, str]]]
    writes: str
    mode: str
    simulate: Simulation
    over: str
    user_id: str
    conversation_id: str
    turn_id: str
    task_id: str
    workflow_id: str
    agent_id: str
    session_id: str


class SandboxOptions(TypedDict, total=False):
    """What a sandbox is to be; all of it is optional. Whatever is asked for, it never gets more
    than policy allows."""

    #: Whose it is when it lives as long as an agent, or a session.
    agent_id: str
    session_id: str
    #: The workspace that it works on. Without one, one that is named after whose it is.
    project_id: str
    #: Seconds, or text such as `30s`: of each exec.
    timeout: Union[float, str]
    #: Bytes, or text such as `512M`.
    memory: Union[int, str]
    disk: Union[int, str]
    cpus: float
    pids: int
    backend: str
    runtime: str
    image: str
    require: Sequence[str]
    #: Other fields of `policy_overrides`, as the server names them.
    policy: Mapping[str, Any]
    #: `refuse`, or `cap` to get what is allowed instead.
    on_exceed: str


class SearchOptions(TypedDict, total=False):
    """Where and how files are searched; all of it is optional."""

    #: Where to begin; the whole workspace without it.
    path: Text
    #: The pattern is a regular expression, and not a text.
    regex: bool
    ignore_case: bool
    #: Lines before and after each match.
    context: int
    #: Only files that one of these matches, such as `**/*.py`. Relative to `path`.
    include: Sequence[str]
    #: Neither files nor directories that one of these matches.
    exclude: Sequence[str]
    #: Names that begin with a dot too.
    hidden: bool
    #: Matches at most.
    limit: int


class AuditFilters(TypedDict, total=False):
    """Which entries of the ledger; all of it is optional."""

    exec_id: str
    #: `planned`, `started`, `outcome`, `refused`, `recovered` or `administered`.
    kind: str
    tag: str
    #: Further ones: an entry has all of them.
    tags: Sequence[str]
    #: An entry has none of them.
    without: Sequence[str]
    #: About execs of this mode.
    mode: str
    #: So old: `hot`, of the last 24 hours; `warm`, 7 days; `cold`, 30 days; or `archived`.
    tier: str
    #: From this time on, and before that one: RFC 3339.
    since: str
    until: str
    user_id: str
    conversation_id: str
    turn_id: str
    task_id: str
    workflow_id: str
    agent_id: str
    session_id: str


_TOP = (
    "project_id",
    "client_id",
    "on_exceed",
    "justification",
    "mounts",
    "writes",
    "mode",
    "simulate",
    "over",
    "sandbox_config",
)
_EXEC = ("cwd", "env", "stdin")
_POLICY = (
    "timeout",
    "memory",
    "disk",
    "cpus",
    "pids",
    "backend",
    "runtime",
    "image",
    "require",
)
_IDS = tuple(name for name in Options.__annotations__ if name.endswith("_id") and name not in _TOP)


def argv(words: tuple[str, ...]) -> dict[str, Any]:
    if not words:
        raise TypeError('there is no command: write `run("echo", "hello")`')
    for place, word in enumerate(words):
        if isinstance(word, (list, tuple)):
            raise TypeError("the words of a command are given one by one: `run(*words)`")
        _text("the command" if place == 0 else f"argument {place} of the command", word)
    command, *args = words
    return {"kind": "argv", "command": command, "args": args}


def shell(script: str) -> dict[str, Any]:
    return {"kind": "shell", "command": "bash", "args": ["-lc", _text("the script", script)]}


def python(code: str) -> dict[str, Any]:
    return {"kind": "python", "command": "python", "args": ["-c", _text("the code", code)]}


def body(program: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The body of the request. It always has a `client_id`: who is cut off before the answer came
    still knows how to ask about the exec, and to cancel it."""
    given = _given(options, Options)
    _whole(given, ("simulate", "sandbox_config"))
    policy = _policy(given)
    ids = _some(given, _IDS)
    inputs = given.get("inputs", {})
    if not isinstance(inputs, Mapping):
        raise TypeError(
            "`inputs` is a dict of paths and contents, such as `{\"a.csv\": b\"1,2\"}`, "
            f"not `{type(inputs).__name__}`"
        )
    request: dict[str, Any] = {
        "client_id": f"py-{uuid.uuid4().hex}",
        **_some(given, _TOP),
        "exec": {**program, **_some(given, _EXEC)},
    }
    stdin = given.get("stdin")
    if isinstance(stdin, bytes):
        del request["exec"]["stdin"]
        request["exec"]["stdin_base64"] = base64.b64encode(stdin).decode("ascii")
    if policy:
        request["policy_overrides"] = policy
    where = _where(given)
    if where:
        request["sandbox"] = where
    if ids:
        request["task_ref"] = ids
    secrets = given.get("secrets", ())
    if isinstance(secrets, (str, Mapping)):
        raise TypeError('`secrets` is a list, such as `["github"]`')
    if secrets:
        request["secrets"] = [
            {"name": it} if isinstance(it, str) else dict(it) for it in secrets
        ]
    if inputs:
        request["inputs"] = [_input(path, content) for path, content in inputs.items()]
    return request


def session(program: Mapping[str, Any], options: SessionOptions) -> dict[str, Any]:
    """The body of the start of a session: that of an exec, and how it is talked to."""
    if "timeout" in options:
        raise TypeError("a session has a `session_time` and an `idle_timeout`, and no `timeout`")
    given = _given(options, SessionOptions)
    how = _some(given, ("terminal", "idle_timeout", "yield_ms"))
    if "size" in given:
        how["size"] = terminal_size(*given["size"])
    if "session_time" in given:
        given["policy"] = {**given.get("policy", {}), "session_time": given["session_time"]}
    rest = {key: value for key, value in given.items() if key in Options.__annotations__}
    return {**body(program, cast(Options, rest)), "session": how}


def terminal_size(columns: int, rows: int) -> dict[str, int]:
    return {"columns": columns, "rows": rows}


def skill(inputs: Mapping[str, Any], options: SkillOptions) -> dict[str, Any]:
    """The body of a call of a skill: that of an exec, with inputs in the place of a program."""
    _given(options, SkillOptions)
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs are a dict of names and values, not `{type(inputs).__name__}`")
    request = body({}, cast(Options, options))
    del request["exec"]
    request["inputs"] = dict(inputs)
    return request


def sandbox(lifetime: str, options: SandboxOptions) -> dict[str, Any]:
    """What a sandbox is asked to be."""
    given = _given(options, SandboxOptions)
    policy = _policy(given)
    names = ("agent_id", "session_id", "project_id", "on_exceed")
    request: dict[str, Any] = {"lifetime": _text("the lifetime", lifetime), **_some(given, names)}
    if policy:
        request["policy_overrides"] = policy
    return request


def selection(
    everything: bool, mismatched: bool, agent_id: str | None, session_id: str | None
) -> dict[str, Any]:
    """Which sandboxes are meant."""
    given: dict[str, Any] = {
        "all": everything or None,
        "mismatched": mismatched or None,
        "agent": agent_id,
        "session": session_id,
    }
    said = {key: value for key, value in given.items() if value is not None}
    if len(said) != 1:
        raise TypeError(
            "say which: one of `everything=True`, `mismatched=True`, `agent_id=…`, `session_id=…`"
        )
    return said


@dataclass(frozen=True)
class Part:
    """Of the bytes of a file."""

    header: str
    slice: slice


def part(offset: Optional[int], limit: Optional[int]) -> Optional[Part]:
    if limit is not None and limit < 1:
        raise ValueError(f"`limit` is a number of bytes from 1 on, not {limit}")
    if offset is not None and offset < 0:
        if limit is not None:
            raise ValueError("an `offset` from the end takes no `limit`")
        return Part(f"bytes={offset}", slice(offset, None))
    if offset is None and limit is None:
        return None
    first = offset or 0
    if limit is None:
        return Part(f"bytes={first}-", slice(first, None))
    return Part(f"bytes={first}-{first + limit - 1}", slice(first, first + limit))


def expected(etag: Optional[str], new: bool) -> dict[str, str]:
    """What must stand where something is written."""
    if etag is not None and new:
        raise TypeError("`etag` names what stands there, `new` says nothing does: give one")
    if new:
        return {"If-None-Match": "*"}
    return {} if etag is None else {"If-Match": f'"{etag}"'}


def mode(value: Union[int, str, None]) -> Optional[str]:
    """Permissions: `0o755`, or the same as text."""
    return f"{value:03o}" if isinstance(value, int) else value


def path(value: Text) -> Any:
    """A path in a body: what is no text is told by its bytes."""
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def query_path(value: Text) -> Optional[str]:
    """A path in a query, where there is only text; None for the workspace itself."""
    named = path(value)
    if isinstance(named, str):
        return named or None
    raise ValueError(f"`{value!r}` is no text: rename the directory, or name one above it")


def search(pattern: str, options: SearchOptions) -> dict[str, Any]:
    given = _given(options, SearchOptions)
    for name in ("include", "exclude"):
        if isinstance(given.get(name), str):
            raise TypeError(f'`{name}` is a list of patterns, such as `["**/*.py"]`')
        if name in given:
            given[name] = list(given[name])
    under = _under(given.pop("path", ""))
    return {"pattern": _text("the pattern", pattern), **given, **under}


def audit(filters: AuditFilters) -> dict[str, Any]:
    """Which entries are meant, as a query says it: several tags stand in one value."""
    given = _given(filters, AuditFilters)
    for name in ("tags", "without"):
        if name in given:
            given[name] = _tags(name, given[name])
    return given


def _tags(name: str, tags: Sequence[str]) -> str:
    if isinstance(tags, str):
        raise TypeError(f'`{name}` is a list of tags, such as `["failure"]`')
    for tag in tags:
        if "," in _text(f"a tag of `{name}`", tag):
            raise ValueError(f"`{tag}` cannot be one of several: a tag there has no comma")
    return ",".join(tags)


def glob(pattern: str, under: Text, hidden: bool, limit: Optional[int]) -> dict[str, Any]:
    most = {} if limit is None else {"limit": limit}
    return {"pattern": _text("the pattern", pattern), "hidden": hidden, **_under(under), **most}


def _under(value: Text) -> dict[str, Any]:
    return {"path": path(value)} if value else {}


def _given(options: Any, kind: Any) -> dict[str, Any]:
    unknown = set(options) - set(kind.__annotations__)
    if unknown:
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
    return {key: value for key, value in options.items() if value is not None}


def _whole(given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if not isinstance(given.get(name, {}), Mapping):
            raise TypeError(f"`{name}` is a dict, not `{type(given[name]).__name__}`")


def _policy(given: Mapping[str, Any]) -> dict[str, Any]:
    policy = {**given.get("policy", {}), **_some(given, _POLICY)}
    if "require" in policy:
        if isinstance(policy["require"], str):
            raise TypeError("`require` is a list of guarantees, such as `[\"own_kernel\"]`")
        policy["require"] = list(policy["require"])
    return policy


def _where(given: Mapping[str, Any]) -> dict[str, str]:
    """An id has a `_`, and no name has one."""
    name, lifetime = given.get("sandbox"), given.get("lifetime")
    if name is not None and lifetime is not None:
        raise TypeError("`sandbox` names one, `lifetime` asks for one: give one of the two")
    if name is not None:
        name = _text("the sandbox", name)
        return {"id" if "_" in name else "name": name}
    return {} if lifetime is None else {"lifetime": lifetime}


def _some(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _text(what: str, value: object) -> str:
    """Refused here, where the caller's line is in the traceback."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is text, not `{type(value).__name__}`: write `str(…)`")
    return value


def _input(path: str, content: Union[str, bytes]) -> dict[str, str]:
    _text("the path of an input", path)
    if isinstance(content, str):
        return {"path": path, "content": content}
    if not isinstance(content, (bytes, bytearray, memoryview)):
        kind = type(content).__name__
        raise TypeError(f"the content of the input `{path}` is text or bytes, not `{kind}`")
    return {"path": path, "content_base64": base64.b64encode(content).decode("ascii")}
