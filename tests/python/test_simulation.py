"""Simulations from their effects to what becomes of them, with both clients against a server that
runs, and tools in Python inside a sandbox."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from typing import Callable

import pytest

from glovebox import (
    Approval,
    AsyncGlovebox,
    Conflict,
    Effect,
    Exec,
    ExecFailed,
    FileWrite,
    Forbidden,
    Glovebox,
    Held,
    NetworkRequest,
    NotFound,
    PresetResponse,
    ProcessSpawn,
    Reported,
    Simulation,
    Unavailable,
    simulation,
)
from glovebox.request import Options

ALONE = {"simulation.py": inspect.getsource(simulation)}
PATH = "import sys; sys.path.insert(0, '/workspace/inputs'); import simulation\n"
PAY = PATH + """
@simulation.simulation_aware
def pay(params):
    context = params.get(simulation.CONTEXT_KEY)
    if context is None:
        return "paid"
    context.record_side_effect("external_api_call", "bank", "pay", {"amount": params["amount"]})
    return context.get_simulated_data("receipt"), [context.outcome("pay").ok for _ in range(4)]

print(simulation.run_tool(pay, {"amount": 5}))
"""
UNAWARE = PATH + """
def mail(params):
    print("sent")

try:
    simulation.run_tool(mail, {"to": "ann", "password": "hunter2"})
except simulation.NotSimulationAware as error:
    print("not run:", error.tool)
