"""What is asked of the ledger, and workspaces that go back to what was verified."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from glovebox import Conflict
from conftest import Server, refusal, sent

ENTRY = {
    "seq": 3,
    "kind": "outcome",
    "exec_id": "e_1",
    "tags": ["failure"],
    "retention_tier": "hot",
}
ID = "snap_" + "1" * 32


def test_several_tags_are_one_value(client: Any, server: Server) -> None:
    server.on("GET", "/v1/audit", httpx.Response(200, json={"items": [ENTRY], "next": None}))
    found = list(client.audit.list(tags=["failure", "simulation_mode"], without=["x"], tier="hot"))
    assert [(it.seq, it.retention_tier, it.extra) for it in found] == [(3, "hot", {})]
    assert dict(server.seen[0].url.params) == {
        "tags": "failure,simulation_mode",
        "without": "x",
        "tier": "hot",
    }


@pytest.mark.parametrize(
    ("filters", "kind", "told"),
    [
        ({"tags": "failure"}, TypeError, "`tags` is a list of tags"),
        ({"without": ["a,b"]}, ValueError, "`a,b` cannot be one of several"),
        ({"tags": [1]}, TypeError, "a tag of `tags` is text, not `int`"),
        ({"taggs": ["a"]}, TypeError, "taggs"),
    ],
)
def test_a_wrong_filter_is_told_before_anything_is_sent(
    client: Any, server: Server, filters: Any, kind: Any, told: str
) -> None:
    with pytest.raises(kind, match=told):
        list(client.audit.list(**filters))
    assert server.seen == []


def test_a_task_is_told_step_by_step(client: Any, server: Server) -> None:
    planned = {**ENTRY, "seq": 2, "kind": "planned"}
    step = {"exec_id": "e_1", "planned": planned, "outcome": ENTRY, "others": []}
    running = {"exec_id": "e_2", "planned": planned, "outcome": None, "others": [ENTRY]}
    first = {"task_id": "a/b", "steps": [step], "next": "1.2"}
    last = {"task_id": "a/b", "steps": [running], "next": None}
    server.on(
        "GET",
        "/v1/audit/timeline/a/b",
        httpx.Response(200, json=first),
        httpx.Response(200, json=last),
    )
    steps = list(client.audit.timeline("a/b", page_size=1))
    assert [it.exec_id for it in steps] == ["e_1", "e_2"]
    assert (steps[0].planned.kind, steps[0].outcome.seq, steps[1].outcome) == ("planned", 3, None)
    assert [it.seq for it in steps[1].others] == [3]
    assert server.seen[0].url.raw_path == b"/v1/audit/timeline/a%2Fb?limit=1"
    assert dict(server.seen[1].url.params) == {"limit": "1", "cursor": "1.2"}


def test_a_workspace_is_rolled_back_to_what_was_verified(client: Any, server: Server) -> None:
    path = "/v1/workspaces/demo/rollback"
    done = {
        "snapshot_id": ID,
        "verified_at": "2026-11-17T02:23:28Z",
        "before": "snap_2",
        "state_before": "b",
        "state_after": "a",
        "restored": {"files_written": 1},
    }
    server.on("POST", path, httpx.Response(200, json=done))
    back = client.snapshots.rollback("demo")
    assert (back.before, back.state_before, back.state_after) == ("snap_2", "b", "a")
    assert back.verified_at.year == 2026 and back.restored.files_written == 1 and back.extra == {}
    client.snapshots.rollback("demo", snapshot_id=ID, snapshot_before=False)
    assert [sent(it) for it in server.seen] == [{}, {"snapshot_id": ID}]
    assert [dict(it.url.params) for it in server.seen] == [{}, {"snapshot_before": "false"}]
    server.on("POST", path, refusal(409, "conflict"))
    with pytest.raises(Conflict):
        client.snapshots.rollback("demo", snapshot_id=ID)


def test_a_snapshot_says_when_it_was_verified(client: Any, server: Server) -> None:
    path = f"/v1/workspaces/demo/snapshots/{ID}"
    server.on(
        "GET",
        path,
        httpx.Response(200, json={"snapshot_id": ID, "verified_at": None}),
        httpx.Response(200, json={"snapshot_id": ID, "verified_at": "2026-11-17T02:23:28Z"}),
    )
    assert client.snapshots.get("demo", ID).verified_at is None
    assert client.snapshots.get("demo", ID).verified_at.hour == 2
