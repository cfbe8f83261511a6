"""What is said about sandboxes, and what is understood."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from glovebox import Conflict, Unavailable
from conftest import Server, record, refusal, sent

SANDBOXES = "/v1/sandboxes"
ID = "sb_" + "1" * 32
ROW = {
    "sandbox_id": ID,
    "name": "glovebox-ann-01234567",
    "lifetime": "agent",
    "scope": "ann",
    "state": "idle",
    "created_at": "2026-01-01T00:00:00Z",
    "config": {"backend": "native"},
}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sandbox": ID}, {"id": ID}),
        ({"sandbox": "glovebox-ann-01234567"}, {"name": "glovebox-ann-01234567"}),
        ({"lifetime": "agent", "agent_id": "ann"}, {"lifetime": "agent"}),
        ({}, None),
        ({"sandbox": None, "lifetime": None}, None),
    ],
)
def test_an_exec_says_where_it_runs(
    client: Any, server: Server, options: Any, said: Any
) -> None:
    server.on("POST", "/v1/execs", httpx.Response(200, json=record(sandbox_id=ID, notes=["n"])))
    exec = client.run("true", **options)
    assert (exec.sandbox_id, exec.notes) == (ID, ["n"])
    assert sent(server.seen[0]).get("sandbox") == said


def test_what_cannot_be_meant_is_told_before_anything_is_sent(client: Any, server: Server) -> None:
    with pytest.raises(TypeError, match="give one of the two"):
        client.run("true", sandbox="x", lifetime="agent")
    with pytest.raises(TypeError, match="`require` is a list"):
        client.run("true", require="own_kernel")
    with pytest.raises(TypeError, match="unknown options: mmeory"):
        client.sandboxes.create("agent", mmeory=1)
    for which in ({}, {"everything": True, "agent_id": "a"}):
        with pytest.raises(TypeError, match="say which"):
            client.sandboxes.recreate_many(**which)
    assert server.seen == []


def test_a_sandbox_is_asked_for_and_read(client: Any, server: Server) -> None:
    server.on("POST", SANDBOXES, httpx.Response(201, json=ROW))
    made = client.sandboxes.create(
        "agent", agent_id="ann", project_id="p", memory="64M", require=("own_kernel",)
    )
    assert (made.sandbox_id, made.scope, made.state) == (ID, "ann", "idle")
    assert made.created_at.year == 2026 and made.extra == {}
    assert sent(server.seen[0]) == {
        "lifetime": "agent",
        "agent_id": "ann",
        "project_id": "p",
        "policy_overrides": {"memory": "64M", "require": ["own_kernel"]},
    }
    server.on("POST", SANDBOXES, refusal(409, "conflict"))
    with pytest.raises(Conflict):
        client.sandboxes.create("agent", agent_id="ann")


def test_a_list_has_one_page(client: Any, server: Server) -> None:
    server.on("GET", SANDBOXES, httpx.Response(200, json={"items": [ROW, ROW]}))
    listed = list(client.sandboxes.list(agent_id="ann", state="idle"))
    assert [it.sandbox_id for it in listed] == [ID, ID]
    assert dict(server.seen[0].url.params) == {"agent_id": "ann", "state": "idle"}
    assert len(server.seen) == 1


def test_one_that_fails_is_told_beside_the_others(client: Any, server: Server) -> None:
    failed = [{"name": "n", "error": {"code": "busy", "message": "somebody is in it"}}]
    body = {"recreated": [ROW], "failed": failed}
    server.on("POST", f"{SANDBOXES}/recreate", httpx.Response(200, json=body))
    done = client.sandboxes.recreate_many(mismatched=True)
    assert [it.name for it in done.recreated] == [ROW["name"]]
    assert (done.failed[0].name, done.failed[0].error.code) == ("n", "busy")
    server.on("POST", f"{SANDBOXES}/prune", httpx.Response(200, json={"removed": ["a"]}))
    assert client.sandboxes.prune().removed == ["a"]


def test_one_in_use_is_tried_again(client: Any, server: Server, sleeps: list[float]) -> None:
    path = f"{SANDBOXES}/{ID}"
    server.on("DELETE", path, refusal(503, "busy"), httpx.Response(200, json=ROW))
    assert client.sandboxes.remove(ID).name == ROW["name"]
    keys = {request.headers["idempotency-key"] for request in server.seen}
    assert len(server.seen) == 2 and len(keys) == 1 and len(sleeps) == 1
    server.on("DELETE", path, refusal(503, "busy"))
    with pytest.raises(Unavailable):
        client.sandboxes.remove(ID)


def test_pool_and_backends_are_read(client: Any, server: Server) -> None:
    pool = {"enabled": True, "hits": 3, "shapes": [{"kind": "python", "idle": 2}]}
    server.on("GET", "/v1/pool", httpx.Response(200, json=pool))
    read = client.pool()
    assert (read.enabled, read.hits, read.shapes[0].kind, read.shapes[0].idle) == (
        True,
        3,
        "python",
        2,
    )
    backend = {
        "name": "docker",
        "runtime": "runsc",
        "usable": False,
        "error": {"code": "backend_unavailable", "message": "no"},
        "guarantees": [{"guarantee": "own_kernel", "grade": "kernel", "evidence": "e"}],
    }
    server.on("GET", "/v1/backends", httpx.Response(200, json={"items": [backend]}))
    (one,) = client.backends()
    assert (one.name, one.runtime, one.usable) == ("docker", "runsc", False)
    assert one.error.code == "backend_unavailable" and one.guarantees[0].grade == "kernel"
