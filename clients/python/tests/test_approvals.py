"""What waits for people, and what they say."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from conftest import Server, record, refusal, sent
from glovebox import Conflict, Denied, Expired, Forbidden, Patience

ID = "apr_" + "1" * 32
ROW = {
    "id": ID,
    "exec_id": "e_1",
    "state": "pending",
    "quorum": 2,
    "expires_at": "2026-11-16T08:23:28Z",
    "replies": [{"by": "ann", "via": "rest", "answer": {"decision": "allow_once"}}],
    "ask": {
        "description": "run a shell script",
        "tier": "high",
        "signals": [{"name": "subprocess", "tier": "high", "at": "1:5"}],
        "upgrades": [{"field": "memory", "asked": "2G", "given": "1G", "layer": "defaults"}],
    },
}


def test_an_approval_is_read_and_answered(client: Any, server: Server) -> None:
    server.on("GET", f"/v1/approvals/{ID}", httpx.Response(200, json=ROW))
    found = client.approvals.get(ID)
    assert (found.pending, found.quorum, found.ask.signals[0].at) == (True, 2, "1:5")
    assert (found.ask.upgrades[0].field, found.replies[0].by) == ("memory", "ann")
    path = f"/v1/approvals/{ID}/reply"
    server.on("POST", path, httpx.Response(200, json={**ROW, "state": "used"}))
    assert not client.approvals.allow(ID).pending
    client.approvals.allow(ID, kind=True, reason="fine")
    client.approvals.deny(ID, reason="no")
    client.approvals.reply(ID, "narrow", policy_overrides={"memory": "1G"})
    assert [sent(it) for it in server.seen[1:]] == [
        {"decision": "allow_once"},
        {"decision": "allow_kind", "reason": "fine"},
        {"decision": "deny", "reason": "no"},
        {"decision": "narrow", "policy_overrides": {"memory": "1G"}},
    ]
    for status, code, raised in (
        (409, "conflict", Conflict),
        (410, "expired", Expired),
        (403, "forbidden", Forbidden),
    ):
        server.on("POST", path, refusal(status, code))
        with pytest.raises(raised):
            client.approvals.allow(ID)


def test_each_that_waits_is_told_once(client: Any, server: Server, sleeps: list[float]) -> None:
    other = {**ROW, "id": "apr_2"}

    def page(*items: Any) -> httpx.Response:
        return httpx.Response(200, json={"items": list(items), "next": None})

    # The newest comes first in a page, and last in the story.
    server.on("GET", "/v1/approvals", page(ROW), page(other, ROW), page(other))
    told = []
    for it in client.approvals.watch(every=0.5):
        told.append(it.id)
        if len(told) == 2:
            break
    assert told == [ID, "apr_2"] and sleeps[0] == 0.5
    assert [it.url.params["state"] for it in server.seen] == ["pending", "pending"]


def test_a_watch_ends_after_its_time(client: Any, server: Server) -> None:
    server.on("GET", "/v1/approvals", httpx.Response(200, json={"items": [ROW], "next": None}))
    assert [it.id for it in client.approvals.watch(seconds=0)] == [ID]


def test_grants_are_seen_and_revoked(client: Any, server: Server) -> None:
    row = {"id": "grt_1", "shown": "`touch` in workspace `p`", "used": 3, "granted_by": "ann"}
    server.on("GET", "/v1/grants", httpx.Response(200, json={"items": [row], "next": None}))
    (one,) = client.grants.list(conversation_id="c")
    assert (one.used, one.granted_by, one.revoked_at) == (3, "ann", None)
    gone = {**row, "revoked_at": "2026-11-16T08:23:28Z", "revoked_by": "bob"}
    server.on("DELETE", "/v1/grants/grt_1", httpx.Response(200, json=gone))
    assert client.grants.revoke("grt_1").revoked_by == "bob"


def test_an_exec_says_whom_it_waits_for(connect: Any, server: Server) -> None:
    client = connect(Patience(retries=0))
    waiting = record("awaiting_approval", approval_id=ID, consent=None)
    server.on("POST", "/v1/execs", httpx.Response(202, json=waiting), refusal(403, "denied"))
    exec = client.start("true", on_exceed="ask", justification="it is large", memory="2G")
    assert (exec.ended, exec.approval_id, exec.consent) == (False, ID, None)
    assert sent(server.seen[0])["justification"] == "it is large"
    with pytest.raises(Denied):
        client.run("true")


def test_a_policy_is_tried(client: Any, server: Server) -> None:
    difference = {"exec_id": "e_1", "said": "allow", "would_say": "ask", "reasons": [{"text": "t"}]}
    body = {"execs": 7, "differences": [difference]}
    server.on("POST", "/v1/policy/replay", httpx.Response(200, json=body))
    found = client.replay_policy("[approvals]\n", limit=9)
    assert (found.execs, found.differences[0].would_say) == (7, "ask")
    assert sent(server.seen[0]) == {"config": "[approvals]\n", "limit": 9}
