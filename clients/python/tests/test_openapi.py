"""In step with `openapi.json`: every operation is reached by a method, with every parameter that it
has, and every field of an answer is in a record."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any, Callable, Optional, Union

import httpx
import pytest

import generate
import glovebox
from conftest import Server, session
from glovebox.decode import said
from glovebox.errors import BY_CODE
from glovebox.request import (
    AuditFilters,
    Options,
    SandboxOptions,
    SearchOptions,
    SessionOptions,
    SkillOptions,
)

# What a program does not call: pages for people, and the second names of operations that it calls
# by their first ones.
PAGES = {"GET /", "GET /docs"}
SECOND_NAMES = {
    "/sandbox/execs": "/v1/execs",
    " /skills": " /v1/skills",
    "/approvals/{}/approve": "/approvals/{}/reply",
    "/approvals/{}/deny": "/approvals/{}/reply",
}

IDS = {
    "user_id": "u",
    "conversation_id": "c",
    "turn_id": "n",
    "task_id": "t",
    "workflow_id": "w",
    "agent_id": "a",
    "session_id": "s",
}
OPTIONS: Options = {
    "project_id": "p",
    "client_id": "mine",
    "cwd": ".",
    "env": {"A": "b"},
    "stdin": "in",
    "inputs": {"a": "b"},
    "timeout": 1,
    "memory": "64M",
    "disk": "64M",
    "cpus": 1,
    "pids": 9,
    "backend": "docker",
    "runtime": "runsc",
    "image": "i",
    "require": ["own_kernel"],
    "policy": {"network": "none"},
    "sandbox": "n",
    "on_exceed": "cap",
    "justification": "j",
    "mounts": ["/data"],
    "secrets": ["github"],
    "writes": "held",
    "mode": "simulate",
    "simulate": {"responses": [{"host": "a.b"}], "data": {"k": 1}, "reads": True, "seed": 1},
    "over": "e",
    "sandbox_config": {"type": "simulation"},
    **IDS,  # type: ignore[typeddict-item]
}
# What a program is given is the skill's own to say.
SKILL: SkillOptions = {  # type: ignore[assignment]
    key: value
    for key, value in OPTIONS.items()
    if key not in ("cwd", "env", "stdin", "inputs", "mounts", "sandbox_config")
}
SESSION: SessionOptions = {
    **{  # type: ignore[typeddict-item]
        key: value for key, value in OPTIONS.items() if key not in ("timeout", "stdin")
    },
    "terminal": True,
    "size": (100, 30),
    "session_time": "1h",
    "idle_timeout": 60,
    "yield_ms": 1,
}
# In place of `sandbox`.
OTHERWISE = {"lifetime"}
SANDBOX: SandboxOptions = {
    "agent_id": "a",
    "session_id": "s",
    "project_id": "p",
    "timeout": 1,
    "memory": "64M",
    "disk": "64M",
    "cpus": 1,
    "pids": 9,
    "backend": "docker",
    "runtime": "runsc",
    "image": "i",
    "require": ["own_kernel"],
    "policy": {"network": "none"},
    "on_exceed": "cap",
}
SEARCH: SearchOptions = {
    "path": "d",
    "regex": True,
    "ignore_case": True,
    "context": 1,
    "include": ["a"],
    "exclude": ["b"],
    "hidden": True,
    "limit": 1,
}
# The server of these tests has nothing to download.
NOWHERE = os.path.join(tempfile.gettempdir(), "glovebox-nowhere")
WHICH: dict[str, Any] = {
    "exec_id": "e",
    "kind": "k",
    "tag": "g",
    "tags": ["h", "i"],
    "without": ["j"],
    "mode": "simulate",
    "tier": "hot",
    "since": "x",
    "until": "y",
}

# Each with every parameter that it has; several where not all of them can be meant at once.
Ask = Callable[[Any], Any]
METHODS: Mapping[str, Union[Ask, list[Ask]]] = {
    "POST /v1/execs": lambda it: it.run("true", **OPTIONS),
    "GET /v1/execs": lambda it: next(
        it.execs.list(
            task_id="t",
            status="failed",
            conversation_id="c",
            project_id="p",
            id_prefix="e_1",
            page_size=1,
        )
    ),
    "GET /v1/execs/{}": lambda it: it.execs.get("e"),
    "GET /v1/execs/{}/stdout": lambda it: it.execs.stdout("e", offset=1, limit=2),
    "GET /v1/execs/{}/stderr": lambda it: it.execs.stderr("e", offset=1, limit=2),
    "GET /v1/execs/{}/artifacts": lambda it: it.execs.artifacts("e"),
    "GET /v1/execs/{}/artifacts/{}": lambda it: it.execs.artifact("e", "a"),
    "GET /v1/execs/{}/events": lambda it: next(it.execs.events("e", after=3)),
    "GET /v1/execs/{}/network": lambda it: it.execs.network("e", after=3, wait=0.5),
    "GET /v1/execs/{}/effects": lambda it: it.execs.effects("e", after=3),
    "GET /v1/execs/{}/result": lambda it: it.execs.result("e"),
    "POST /v1/execs/{}/apply": lambda it: it.execs.apply("e"),
    "POST /v1/execs/{}/rerun": lambda it: it.execs.rerun("e", wait=False),
    "GET /v1/execs/{}/changes": lambda it: it.execs.changes("e"),
    "POST /v1/execs/{}/keep": lambda it: it.execs.keep("e"),
    "POST /v1/execs/{}/discard": lambda it: it.execs.discard("e"),
    "POST /v1/execs/{}/cancel": lambda it: it.execs.cancel("e"),
    "GET /sandbox/execs/{}/observation": lambda it: it.execs.observation("e"),
    "POST /v1/policy/explain": lambda it: it.explain("true", **OPTIONS),
    "POST /v1/tools/check": lambda it: it.check_tools(["run_code"], agent_id="a"),
    "POST /v1/policy/replay": lambda it: it.replay_policy("", limit=1),
    "GET /v1/approvals": lambda it: next(
        it.approvals.list(state="pending", exec_id="e", conversation_id="c", page_size=1)
    ),
    "GET /v1/approvals/{}": lambda it: it.approvals.get("a"),
    "POST /v1/approvals/{}/reply": lambda it: it.approvals.reply(
        "a", "edit", reason="r", policy_overrides={}, exec={}, expires_at="2030-01-01T00:00:00Z"
    ),
    "GET /v1/grants": lambda it: next(
        it.grants.list(conversation_id="c", revoked=True, page_size=1)
    ),
    "DELETE /v1/grants/{}": lambda it: it.grants.revoke("g"),
    "GET /v1/secrets": lambda it: next(it.secrets.list(page_size=1)),
    "PUT /v1/secrets/{}": lambda it: it.secrets.set(
        "s", "v", hosts=["h:443"], deliveries=["file"]
    ),
    "DELETE /v1/secrets/{}": lambda it: it.secrets.remove("s"),
    "GET /v1/secret-grants": lambda it: next(
        it.secrets.grants(
            secret="s", conversation_id="c", agent_id="a", include_ended=True, page_size=1
        )
    ),
    "POST /v1/secret-grants": lambda it: it.secrets.grant(
        "s", conversation_id="c", agent_id="a", deliveries=["file"], expires_at="x"
    ),
    "DELETE /v1/secret-grants/{}": lambda it: it.secrets.revoke("g"),
    "POST /v1/retrieve": lambda it: it.retrieve(
        "https://a.b/", method="GET", max_bytes=1, max_text_bytes=2, timeout=3, task_ref=IDS
    ),
    "GET /v1/webhooks": lambda it: it.webhooks.list(),
    "GET /v1/webhooks/deliveries": lambda it: next(
        it.webhooks.deliveries(webhook="w", state="failed", page_size=1)
    ),
    "POST /v1/webhooks/{}/test": lambda it: it.webhooks.test("w"),
    "GET /v1/workspaces": lambda it: next(it.workspaces.list(page_size=1)),
    "GET /v1/workspaces/{}": lambda it: it.workspaces.get("p"),
    "DELETE /v1/workspaces/{}": lambda it: it.workspaces.delete("p"),
    "POST /v1/workspaces/{}/seed": lambda it: it.workspaces.seed("p"),
    "POST /v1/workspaces/{}/reset": lambda it: it.workspaces.reset("p", inputs=True),
    "GET /v1/workspaces/{}/files": [
        lambda it: it.workspaces.files("p", depth=2, limit=3, after="aa"),
        lambda it: it.workspaces.stat("p"),
    ],
    "GET /v1/workspaces/{}/files/{}": [
        lambda it: it.workspaces.files("p", "f", depth=2, limit=3, after="aa"),
        lambda it: it.workspaces.stat("p", "f"),
        lambda it: it.workspaces.read("p", "f", offset=1),
        lambda it: it.workspaces.fetch("p", "f", known="aa"),
    ],
    "PUT /v1/workspaces/{}/files/{}": [
        lambda it: it.workspaces.write("p", "f", b"x", new=True, mode=0o600),
        lambda it: it.workspaces.write("p", "f", b"x", etag="aa"),
    ],
    "DELETE /v1/workspaces/{}/files/{}": lambda it: it.workspaces.remove("p", "f"),
    "POST /v1/workspaces/{}/mkdir": lambda it: it.workspaces.mkdir("p", "d"),
    "POST /v1/workspaces/{}/move": lambda it: it.workspaces.move("p", "a", "b"),
    "POST /v1/workspaces/{}/copy": lambda it: it.workspaces.copy("p", "a", "b"),
    "POST /v1/workspaces/{}/replace": lambda it: it.workspaces.replace(
        "p", "f", "a", "b", etag="aa"
    ),
    "POST /v1/workspaces/{}/search": lambda it: it.workspaces.search("p", "x", **SEARCH),
    "POST /v1/workspaces/{}/glob": lambda it: it.workspaces.glob("p", "*", path="d", limit=1),
    "GET /v1/workspaces/{}/archive": lambda it: it.workspaces.download(
        "p", NOWHERE, path="d", format="zip"
    ),
    "PUT /v1/workspaces/{}/archive": lambda it: it.workspaces.upload("p", b"x", path="d"),
    "GET /v1/workspaces/{}/watch": lambda it: next(
        it.workspaces.watch("p", after=3, seconds=2)
    ),
    "POST /v1/workspaces/{}/snapshots": lambda it: it.snapshots.take("p", label="l", note="n"),
    "GET /v1/workspaces/{}/snapshots": lambda it: next(it.snapshots.list("p", limit=1)),
    "GET /v1/workspaces/{}/snapshots/{}": lambda it: it.snapshots.get("p", "s"),
    "DELETE /v1/workspaces/{}/snapshots/{}": lambda it: it.snapshots.remove("p", "s"),
    "POST /v1/workspaces/{}/snapshots/{}/restore": lambda it: it.snapshots.restore(
        "p", "s", snapshot_before=False
    ),
    "GET /v1/workspaces/{}/diff": lambda it: it.snapshots.diff("p", "a", "b", limit=1),
    "POST /v1/workspaces/{}/undo": lambda it: it.snapshots.undo(
        "p", exec_id="e", snapshot_before=False
    ),
    "POST /v1/workspaces/{}/rollback": lambda it: it.snapshots.rollback(
        "p", snapshot_id="s", snapshot_before=False
    ),
    "POST /v1/workspaces/{}/fork": lambda it: it.snapshots.fork("p", "q", snapshot_id="s"),
    "POST /v1/snapshots/collect": lambda it: it.snapshots.collect(),
    "GET /v1/snapshots/verify": lambda it: it.snapshots.verify(),
    "POST /v1/sandboxes": lambda it: it.sandboxes.create("agent", **SANDBOX),
    "GET /v1/sandboxes": lambda it: next(
        it.sandboxes.list(lifetime="agent", agent_id="a", session_id="s", state="idle")
    ),
    "GET /v1/sandboxes/{}": lambda it: it.sandboxes.get("n"),
    "DELETE /v1/sandboxes/{}": lambda it: it.sandboxes.remove("n"),
    "POST /v1/sandboxes/{}/recreate": lambda it: it.sandboxes.recreate("n"),
    "POST /v1/sandboxes/recreate": lambda it: it.sandboxes.recreate_many(everything=True),
    "POST /v1/sandboxes/prune": lambda it: it.sandboxes.prune(),
    "POST /v1/sandboxes/explain": lambda it: it.sandboxes.explain("agent", **SANDBOX),
    "POST /v1/sessions": lambda it: it.sessions.start("true", **SESSION),
    "GET /v1/sessions": lambda it: it.sessions.list(),
    "GET /v1/sessions/{}": lambda it: it.sessions.get("s"),
    "DELETE /v1/sessions/{}": lambda it: session(it).remove(),
    "GET /v1/sessions/{}/output": lambda it: session(it).read(wait=0.5, limit=9),
    "GET /v1/sessions/{}/stream": lambda it: next(iter(session(it))),
    "GET /v1/sessions/{}/screen": lambda it: session(it).screen(),
    "GET /v1/sessions/{}/recording": lambda it: session(it).recording(),
    "POST /v1/sessions/{}/input": [
        lambda it: session(it).send("a"),
        lambda it: session(it).send(b"\xff"),
        lambda it: session(it).submit("a"),
        lambda it: session(it).keys("C-c", "Enter"),
        lambda it: session(it).paste("a"),
    ],
    "POST /v1/sessions/{}/close-input": lambda it: session(it).close_input(),
    "POST /v1/sessions/{}/resize": lambda it: session(it).resize(100, 30),
    "POST /v1/sessions/{}/signal": lambda it: session(it).signal("INT"),
    "POST /v1/sessions/{}/kill": lambda it: session(it).kill(),
    "GET /v1/skills": lambda it: it.skills.list(),
    "GET /v1/skills/{}": lambda it: it.skills.get("shell.run"),
    "POST /v1/skills/{}/invoke": lambda it: it.skills.invoke("a.b", {"x": 1}, **SKILL),
    "GET /v1/execs/{}/output": lambda it: it.skills.output("e"),
    "GET /v1/audit": lambda it: next(it.audit.list(page_size=1, **WHICH, **IDS)),
    "GET /v1/audit/timeline/{}": lambda it: next(it.audit.timeline("t", page_size=1)),
    "GET /v1/audit/verify": lambda it: it.audit.verify(space="a"),
    "GET /v1/audit/export": lambda it: it.audit.export(format="ocsf", space="a"),
    "GET /v1/audit/checkpoint": lambda it: it.audit.checkpoint(),
    "GET /v1/settings": lambda it: it.settings.get(),
    "PATCH /v1/settings": lambda it: it.settings.change({"max_queued": 1}, version=3),
    "POST /v1/tokens": lambda it: it.tokens.create(
        "n",
        "agent",
        space_id="s",
        scopes=["execs:read"],
        user_id="u",
        agent_id="a",
        conversation_id="c",
        expires_at="2099-01-01T00:00:00Z",
    ),
    "GET /v1/tokens": lambda it: next(
        it.tokens.list(space_id="s", include_unusable=True, page_size=1)
    ),
    "GET /v1/tokens/{}": lambda it: it.tokens.get("t"),
    "DELETE /v1/tokens/{}": lambda it: it.tokens.revoke("t"),
    "GET /v1/whoami": lambda it: it.whoami(),
    "GET /sandbox/health": lambda it: it.health(probe=True),
    "GET /healthz": lambda it: it.alive(),
    "GET /readyz": lambda it: it.ready(),
    "GET /metrics": lambda it: it.metrics(),
    "GET /v1/pool": lambda it: it.pool(),
    "GET /v1/backends": lambda it: it.backends(),
    "GET /openapi.json": lambda it: it.openapi(),
}

# The next page is the client's own business, one header is for browsers and one for parts that are
# fetched again, and a request has its key in a header.
NOT_SENT = {"cursor", "Last-Event-ID", "If-Range", "skill_id", "request_id"}
# What an operation has with others, and does not take itself.
LEFT_OUT = {
    "POST /v1/execs": {"session"},
    "POST /v1/policy/explain": {"session", "wait"},
    "POST /v1/sessions": {"wait"},
}

DOCUMENT: Optional[dict[str, Any]] = (
    json.loads(generate.API.read_text()) if generate.API.exists() else None
)

WISHES: Mapping[str, Any] = {
    "Simulation": glovebox.Simulation,
    "PresetResponse": glovebox.PresetResponse,
    "Fault": glovebox.Fault,
    "RateLimit": glovebox.RateLimit,
}

RECORDS: Mapping[str, type] = {
    schema: getattr(glovebox, name)
    for schema, name in (generate.records().classes if DOCUMENT else {}).items()
    if name not in WISHES
}


@pytest.fixture(scope="module", autouse=True)
def there() -> None:
    if DOCUMENT is None:
        why = "NOT CHECKED against the API: there is no openapi.json above this directory"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)


def operations() -> dict[str, dict[str, Any]]:
    """By method and path, without the names of the path's parameters."""
    found = {}
    for path, methods in (DOCUMENT or {}).get("paths", {}).items():
        for method, operation in methods.items():
            found[f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"] = operation
    return found


def test_every_operation_has_a_method() -> None:
    def first(name: str) -> str:
        for second, own in SECOND_NAMES.items():
            name = name.replace(second, own)
        return name

    unreached = [
        name
        for name in operations()
        if name not in METHODS and name not in PAGES and first(name) not in METHODS
    ]
    assert unreached == []


def test_every_method_has_an_operation() -> None:
    assert sorted(set(METHODS) - set(operations())) == []


@pytest.mark.parametrize("name", METHODS)
def test_a_method_sends_what_its_operation_takes(
    name: str, connect: Callable[..., Any], server: Server
) -> None:
    client = connect(glovebox.Patience(retries=0))
    asks = METHODS[name]
    for ask in asks if isinstance(asks, list) else [asks]:
        try:
            ask(client)
        except glovebox.GloveboxError:
            pass  # Only what was sent counts here.
    method, _, template = name.partition(" ")
    pattern = re.escape(template).replace(r"\{\}", "[^/]+")
    for request in server.seen:
        assert request.method == method
        assert re.fullmatch(pattern, request.url.raw_path.decode().partition("?")[0])
    operation = operations()[name]
    parameters = operation.get("parameters", [])
    documented = {it["name"] for it in parameters if it["in"] == "query"} - NOT_SENT
    asked = {key for request in server.seen for key in request.url.params}
    assert asked - NOT_SENT == documented
    said = {key for request in server.seen for key in request.headers}
    for it in parameters:
        if it["in"] == "header" and it["name"] not in NOT_SENT:
            assert it["name"].lower() in said
    request = server.seen[0]
    assert ("requestBody" in operation) == bool(request.content)
    body = schema_of(operation)
    if body is not None:
        given = json.loads(request.content)
        shape = resolve(body)
        if "oneOf" in shape:
            # One of several shapes, each with everything that it has.
            assert set(given) in [set(resolve(one)["properties"]) for one in shape["oneOf"]]
            return
        properties = shape.get("properties", {})
        assert set(given) <= set(properties)
        if name == "POST /v1/sessions/{}/input":
            # Exactly one of them each time.
            fields = [set(json.loads(request.content)) for request in server.seen]
            assert sorted(field for (field,) in fields) == sorted(properties)
        elif name != "PATCH /v1/settings":
            assert set(properties) - set(given) - NOT_SENT == LEFT_OUT.get(name, set())


def schema_of(operation: Mapping[str, Any]) -> Optional[dict[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {})
    found: Optional[dict[str, Any]] = content.get("application/json", {}).get("schema")
    return found


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = schemas()[schema["$ref"].rpartition("/")[2]]
    return schema


def schemas() -> dict[str, Any]:
    found: dict[str, Any] = (DOCUMENT or {}).get("components", {}).get("schemas", {})
    return found


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_every_field(name: str) -> None:
    kind = RECORDS[name]
    fields = {said(kind, it.name) for it in dataclasses.fields(kind)} - {"extra"}
    assert fields == properties(schemas()[name])


def properties(schema: dict[str, Any]) -> set[str]:
    """Of a schema and of all that it is put together from."""
    schema = resolve(schema)
    found = set(schema.get("properties", {}))
    for part in (*schema.get("allOf", ()), *schema.get("oneOf", ())):
        found |= properties(part)
    return found


def test_every_kind_of_effect_has_its_details() -> None:
    for one in schemas()["Deed"]["oneOf"]:
        (kind,) = one["properties"]["type"]["enum"]
        name = one["properties"]["details"]["$ref"].rpartition("/")[2]
        assert isinstance(glovebox.Effect(type=kind).details, RECORDS[name]), kind


@pytest.mark.parametrize("name", WISHES)
def test_what_a_simulation_is_told_is_all_that_it_takes(name: str) -> None:
    assert set(WISHES[name].__annotations__) == set(schemas()[name]["properties"])


def test_every_code_has_a_class() -> None:
    assert set(BY_CODE) == set(schemas()["Code"]["enum"])


def test_options_are_the_fields_of_a_request() -> None:
    assert set(OPTIONS) == set(Options.__annotations__) - OTHERWISE
    names = {"ExecRequest", "ExecSpec", "PolicyOverrides", "TaskRef", "SandboxByLifetime"}
    known = {key for name in names for key in resolve(schemas()[name]).get("properties", {})}
    assert set(Options.__annotations__) - {"policy"} <= known
    assert set(SKILL) == set(SkillOptions.__annotations__) - OTHERWISE
    assert set(SkillOptions.__annotations__) <= set(Options.__annotations__)
    assert set(SESSION) == set(SessionOptions.__annotations__) - OTHERWISE
    own = {*resolve(schemas()["SessionOptions"])["properties"], "session_time"}
    assert set(SESSION) - set(OPTIONS) == own
    assert "session_time" in schemas()["PolicyOverrides"]["properties"]
    assert set(SANDBOX) == set(SandboxOptions.__annotations__)
    names = {"SandboxRequest", "PolicyOverrides"}
    known = {key for name in names for key in resolve(schemas()[name]).get("properties", {})}
    assert set(SandboxOptions.__annotations__) - {"policy"} <= known
    assert set(SEARCH) == set(SearchOptions.__annotations__)
    assert {*WHICH, *IDS} == set(AuditFilters.__annotations__)


def test_every_shape_of_a_selection_has_an_argument(
    connect: Callable[..., Any], server: Server
) -> None:
    client = connect(glovebox.Patience(retries=0))
    for argument in (
        {"everything": True},
        {"mismatched": True},
        {"agent_id": "a"},
        {"session_id": "s"},
    ):
        with pytest.raises(glovebox.NotFound):
            client.sandboxes.recreate_many(**argument)
    given = [set(json.loads(request.content)) for request in server.seen]
    shapes = [set(resolve(one)["properties"]) for one in schemas()["RecreateRequest"]["oneOf"]]
    assert sorted(map(sorted, given)) == sorted(map(sorted, shapes))
