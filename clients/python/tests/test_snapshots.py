"""What is said about snapshots and changes that wait, and what is understood."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from glovebox import Conflict, NotFound
from conftest import Server, record, refusal, sent

DEMO = "/v1/workspaces/demo"
ID = "snap_" + "1" * 32
ROW = {
    "snapshot_id": ID,
    "project_id": "demo",
    "taken_at": "2026-11-16T08:23:28Z",
    "parent": None,
    "label": "l",
    "counts": {"files": 2, "bytes": 5},
}
COUNTS = {"files_written": 1, "removed": 2}


def test_a_snapshot_is_taken_and_read(client: Any, server: Server) -> None:
    taken = {"snapshot": ROW, "files_read": 1, "stored_bytes": 9, "unstable": ["log"]}
    server.on("POST", f"{DEMO}/snapshots", httpx.Response(201, json=taken))
    done = client.snapshots.take("demo", label="l")
    assert (done.snapshot_id, done.snapshot.counts.files, done.files_read) == (ID, 2, 1)
    assert done.snapshot.taken_at.year == 2026 and done.unstable == ["log"]
    client.snapshots.take("demo", live=True, note="n")
    assert [sent(it) for it in server.seen] == [
        {"label": "l", "live": False},
        {"note": "n", "live": True},
    ]
    server.on("POST", f"{DEMO}/snapshots", refusal(409, "conflict"))
    with pytest.raises(Conflict):
        client.snapshots.take("demo")


def test_snapshots_are_listed_whole(client: Any, server: Server) -> None:
    page = {"items": [ROW, ROW], "truncated": False}
    server.on("GET", f"{DEMO}/snapshots", httpx.Response(200, json=page))
    assert [it.label for it in client.snapshots.list("demo")] == ["l", "l"]
    list(client.snapshots.list("demo", limit=2))
    assert [it.url.params["limit"] for it in server.seen] == ["10000", "2"]


def test_a_comparison_is_read(client: Any, server: Server) -> None:
    hunks = {"kind": "hunks", "unified": "@@ -1 +1 @@\n-a\n+b\n", "lines_added": 1}
    changes = [
        {
            "path": "f",
            "change": "modified",
            "before": {"type": "file", "size": 2},
            "after": {"type": "file", "size": 2},
            "text": hunks,
        },
        {
            "path": "l",
            "change": "added",
            "before": None,
            "after": {"type": "symlink", "target": "/etc"},
            "text": {"kind": "none"},
        },
    ]
    body = {"changes": changes, "added": 1, "removed": 0, "changed": 1, "truncated": True}
    server.on("GET", f"{DEMO}/diff", httpx.Response(200, json=body))
    diff = client.snapshots.diff("demo", ID)
    assert (diff.added, diff.changed, diff.truncated) == (1, 1, True)
    first, second = diff.changes
    assert (first.text.kind, first.text.lines_added) == ("hunks", 1)
    assert first.text.unified.endswith("+b\n") and first.before.size == 2
    assert (second.before, second.after.target, second.text.kind) == (None, "/etc", "none")
    client.snapshots.diff("demo", ID, "other", text=False, limit=3)
    assert [dict(it.url.params) for it in server.seen] == [
        {"from": ID, "text": "true"},
        {"from": ID, "to": "other", "limit": "3", "text": "false"},
    ]


def test_a_workspace_goes_back_and_is_forked(client: Any, server: Server) -> None:
    restored = {"snapshot_id": ID, "before": "snap_2", "restored": COUNTS}
    server.on("POST", f"{DEMO}/snapshots/{ID}/restore", httpx.Response(200, json=restored))
    done = client.snapshots.restore("demo", ID)
    assert (done.before, done.restored.files_written, done.restored.removed) == ("snap_2", 1, 2)
    undone = {**restored, "exec_id": "e_1"}
    server.on("POST", f"{DEMO}/undo", httpx.Response(200, json=undone))
    assert client.snapshots.undo("demo").exec_id == "e_1"
    client.snapshots.undo("demo", exec_id="e_1")
    forked = {"project_id": "two", "snapshot_id": ID, "restored": COUNTS}
    server.on("POST", f"{DEMO}/fork", httpx.Response(201, json=forked))
    assert client.snapshots.fork("demo", "two").project_id == "two"
    client.snapshots.fork("demo", "two", snapshot_id=ID)
    assert [sent(it) for it in server.seen[1:]] == [
        {},
        {"exec_id": "e_1"},
        {"into": "two"},
        {"into": "two", "snapshot_id": ID},
    ]
    with pytest.raises(NotFound):
        client.snapshots.get("demo", "snap_3")
    with pytest.raises(ValueError):
        client.snapshots.remove("demo", "")


def test_the_operators_calls_are_read(client: Any, server: Server) -> None:
    space = {"space_id": "s", "removed": [ID], "error": {"code": "busy", "message": "m"}}
    server.on("POST", "/v1/snapshots/collect", httpx.Response(200, json={"spaces": [space]}))
    (one,) = client.snapshots.collect().spaces
    assert (one.removed, one.error.code) == ([ID], "busy")
    damaged = {
        "space_id": "s",
        "damage": [{"what": "chunk", "name": "c", "why": "w"}],
        "hurts": [{"snapshot_id": ID, "path": None}],
    }
    body = {"sound": False, "spaces": [damaged]}
    server.on("GET", "/v1/snapshots/verify", httpx.Response(200, json=body))
    found = client.snapshots.verify()
    assert not found.sound and found.spaces[0].damage[0].what == "chunk"
    assert (found.spaces[0].hurts[0].path, found.spaces[0].error) == (None, None)


def test_changes_wait_and_are_decided(client: Any, server: Server) -> None:
    count = {"created": 1, "modified": 1, "removed": 0, "bytes": 4, "truncated": False}
    held = record(writes="held", changes=count, snapshot_before=ID)
    server.on("POST", "/v1/execs", httpx.Response(200, json=held))
    exec = client.run("true", project_id="demo", writes="held")
    assert sent(server.seen[0])["writes"] == "held"
    assert (exec.writes, exec.changes.created, exec.snapshot_before) == ("held", 1, ID)
    side = {"type": "file", "size": 2, "mode": "0644", "digest": "d"}
    waiting = {
        "exec_id": exec.exec_id,
        "count": count,
        "changes": [{"path": "f", "what": "created", "before": None, "after": side}],
        "skipped": [{"hex": "ff"}],
        "texts": [{"path": "f", "unified": "+x\n"}],
    }
    path = f"/v1/execs/{exec.exec_id}"
    server.on("GET", f"{path}/changes", httpx.Response(200, json=waiting))
    seen = client.execs.changes(exec.exec_id)
    assert (seen.changes[0].what, seen.changes[0].before) == ("created", None)
    assert seen.changes[0].after.digest == "d" and seen.texts[0].unified == "+x\n"
    assert (seen.skipped, seen.count.bytes) == ([b"\xff"], 4)
    server.on("POST", f"{path}/keep", refusal(409, "conflict"))
    with pytest.raises(Conflict):
        client.execs.keep(exec.exec_id)
    settled = {"exec_id": exec.exec_id, "count": count}
    server.on("POST", f"{path}/keep", httpx.Response(200, json=settled))
    server.on("POST", f"{path}/discard", httpx.Response(200, json=settled))
    assert client.execs.keep(exec.exec_id).count.modified == 1
    assert client.execs.discard(exec.exec_id).exec_id == exec.exec_id


def test_an_exec_of_an_older_server_wrote_directly(client: Any, server: Server) -> None:
    server.on("POST", "/v1/execs", httpx.Response(200, json=record()))
    exec = client.run("true")
    assert (exec.writes, exec.changes, exec.snapshot_before) == ("direct", None, None)
    assert "writes" not in sent(server.seen[0])
