"""In step with `openapi.json`: every operation is reached by a method, with every parameter that it
has, and every field of an answer is in a record."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Optional

import httpx
import pytest

import glovebox
from conftest import Server
from glovebox.errors import BY_CODE
from glovebox.request import Options

# What a program does not call: pages for people, and the second names of operations that it calls
# by their first ones.
PAGES = {"GET /", "GET /docs"}
SECOND_NAMES = ("/sandbox/execs", "/v1/execs")

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
    "policy": {"network": "none"},
    "on_exceed": "cap",
    "mode": "run",
    **IDS,  # type: ignore[typeddict-item]
}
WHICH: dict[str, Any] = {"exec_id": "e", "kind": "k", "tag": "g", "since": "x", "until": "y"}

# Each with every parameter that it has.
METHODS: Mapping[str, Callable[[Any], Any]] = {
    "POST /v1/execs": lambda it: it.run("true", **OPTIONS),
    "GET /v1/execs": lambda it: next(
        it.execs.list(
            task_id="t", status="failed", conversation_id="c", project_id="p", page_size=1
        )
    ),
    "GET /v1/execs/{}": lambda it: it.execs.get("e"),
    "GET /v1/execs/{}/stdout": lambda it: it.execs.stdout("e", offset=1, limit=2),
    "GET /v1/execs/{}/stderr": lambda it: it.execs.stderr("e", offset=1, limit=2),
    "GET /v1/execs/{}/artifacts": lambda it: it.execs.artifacts("e"),
    "GET /v1/execs/{}/artifacts/{}": lambda it: it.execs.artifact("e", "a"),
    "GET /v1/execs/{}/events": lambda it: next(it.execs.events("e", after=3)),
    "POST /v1/execs/{}/cancel": lambda it: it.execs.cancel("e"),
    "GET /sandbox/execs/{}/observation": lambda it: it.execs.observation("e"),
    "POST /v1/policy/explain": lambda it: it.explain("true", **OPTIONS),
    "GET /v1/workspaces": lambda it: next(it.workspaces.list(page_size=1)),
    "GET /v1/workspaces/{}": lambda it: it.workspaces.get("p"),
    "DELETE /v1/workspaces/{}": lambda it: it.workspaces.delete("p"),
    "GET /v1/workspaces/{}/files": lambda it: it.workspaces.files("p"),
    "GET /v1/workspaces/{}/files/{}": lambda it: it.workspaces.read("p", "f"),
    "PUT /v1/workspaces/{}/files/{}": lambda it: it.workspaces.write("p", "f", b"x"),
    "DELETE /v1/workspaces/{}/files/{}": lambda it: it.workspaces.remove("p", "f"),
    "GET /v1/audit": lambda it: next(it.audit.list(page_size=1, **WHICH, **IDS)),
    "GET /v1/audit/verify": lambda it: it.audit.verify(),
    "GET /v1/audit/export": lambda it: it.audit.export(format="ocsf"),
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
    "GET /openapi.json": lambda it: it.openapi(),
}

# The next page is the client's own business, the other header is for browsers, and a request has
# its key in a header.
NOT_SENT = {"cursor", "Last-Event-ID", "skill_id", "request_id"}

RECORDS: Mapping[str, type] = {
    "Artifact": glovebox.Artifact,
    "Artifacts": glovebox.Artifacts,
    "Capped": glovebox.Capped,
    "Checkpoint": glovebox.Checkpoint,
    "Correlation": glovebox.Ids,
    "Decided": glovebox.Decided,
    "Error": glovebox.ExecError,
    "Exec": glovebox.Exec,
    "Explanation": glovebox.Explanation,
    "FileEntry": glovebox.FileEntry,
    "LedgerEntry": glovebox.AuditEntry,
    "Listing": glovebox.Listing,
    "NewToken": glovebox.NewToken,
    "Observation": glovebox.Observation,
    "Output": glovebox.Output,
    "ReceiptRef": glovebox.Receipt,
    "Retry": glovebox.Retry,
    "Risk": glovebox.Risk,
    "RiskSignal": glovebox.RiskSignal,
    "SandboxHealth": glovebox.Health,
    "SettingsAnswer": glovebox.ServerSettings,
    "Token": glovebox.Token,
    "Usage": glovebox.Usage,
    "Verification": glovebox.Verification,
    "Workspace": glovebox.Workspace,
}


def _document() -> Optional[dict[str, Any]]:
    for folder in Path(__file__).resolve().parents:
        for file in (folder / "openapi.json", folder / "docs" / "openapi.json"):
            if file.exists():
                found: dict[str, Any] = json.loads(file.read_text())
                return found
    return None


DOCUMENT = _document()


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
    first, second = SECOND_NAMES[1], SECOND_NAMES[0]
    unreached = [
        name
        for name in operations()
        if name not in METHODS
        and name not in PAGES
        and name.replace(second, first) not in METHODS
    ]
    assert unreached == []


def test_every_method_has_an_operation() -> None:
    assert sorted(set(METHODS) - set(operations())) == []


@pytest.mark.parametrize("name", METHODS)
def test_a_method_sends_what_its_operation_takes(
    name: str, connect: Callable[..., Any], server: Server
) -> None:
    client = connect(glovebox.Patience(retries=0))
    try:
        METHODS[name](client)
    except glovebox.GloveboxError:
        pass  # Only what was sent counts here.
    request = server.seen[0]
    method, _, template = name.partition(" ")
    assert request.method == method
    pattern = re.escape(template).replace(r"\{\}", "[^/]+")
    assert re.fullmatch(pattern, request.url.raw_path.decode().partition("?")[0])
    operation = operations()[name]
    parameters = operation.get("parameters", [])
    documented = {it["name"] for it in parameters if it["in"] == "query"} - NOT_SENT
    assert set(request.url.params) - NOT_SENT == documented
    for it in parameters:
        if it["in"] == "header" and it["name"] not in NOT_SENT:
            assert it["name"] in request.headers
    assert ("requestBody" in operation) == bool(request.content)
    body = schema_of(operation)
    if body is not None:
        given = json.loads(request.content)
        properties = resolve(body).get("properties", {})
        assert set(given) <= set(properties)
        if name != "PATCH /v1/settings":
            left_out = {"wait"} if name == "POST /v1/policy/explain" else set()
            assert set(properties) - set(given) - NOT_SENT == left_out


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
    fields = {it.name for it in dataclasses.fields(RECORDS[name])} - {"extra"}
    assert fields == set(schemas()[name]["properties"])


def test_every_record_of_an_answer_is_known() -> None:
    """Whatever a 2xx answers with is a record here, or listed as one that is passed on as it is."""
    passed_on = {"Alive", "LegacyExec", "StreamedEvent", "Written", "Workspaces"}
    unknown = set()
    for operation in operations().values():
        for status, response in operation.get("responses", {}).items():
            for media in response.get("content", {}).values() if status[0] == "2" else ():
                name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
                if name and not name.startswith("Page_") and name not in passed_on | set(RECORDS):
                    unknown.add(name)
    assert unknown == set()


def test_every_code_has_a_class() -> None:
    assert set(BY_CODE) == set(schemas()["Code"]["enum"])


def test_options_are_the_fields_of_a_request() -> None:
    assert set(OPTIONS) == set(Options.__annotations__)
    names = {"ExecRequest", "ExecSpec", "PolicyOverrides", "TaskRef"}
    known = {key for name in names for key in resolve(schemas()[name]).get("properties", {})}
    assert set(Options.__annotations__) - {"policy"} <= known
