"""Pages that are read for a caller, and webhooks."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from conftest import Server, refusal, sent
from glovebox import PolicyDenied

PAGE = {
    "final_url": "https://example.com/",
    "status_code": 200,
    "content_type": "text/html",
    "bytes_read": 24,
    "elapsed_ms": 3,
    "text": "# Hi\n",
    "truncated": False,
    "addresses": ["93.184.216.34"],
    "peer": "93.184.216.34:443",
    "retrieved_at": "2026-11-16T08:23:28Z",
    "error_code": None,
    "error": None,
}
BLOCKED = {
    **PAGE,
    "text": None,
    "error_code": "destination_blocked",
    "error": {"code": "destination_blocked", "message": "`10.0.0.1` is private", "hint": "no"},
}
MESSAGE = "msg_" + "1" * 32
DELIVERY = {
    "message_id": MESSAGE,
    "webhook": "ops",
    "event": "exec.ended",
    "created_at": "2026-11-16T08:23:28Z",
    "state": "delivered",
    "attempts": 2,
    "status_code": 204,
    "problem": None,
}


def test_a_page_is_text_or_the_reason_why_not(client: Any, server: Server) -> None:
    server.on("POST", "/v1/retrieve", httpx.Response(200, json=PAGE))
    page = client.retrieve("https://example.com/", max_bytes=9, timeout=0.5)
    assert (page.ok, page.text, page.status_code) == (True, "# Hi\n", 200)
    assert sent(server.seen[0]) == {
        "url": "https://example.com/",
        "max_bytes": 9,
        "timeout_ms": 500,
    }
    server.on("POST", "/v1/retrieve", httpx.Response(200, json=BLOCKED))
    page = client.retrieve("http://10.0.0.1/", task_ref={"conversation_id": "c"})
    assert (page.ok, page.error_code, page.error.hint) == (False, "destination_blocked", "no")
    assert sent(server.seen[1])["task_ref"] == {"conversation_id": "c"}
    server.on("POST", "/v1/retrieve", refusal(403, "policy_denied"))
    with pytest.raises(PolicyDenied):
        client.retrieve("https://example.com/")


def test_webhooks_are_listed_and_tried(client: Any, server: Server) -> None:
    row = {"name": "ops", "origin": "https://a.b", "events": ["exec.ended"], "space_id": None}
    server.on("GET", "/v1/webhooks", httpx.Response(200, json={"items": [row]}))
    assert [it.origin for it in client.webhooks.list()] == ["https://a.b"]
    page = {"items": [DELIVERY], "next": None}
    server.on("GET", "/v1/webhooks/deliveries", httpx.Response(200, json=page))
    found = list(client.webhooks.deliveries(webhook="ops", state="delivered"))
    assert [(it.message_id, it.attempts) for it in found] == [(MESSAGE, 2)]
    assert dict(server.seen[-1].url.params) == {"webhook": "ops", "state": "delivered"}
    server.on("POST", "/v1/webhooks/ops/test", httpx.Response(202, json=DELIVERY))
    assert client.webhooks.test("ops").status_code == 204
