"""Secrets: a value goes in and never comes out."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from conftest import Server, record, refusal, sent
from glovebox import Forbidden, NotFound

GRANT = "grt_" + "1" * 32
ROW = {
    "name": "github",
    "version": 2,
    "hosts": ["api.github.com:443"],
    "deliveries": ["file", "broker"],
    "created_at": "2026-11-16T08:23:28Z",
    "updated_at": "2026-11-16T08:23:28Z",
}
GRANTED = {
    "grant_id": GRANT,
    "secret": "github",
    "conversation_id": "c",
    "deliveries": ["broker"],
    "granted_by": "ann",
    "granted_at": "2026-11-16T08:23:28Z",
    "expires_at": "2026-11-17T08:23:28Z",
}


def test_a_secret_is_set_listed_and_removed(client: Any, server: Server) -> None:
    server.on("PUT", "/v1/secrets/github", httpx.Response(200, json=ROW))
    found = client.secrets.set("github", "ghp_é", hosts=["api.github.com:443"])
    assert (found.version, found.hosts, found.last_used_at) == (2, ["api.github.com:443"], None)
    client.secrets.set("github", b"\x00\xff" * 8, deliveries=["file"])
    first, second = (sent(it) for it in server.seen)
    assert base64.b64decode(first.pop("value_base64")).decode() == "ghp_é"
    assert first == {"hosts": ["api.github.com:443"]}
    assert base64.b64decode(second.pop("value_base64")) == b"\x00\xff" * 8
    assert second == {"deliveries": ["file"]}
    keys = {it.headers["idempotency-key"] for it in server.seen}
    assert len(keys) == 2
    assert "ghp_" not in repr(found)

    page = {"items": [ROW], "next": None}
    server.on("GET", "/v1/secrets", httpx.Response(200, json=page))
    assert [it.name for it in client.secrets.list()] == ["github"]
    held = {"exec_id": "e_1", "secret": "github", "version": 1, "delivery": "file"}
    gone = {"secret": ROW, "revoked": [GRANTED], "still_held": [held]}
    server.on("DELETE", "/v1/secrets/github", httpx.Response(200, json=gone))
    removed = client.secrets.remove("github")
    assert (removed.secret.name, removed.revoked[0].grant_id) == ("github", GRANT)
    assert (removed.still_held[0].exec_id, removed.still_held[0].delivery) == ("e_1", "file")


def test_a_secret_is_granted_and_revoked(client: Any, server: Server) -> None:
    server.on("POST", "/v1/secret-grants", httpx.Response(201, json=GRANTED))
    made = client.secrets.grant("github", conversation_id="c", deliveries=["broker"])
    assert (made.grant_id, made.granted_by, made.agent_id) == (GRANT, "ann", None)
    assert sent(server.seen[0]) == {
        "secret": "github",
        "conversation_id": "c",
        "deliveries": ["broker"],
    }
    page = {"items": [GRANTED], "next": None}
    server.on("GET", "/v1/secret-grants", httpx.Response(200, json=page))
    (listed,) = client.secrets.grants(secret="github", include_ended=True)
    assert listed.expires_at is not None and listed.revoked_at is None
    asked = server.seen[1].url.params
    assert (asked["secret"], asked["all"]) == ("github", "true")
    gone = {"revoked": [{**GRANTED, "revoked_at": "2026-11-16T09:00:00Z"}], "still_held": []}
    server.on("DELETE", f"/v1/secret-grants/{GRANT}", httpx.Response(200, json=gone))
    assert client.secrets.revoke(GRANT).revoked[0].revoked_at is not None
    server.on("POST", "/v1/secret-grants", refusal(403, "forbidden"))
    with pytest.raises(Forbidden):
        client.secrets.grant("github", agent_id="a")
    with pytest.raises(NotFound):
        client.secrets.remove("none")


def test_an_exec_names_its_secrets(client: Any, server: Server) -> None:
    given = {"name": "github", "version": 2, "delivery": "broker", "grant_id": GRANT}
    done = record("succeeded", secrets=[given])
    server.on("POST", "/v1/execs", httpx.Response(200, json=done))
    wanted = ["db", {"name": "github", "delivery": "broker", "variable": "GH_TOKEN"}]
    ran = client.run("true", secrets=wanted)
    assert sent(server.seen[0])["secrets"] == [{"name": "db"}, wanted[1]]
    assert (ran.secrets[0].delivery, ran.secrets[0].grant_id) == ("broker", GRANT)
    for wrong in ("github", {"name": "github"}):
        with pytest.raises(TypeError):
            client.run("true", secrets=wrong)
