"""What an exec is asked for."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from typing import Any, TypedDict, Union


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
    #: Other fields of `policy_overrides`, as the server names them.
    policy: Mapping[str, Any]
    #: `refuse`, or `cap` to get what is allowed instead.
    on_exceed: str
    mode: str
    user_id: str
    conversation_id: str
    turn_id: str
    task_id: str
    workflow_id: str
    agent_id: str
    session_id: str


class AuditFilters(TypedDict, total=False):
    """Which entries of the ledger; all of it is optional."""

    exec_id: str
    #: `planned`, `started`, `outcome`, `refused`, `recovered` or `administered`.
    kind: str
    tag: str
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


_TOP = ("project_id", "client_id", "on_exceed", "mode")
_EXEC = ("cwd", "env", "stdin")
_POLICY = ("timeout", "memory", "disk", "cpus", "pids")
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
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
    given: Mapping[str, Any] = {key: value for key, value in options.items() if value is not None}
    policy = {**given.get("policy", {}), **_some(given, _POLICY)}
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
    if ids:
        request["task_ref"] = ids
    if inputs:
        request["inputs"] = [_input(path, content) for path, content in inputs.items()]
    return request


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