simulation.run_tool(lambda params: print("sum:", params["a"] + 1), {"a": 1}, acts_outside=False)
"""


def _recorded(effects: list[Effect]) -> list[Effect]:
    """As they stand in a record: whoever may read one need not be somebody who may read files."""
    return [
        replace(it, details=replace(it.details, diff=None))
        if isinstance(it.details, FileWrite)
        else it
        for it in effects
    ]


def test_a_simulation_shows_everything_and_changes_nothing(agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "one\n")
    exec = agent.run_shell("echo two > f; mkdir d; echo > d/g", project_id="p", mode="simulate")
    assert exec.ok and (exec.mode, exec.writes, exec.extra) == ("simulate", "held", {})
    assert exec.effect_count and exec.effect_count.violations == exec.effect_count.dropped == 0
    assert [(it.gate, it.passed) for it in exec.gates] == [("violations", True)]
    assert exec.preview and exec.preview.exec_id == exec.exec_id and len(exec.preview.digest) == 64
    page = agent.execs.effects(exec.exec_id)
    assert page.complete and page.extra == {} and _recorded(page.effects) == exec.effects
    assert all(it.extra == {} and it.would_succeed for it in page.effects)
    details = [it.details for it in page.effects]
    writes = {it.path: it for it in details if isinstance(it, FileWrite)}
    assert {path: it.operation for path, it in writes.items()} == {
        "f": "modified",
        "d": "created",
        "d/g": "created",
    }
    assert writes["f"].diff and "-one\n+two\n" in writes["f"].diff
    assert writes["f"].before and writes["f"].after and writes["f"].extra == {}
    assert any(isinstance(it, ProcessSpawn) and it.argv[0] == "bash" for it in details)
    assert agent.workspaces.read("p", "f") == b"one\n"
    assert [it.path for it in agent.workspaces.walk("p")] == ["f"]
    agent.execs.discard(exec.exec_id)


def test_what_was_shown_is_made_true_once(agent: Glovebox) -> None:
    exec = agent.run_shell("echo two > f", project_id="p", mode="simulate").check()
    seen = agent.run("cat", "f", project_id="p", over=exec.exec_id, writes="dropped")
    assert (seen.stdout, seen.writes) == ("two\n", "dropped")
    assert agent.execs.apply(exec.exec_id).count.created == 1
    assert agent.workspaces.read("p", "f") == b"two\n"
    with pytest.raises(NotFound):
        agent.execs.apply(exec.exec_id)
    stale = agent.run_shell("echo three > f", project_id="p", mode="simulate").check()
    agent.workspaces.write("p", "f", "mine\n")
    with pytest.raises(Conflict, match="f"):
        agent.execs.apply(stale.exec_id)
    assert agent.workspaces.read("p", "f") == b"mine\n"
    plain = agent.run("true", project_id="p")
    with pytest.raises(Conflict, match="no simulation"):
        agent.execs.rerun(plain.exec_id)


def test_what_policy_forbids_is_held_and_not_applied(agent: Glovebox) -> None:
    order: PresetResponse = {"host": "api.test", "method": "POST", "path": "/orders"}
    told: Simulation = {"responses": [{**order, "status": 201, "json": {"id": 7}}]}
    script = "echo x > /etc/motd; echo > f; curl -s -X POST -d tea http://api.test/orders"
    exec = agent.run_shell(script, project_id="p", mode="simulate", simulate=told)
    assert (exec.status, exec.exit_code, exec.stdout) == ("held", 0, '{"id":7}')
    (gate,) = exec.gates
    assert gate.blocked and gate.failure_code == "POLICY_VIOLATION" and gate.reasons
    assert exec.effect_count and exec.effect_count.violations == 2
    refused = [it for it in agent.execs.all_effects(exec.exec_id) if not it.would_succeed]
    assert [it.target for it in refused] == ["/etc/motd", "api.test:80"]
    assert all(it.failure_reason for it in refused)
    request = refused[1].details
    assert isinstance(request, NetworkRequest)
    assert (request.method, request.path, request.body_bytes) == ("POST", "/orders", 3)
    assert refused[1].simulated_result["status"] == 201
    for ask in (agent.execs.apply, agent.execs.rerun):
        with pytest.raises(Held) as caught:
            ask(exec.exec_id)
        assert caught.value.hints and "/etc/motd" in caught.value.message
    result = agent.execs.result(exec.exec_id)
    assert not result.success and result.error and "/etc/motd" in result.error
    assert result.data == {"id": 7} and len(result.metadata.permission_violations) == 2
    crv = result.metadata.crv_validation
    assert crv and crv.blocked_commit and not crv.passed and crv.validation_results[0].reason
    agent.execs.discard(exec.exec_id)
    assert list(agent.workspaces.walk("p")) == []


def test_gates_judge_what_would_be_kept(agent: Glovebox) -> None:
    """Those of the agent `gated`, in the configuration of `scripts/test-python`."""
    agent.workspaces.write("p", "prices.csv", "name,price\ntea,3\n")

    def judged(script: str, mode: str) -> Exec:
        return agent.run_shell(script, project_id="p", mode=mode, agent_id="gated")

    right = "sed -i s/price/price_eur/ prices.csv"
    for mode, before in (("simulate", ["violations"]), ("transactional", [])):
        stray = judged(f"{right}; echo > junk", mode)
        assert stray.status == "held" and [it.gate for it in stray.gates] == [*before, "prices"]
        blocked = stray.gates[-1]
        assert (blocked.status, blocked.failure_code) == ("blocked", "OUT_OF_SCOPE")
        assert blocked.recovery == "retry_alt_tool" and blocked.extra == {}
        assert any("junk" in why for why in blocked.reasons)
        with pytest.raises(ExecFailed, match="junk"):
            stray.check()
        # The project's own test sees the changes as if they had been kept.
        wrong = judged("sed -i s/price/euro/ prices.csv", mode)
        assert wrong.gates[-1].failure_code == "TOOL_ERROR" and wrong.status == "held"
        assert wrong.gates[-1].validations[0].valid and not wrong.gates[-1].validations[1].valid
    assert agent.workspaces.read("p", "prices.csv") == b"name,price\ntea,3\n"
    shown = judged(right, "simulate").check()
    assert [(it.gate, it.status) for it in shown.gates] == [
        ("violations", "passed"),
        ("prices", "passed"),
        ("small", "warning"),
    ]
    done = agent.execs.rerun(shown.exec_id).check()
    assert [(it.gate, it.passed) for it in done.gates] == [("prices", True), ("small", False)]
    assert agent.workspaces.read("p", "prices.csv") == b"name,price_eur\ntea,3\n"


def test_a_simulation_is_done_for_real(agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "one\n")
    shown = agent.run_shell("cat; echo two >> f", project_id="p", stdin="in", mode="simulate")
    done = agent.execs.rerun(shown.exec_id)
    assert done.ok and done.exec_id != shown.exec_id and done.stdout == "in"
    assert (done.mode, done.writes, done.verdict) == ("transactional", "if_ok", "keep")
    assert done.preview == shown.preview
    assert agent.workspaces.read("p", "f") == b"one\ntwo\n"
    failed = agent.run_shell("echo three > f; exit 1", project_id="p", mode="transactional")
    assert (failed.status, failed.exit_code) == ("failed", 1)
    assert [it.target for it in failed.effects if it.type == "filesystem_write"] == ["f"]
    assert agent.workspaces.read("p", "f") == b"one\ntwo\n"


def test_people_see_what_they_are_asked_about(
    url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    """Before the agent `asking` touches anything: a rule of `scripts/test-python`."""
    tokens = new_token("agent", space), new_token("approver", space)

    async def pending(approver: AsyncGlovebox) -> Approval:
        while True:
            async for found in approver.approvals.list(state="pending"):
                return found
            await asyncio.sleep(0.02)

    async def main() -> None:
        clients = [AsyncGlovebox(url, token) for token in tokens]
        async with clients[0] as client, clients[1] as approver:
            options: Options = {"project_id": "p", "mode": "simulate", "agent_id": "asking"}
            shown = (await client.run("touch", "f", **options)).check()
            with pytest.raises(Forbidden, match="a person has to agree"):
                await client.execs.apply(shown.exec_id)
            rerun = asyncio.ensure_future(client.execs.rerun(shown.exec_id))
            try:
                asked = await asyncio.wait_for(pending(approver), 60)
                assert asked.ask.preview == shown.preview and asked.ask.extra == {}
                assert _recorded(asked.ask.effects) == shown.effects != []
                await approver.approvals.reply(asked.id, "allow_once")
                done = await asyncio.wait_for(rerun, 60)
            finally:
                rerun.cancel()
            assert done.ok and done.preview == shown.preview
            assert (await client.workspaces.stat("p", "f")).size == 0

    asyncio.run(main())


def test_a_mock_asks_policy_and_runs_nothing(agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "one\n")
    told: Simulation = {"data": {"output": {"rows": 2}}}
    exec = agent.run("rm", "f", project_id="p", mode="mock", simulate=told)
    assert exec.ok and exec.exit_code is None and exec.backend is None and exec.notes
    result = agent.execs.result(exec.exec_id)
    assert result.success and result.data == {"rows": 2} and result.error is None
    assert (result.metadata.sandbox_id, result.metadata.extra, result.extra) == ("none", {}, {})
    assert agent.workspaces.read("p", "f") == b"one\n"


def test_a_task_of_a_workflow_engine(agent: Glovebox) -> None:
    mocked = agent.run("false", sandbox_config={})
    assert mocked.mode == "mock" and mocked.ok
    config = {"type": "simulation", "permissions": {"resources": {"maxExecutionTime": 5000}}}
    shown = agent.run_shell("echo '[1]'", sandbox_config=config)
    assert shown.mode == "simulate" and shown.asked["limits"]["wall_ms"] == 5000
    result = agent.execs.result(shown.exec_id)
    assert result.metadata.simulation_mode and result.data == [1]
    assert result.metadata.side_effect_count == len(result.metadata.side_effects) > 0
    assert shown.receipt and result.metadata.hip_cortex_entry_id
    assert result.metadata.hip_cortex_entry_id.startswith(f"{shown.receipt.seq}:")
    assert agent.run("echo", "x", sandbox_config={"type": "process"}).stdout == "x\n"
    with pytest.raises(Unavailable, match="vm"):
        agent.run("true", sandbox_config={"type": "vm"})
    with pytest.raises(Conflict, match="two ways"):
        agent.run("true", sandbox_config={"type": "mock"}, mode="simulate")
    with pytest.raises(Conflict, match="simulate"):
        agent.run("true", simulate={"seed": 1})


def test_effects_are_told_as_they_are_seen_and_all_of_them_afterwards(agent: Glovebox) -> None:
    script = "seq 600 | while read i; do : > f$i; done"
    exec = agent.start_shell(script, project_id="p", mode="simulate")
    told = [it.effect for it in agent.execs.events(exec.exec_id) if it.kind == "effect"]
    assert told and all(it and it.extra == {} for it in told)
    assert any(it and it.provisional for it in told)
    first = agent.execs.effects(exec.exec_id)
    assert not first.complete and first.next > 0
    every = list(agent.execs.all_effects(exec.exec_id))
    assert not any(it.provisional for it in every)
    written = [it.target for it in every if it.type == "filesystem_write"]
    assert sorted(map(str, written)) == sorted(f"f{number}" for number in range(1, 601))
    ended = agent.execs.get(exec.exec_id)
    assert ended.effect_count and ended.effect_count.total == len(every) > len(ended.effects)
    assert _recorded(every[: len(ended.effects)]) == ended.effects
    agent.execs.discard(exec.exec_id)


def test_a_tool_that_knows_tells_and_does_not_act(agent: Glovebox) -> None:
    told: Simulation = {
        "data": {"receipt": "r-1"},
        "faults": [{"tool": "pa*", "pattern": "alternating"}],
    }
    exec = agent.run_python(PAY, inputs=ALONE, mode="simulate", simulate=told).check()
    assert exec.stdout == "('r-1', [True, False, True, False])\n"
    (paid,) = [it for it in exec.effects if it.type == "external_api_call"]
    assert isinstance(paid.details, Reported) and paid.would_succeed
    assert (paid.target, paid.details.action, paid.details.data) == ("bank", "pay", {"amount": 5})
    assert agent.run_python(PAY, inputs=ALONE).stdout == "paid\n"


def test_a_tool_that_does_not_know_is_not_run(agent: Glovebox) -> None:
    exec = agent.run_python(UNAWARE, inputs=ALONE, mode="simulate")
    assert (exec.status, exec.stdout) == ("held", "not run: mail\nsum: 2\n")
    (refused,) = [it for it in exec.effects if not it.would_succeed]
    assert refused.target == "mail" and "not run" in (refused.failure_reason or "")
    assert isinstance(refused.details, Reported)
    assert refused.details.data == {"parameters": ["password", "to"]}
    assert "hunter2" not in repr(exec.effects[-1])
    assert agent.run_python(UNAWARE, inputs=ALONE).stdout == "sent\nsum: 2\n"


def test_the_ledger_tells_simulations_from_what_was_real(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    shown = agent.run("touch", "f", project_id="p", mode="simulate", task_id="t-1").check()
    real = agent.execs.rerun(shown.exec_id).check()
    with Glovebox(url, new_token("auditor", space)) as auditor:
        found = {it.exec_id for it in auditor.audit.list(mode="simulate", kind="outcome")}
        assert found == {shown.exec_id}
        (entry,) = auditor.audit.list(exec_id=shown.exec_id, kind="outcome", tier="hot")
        assert entry.retention_tier == "hot" and entry.extra == {}
        (same,) = auditor.audit.list(exec_id=shown.exec_id, tags=entry.tags, kind="outcome")
        assert same.seq == entry.seq
        without = entry.tags[:1]
        assert list(auditor.audit.list(exec_id=shown.exec_id, kind="outcome", without=without)) == []
        steps = list(auditor.audit.timeline("t-1", page_size=1))
        assert [it.exec_id for it in steps] == [shown.exec_id, real.exec_id]
        for step in steps:
            assert step.planned and step.outcome and step.planned.seq < step.outcome.seq
            assert step.extra == {} and step.outcome.extra == {}
        with pytest.raises(NotFound):
            list(auditor.audit.timeline("nobody-knows-it"))


def test_a_workspace_is_rolled_back_to_what_was_verified(admin: Glovebox, agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "one\n")
    taken = agent.snapshots.take("p").snapshot
    assert taken.verified_at is None
    with pytest.raises(Conflict):
        agent.snapshots.rollback("p", snapshot_id=taken.snapshot_id)
    assert admin.snapshots.verify().sound
    assert agent.snapshots.get("p", taken.snapshot_id).verified_at
    agent.workspaces.write("p", "f", "two\n")
    back = agent.snapshots.rollback("p")
    assert back.snapshot_id == taken.snapshot_id and back.verified_at and back.extra == {}
    assert back.state_before and back.state_before != back.state_after
    assert agent.workspaces.read("p", "f") == b"one\n" and back.before
    agent.snapshots.restore("p", back.before)
    assert agent.workspaces.read("p", "f") == b"two\n"


def test_another_space_sees_no_effects(
    agent: Glovebox, url: str, new_token: Callable[[str, str], str]
) -> None:
    exec = agent.run("touch", "f", project_id="p", mode="simulate")
    with Glovebox(url, new_token("agent", "elsewhere")) as stranger:
        for ask in (
            stranger.execs.effects,
            stranger.execs.result,
            stranger.execs.apply,
            stranger.execs.rerun,
        ):
            with pytest.raises(NotFound):
                ask(exec.exec_id)
    agent.execs.discard(exec.exec_id)


def test_the_async_client_simulates_too(
    url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    token = new_token("agent", space)

    async def main() -> None:
        async with AsyncGlovebox(url, token) as client:
            shown = await client.run("touch", "f", project_id="p", mode="simulate")
            targets = [it.target async for it in client.execs.all_effects(shown.exec_id)]
            assert "f" in targets and (await client.execs.effects(shown.exec_id)).complete
            assert (await client.execs.result(shown.exec_id)).success
            done = await client.execs.rerun(shown.exec_id)
            assert done.ok and (await client.workspaces.stat("p", "f")).size == 0
            again = await client.run("rm", "f", project_id="p", mode="simulate")
            assert (await client.execs.apply(again.exec_id)).count.removed == 1
            assert [it.path async for it in client.workspaces.walk("p")] == []

    asyncio.run(main())
