"""What is said about simulations and their effects, and what is understood."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from glovebox import (
    Conflict,
    Effect,
    Exec,
    ExecFailed,
    FileFacts,
    FileWrite,
    Forbidden,
    Held,
    NetworkRequest,
    ProcessSpawn,
    Reported,
    UnexpectedAnswer,
)
from glovebox.decode import record as read
from conftest import Pieces, Server, record, refusal, sent

EXECS = "/v1/execs"
ID = record()["exec_id"]
AT = "2026-11-17T02:23:28.5Z"
WRITE = {
    "seq": 1,
    "at": AT,
    "type": "filesystem_write",
    "details": {
        "operation": "renamed",
        "path": {"hex": "62ff"},
        "from": "a",
        "before": {"kind": "file", "size": 1, "mode": 420},
        "after": {"kind": "symlink", "size": 2, "mode": 511, "target": "/etc"},
        "diff": "@@ -1 +1 @@\n-a\n+b\n",
    },
    "would_succeed": True,
}
REQUEST = {
    "seq": 2,
    "at": AT,
    "type": "network_request",
    "details": {
        "approach": "connect",
        "spoken": "https",
        "host": "api.test",
        "port": 443,
        "code": "NOT_IN_ALLOWLIST",
        "method": "POST",
        "body_bytes": 3,
    },
    "would_succeed": False,
    "failure_reason": "network is `none`",
    "simulated_result": {"status": 201},
}
SPAWN = {
    "seq": 3,
    "at": AT,
    "type": "process_spawn",
    "details": {"pid": 3, "parent": 2, "program": "/bin/sh", "argv": ["sh", {"hex": "ff"}]},
    "would_succeed": True,
}
TOLD = {
    "seq": 4,
    "at": AT,
    "type": "state_mutation",
    "details": {"target": "orders", "action": "insert", "data": {"rows": 2}},
    "would_succeed": True,
}
GATE = {
    "gate": "violations",
    "status": "blocked",
    "blocked": True,
    "failure_code": "POLICY_VIOLATION",
    "recovery": "ask_user",
    "validations": [
        {"validator": "first", "valid": True, "confidence": 1},
        {"validator": "second", "valid": False, "confidence": 0.5, "reason": "network is `none`"},
    ],
}
HELD = record(
    "held",
    exit_code=0,
    stderr="curl: no\n",
    mode="simulate",
    effects=[WRITE, REQUEST],
    effect_count={"total": 2, "violations": 1, "dropped": 0},
    gates=[GATE],
    preview={"exec_id": ID, "digest": "d"},
    traffic={"connections": 1, "strayed": None},
    writes="held",
)


def test_a_simulation_is_asked_for_and_read(client: Any, server: Server) -> None:
    server.on("POST", EXECS, httpx.Response(200, json=HELD))
    told = {"responses": [{"host": "api.test", "json": {"id": 7}}], "data": {"k": 1}, "seed": 1}
    exec = client.run("true", project_id="p", mode="simulate", simulate=told, over="e_2")
    body = sent(server.seen[0])
    assert (body["mode"], body["simulate"], body["over"]) == ("simulate", told, "e_2")
    assert exec.ended and not exec.ok and exec.extra == {}
    assert (exec.effect_count.total, exec.effect_count.violations) == (2, 1)
    assert exec.preview.digest == "d" and exec.traffic.strayed is None
    (gate,) = exec.gates
    assert (gate.passed, gate.blocked, gate.reasons) == (False, True, ["network is `none`"])
    assert gate.validations[1].confidence == 0.5 and gate.recovery == "ask_user"
    with pytest.raises(ExecFailed, match="`held` with exit code 0: network is `none`$"):
        exec.check()


def test_each_kind_of_effect_has_details_of_its_own() -> None:
    write, request, spawn, told = (
        read(Effect, it) for it in (WRITE, REQUEST, SPAWN, TOLD)
    )
    assert isinstance(write.details, FileWrite) and isinstance(write.details.after, FileFacts)
    assert (write.details.path, write.details.moved_from) == (b"b\xff", "a")
    assert (write.details.after.target, write.details.after.mode) == ("/etc", 0o777)
    assert write.details.extra == {} and write.target == b"b\xff"
    assert isinstance(request.details, NetworkRequest) and request.target == "api.test:443"
    assert (request.would_succeed, request.simulated_result) == (False, {"status": 201})
    assert isinstance(spawn.details, ProcessSpawn) and spawn.target == "/bin/sh"
    assert spawn.details.argv == ["sh", b"\xff"]
    assert isinstance(told.details, Reported) and told.target == "orders"
    assert told.details.data == {"rows": 2} and told.at and told.at.microsecond == 500000


def test_an_effect_of_a_newer_server_stays_as_it_came() -> None:
    new = read(Effect, {"type": "gpu_use", "details": {"device": 1}, "mood": "good"})
    assert (new.details, new.target, new.extra) == ({"device": 1}, "", {"mood": "good"})
    more = read(Effect, {**TOLD, "details": {"target": "t", "why": "w"}})
    assert isinstance(more.details, Reported) and more.details.extra == {"why": "w"}
    with pytest.raises(UnexpectedAnswer, match="Reported"):
        read(Effect, {**TOLD, "details": [1]})


def test_a_record_of_an_older_server_has_no_effects() -> None:
    exec = read(Exec, {"exec_id": "e_1", "status": "succeeded", "effects": [], "gates": []})
    assert (exec.effects, exec.effect_count, exec.gates, exec.preview) == ([], None, [], None)


def page(effects: list[Any], next: int, complete: bool = False) -> httpx.Response:
    return httpx.Response(200, json={"effects": effects, "next": next, "complete": complete})


def test_effects_come_in_pages(client: Any, server: Server) -> None:
    path = f"{EXECS}/mine/effects"
    # The second page had only what is not the last word.
    server.on("GET", path, page([WRITE], 100), page([], 200), page([REQUEST], 300, True))
    assert [it.seq for it in client.execs.all_effects("mine")] == [1, 2]
    assert [it.url.params["after"] for it in server.seen] == ["0", "100", "200"]
    server.on("GET", path, page([TOLD], 500))
    found = client.execs.effects("mine", after=400)
    assert (found.effects[0].target, found.next, found.complete) == ("orders", 500, False)


def test_effects_of_what_still_runs_end_with_what_is_known(client: Any, server: Server) -> None:
    server.on("GET", f"{EXECS}/mine/effects", page([WRITE], 100), page([], 100))
    assert [it.seq for it in client.execs.all_effects("mine")] == [1]
    assert len(server.seen) == 2


def test_an_effect_is_told_as_it_is_seen(client: Any, server: Server) -> None:
    body = {"seq": 1, "at": AT, "effect": {**WRITE, "provisional": True}}
    told = f"id: 1\nevent: effect\ndata: {json.dumps(body)}\n\n".encode()
    end = b'id: 2\nevent: state\ndata: {"status": "held"}\n\n'
    server.on("GET", f"{EXECS}/mine/events", httpx.Response(200, stream=Pieces(told, end)))
    first, last = client.execs.events("mine")
    assert (first.kind, first.effect.target, first.effect.provisional) == ("effect", b"b\xff", True)
    assert first.extra == {} and last.last and last.effect is None


def test_a_simulation_is_made_true(client: Any, server: Server) -> None:
    path = f"{EXECS}/mine/apply"
    kept = {"exec_id": ID, "count": {"created": 1, "modified": 2}}
    server.on("POST", path, httpx.Response(200, json=kept))
    assert client.execs.apply("mine").count.modified == 2
    assert server.seen[0].headers["idempotency-key"] and not server.seen[0].content
    for status, code, kind in ((409, "held", Held), (403, "forbidden", Forbidden)):
        server.on("POST", path, refusal(status, code))
        with pytest.raises(kind) as caught:
            client.execs.apply("mine")
        assert isinstance(caught.value, Conflict) == (kind is Held)


def test_a_simulation_is_done_for_real_and_waited_for(client: Any, server: Server) -> None:
    new = record("succeeded", exec_id="e_9", client_id=None, preview={"exec_id": ID})
    server.on("POST", f"{EXECS}/mine/rerun", httpx.Response(200, json=new))
    assert client.execs.rerun("mine").preview.exec_id == ID
    waiting = {**new, "status": "awaiting_approval"}
    server.on("POST", f"{EXECS}/mine/rerun", httpx.Response(202, json=waiting))
    server.on(
        "GET",
        f"{EXECS}/e_9",
        httpx.Response(200, json=waiting),
        httpx.Response(200, json={**new, "traffic": {"strayed": "POST api.test"}}),
    )
    end = b'id: 1\nevent: state\ndata: {"status": "succeeded"}\n\n'
    server.on("GET", f"{EXECS}/e_9/events", httpx.Response(200, stream=Pieces(end)))
    assert client.execs.rerun("mine").traffic.strayed == "POST api.test"
    client.close()
    assert "POST /v1/execs/e_9/cancel" not in server.calls()


def test_what_was_begun_for_real_is_canceled_with_the_client(connect: Any, server: Server) -> None:
    new = record("awaiting_approval", exec_id="e_9", client_id=None)
    server.on("POST", f"{EXECS}/mine/rerun", httpx.Response(202, json=new))
    server.on("GET", f"{EXECS}/e_9", httpx.Response(200, json=new))
    server.on("GET", f"{EXECS}/e_9/events", refusal(410, "expired"))
    gone = {**new, "status": "canceled"}
    server.on("POST", f"{EXECS}/e_9/cancel", httpx.Response(200, json=gone))
    with connect() as client:
        with pytest.raises(Exception, match="expired"):
            client.execs.rerun("mine")
        assert "POST /v1/execs/e_9/cancel" not in server.calls()
    assert server.calls().count("POST /v1/execs/e_9/cancel") == 1


def test_a_result_is_read_by_its_other_names(client: Any, server: Server) -> None:
    validation = {"passed": False, "blockedCommit": True, "validationResults": GATE["validations"]}
    metadata = {
        "sandboxId": "none",
        "executionTime": 5,
        "simulationMode": True,
        "sideEffects": [TOLD],
        "sideEffectCount": 1,
        "crvValidation": validation,
        "hipCortexEntryId": "7:ab",
        "resourceUsage": {"cpu": 1, "memory": 2, "disk": 3, "network": 4},
        "permissionViolations": ["network is `none`"],
        "resourceLimitExceeded": False,
        "newest": 1,
    }
    body = {"success": False, "data": [1], "error": "e", "metadata": metadata}
    server.on("GET", f"{EXECS}/mine/result", httpx.Response(200, json=body))
    result = client.execs.result("mine")
    assert (result.success, result.data, result.error) == (False, [1], "e")
    assert result.metadata.extra == {"newest": 1}
    assert result.metadata.side_effects[0].target == "orders"
    crv = result.metadata.crv_validation
    assert crv.blocked_commit and crv.validation_results[1].reason and crv.extra == {}
    assert result.metadata.hip_cortex_entry_id == "7:ab"
    assert result.metadata.resource_usage.network == 4


@pytest.mark.parametrize("name", ["simulate", "sandbox_config"])
def test_what_is_no_dict_is_told_before_anything_is_sent(
    client: Any, server: Server, name: str
) -> None:
    with pytest.raises(TypeError, match=f"`{name}` is a dict, not `str`"):
        client.run("true", **{name: "simulation"})
    assert server.seen == []


def test_a_task_of_a_workflow_engine_has_no_mode_beside_it(client: Any, server: Server) -> None:
    server.on("POST", EXECS, httpx.Response(200, json=record()))
    client.run("true", sandbox_config={"type": "mock", "persistent": False})
    body = sent(server.seen[0])
    assert body["sandbox_config"] == {"type": "mock", "persistent": False} and "mode" not in body
