"""Skills."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from conftest import Server, refusal, sent
from glovebox import Conflict

SKILL = {
    "id": "python.run",
    "name": "Run Python",
    "description": "Runs it.",
    "version": "1.0.0",
    "digest": "sha256:" + "0" * 64,
    "origin": "shipped",
    "replaces_shipped": False,
    "allowed": True,
    "inputs": {"type": "object"},
    "outputs": {"type": "object"},
    "examples": [{"inputs": {"code": "1"}}],
}
ANSWER = {
    "exec_id": "e_" + "1" * 32,
    "status": "succeeded",
    "skill": {"id": "python.run", "version": "1.0.0", "digest": SKILL["digest"]},
    "output": {"stdout": "42\n"},
    "output_valid": True,
    "output_error": None,
    "exec": {"exec_id": "e_" + "1" * 32, "status": "succeeded", "skill_id": "python.run"},
}
RUNNING = {
    **ANSWER,
    "status": "running",
    "output": None,
    "output_valid": None,
    "exec": {"exec_id": "e_" + "1" * 32, "status": "running"},
}


def test_skills_are_listed_and_looked_at(client: Any, server: Server) -> None:
    invalid = {"dir": "a.b", "error": {"code": "invalid_manifest", "message": "no"}}
    listed = {"skills": [SKILL], "invalid": [invalid]}
    server.on("GET", "/v1/skills", httpx.Response(200, json=listed))
    found = client.skills.list()
    assert [it.id for it in found.skills] == ["python.run"]
    assert found.invalid[0].error.code == "invalid_manifest"
    whole = {**SKILL, "instructions": "Do it.", "files": ["SKILL.md"]}
    server.on("GET", "/v1/skills/python.run", httpx.Response(200, json=whole))
    assert client.skills.get("python.run").instructions == "Do it."


def test_a_skill_is_called_with_its_inputs(client: Any, server: Server) -> None:
    server.on("POST", "/v1/skills/python.run/invoke", httpx.Response(200, json=ANSWER))
    answer = client.skills.invoke("python.run", {"code": "1"}, project_id="p", timeout=1, task_id="t")
    assert (answer.ok, answer.output, answer.skill.version) == (True, {"stdout": "42\n"}, "1.0.0")
    body = sent(server.seen[0])
    assert body.pop("client_id").startswith("py-")
    assert body == {
        "inputs": {"code": "1"},
        "project_id": "p",
        "policy_overrides": {"timeout": 1},
        "task_ref": {"task_id": "t"},
        "wait": True,
    }
    server.on("POST", "/v1/skills/python.run/invoke", refusal(409, "invalid_input"))
    with pytest.raises(Conflict):
        client.skills.invoke("python.run")
    with pytest.raises(TypeError):
        client.skills.invoke("python.run", {}, env={"A": "b"})


def test_one_that_takes_longer_is_asked_for_later(client: Any, server: Server) -> None:
    server.on("POST", "/v1/skills/python.run/invoke", httpx.Response(202, json=RUNNING))
    path = f"/v1/execs/{ANSWER['exec_id']}"
    server.on("GET", f"{path}/output", httpx.Response(200, json=ANSWER))
    started = client.skills.start("python.run", {"code": "1"})
    assert (started.output, started.ok) == (None, False)
    assert sent(server.seen[0])["wait"] is False
    assert client.skills.output(started.exec_id).ok
    client.detach(started.exec_id)
