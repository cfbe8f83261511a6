"""Both clients against a server that runs."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Callable

import pytest

from glovebox import (
    AsyncGlovebox,
    Conflict,
    Forbidden,
    Glovebox,
    NotFound,
    PolicyDenied,
    Unauthenticated,
    WaitTimeout,
    calls,
    request,
)
from conftest import soon
from wire import Cutter


def test_a_record_says_what_happened(agent: Glovebox, space: str) -> None:
    exec = agent.run("sh", "-c", "echo out; echo err >&2; exit 7", task_id="t-1", timeout=20)
    assert (exec.status, exec.exit_code, exec.stdout, exec.stderr) == ("failed", 7, "out\n", "err\n")
    assert exec.ended and not exec.ok and exec.started_at and exec.ended_at
    assert exec.started_at <= exec.ended_at
    assert exec.ids.space_id == space and exec.ids.task_id == "t-1"
    assert exec.receipt and exec.policy_snapshot and exec.isolation
    assert exec.extra == {}
    assert agent.execs.get(exec.exec_id) == exec
    assert exec.client_id and agent.execs.get(exec.client_id) == exec
    assert [it.exec_id for it in agent.execs.list(task_id="t-1")] == [exec.exec_id]
    seen = agent.execs.observation(exec.exec_id)
    assert (seen.exit_code, seen.stdout.content) == (7, "out\n")


def test_limits_end_an_exec_and_are_named(agent: Glovebox) -> None:
    exec = agent.run("sleep", "60", timeout=0.3)
    assert (exec.status, exec.timed_out, exec.limit_hit) == ("timed_out", True, "wall")


def test_events_tell_everything_once_also_over_a_connection_that_is_cut(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    script = "for i in $(seq 40); do echo line $i; sleep 0.01; done"
    exec = agent.start_shell(script)
    with Cutter(url, limit=900, cuts=4) as cutter:
        with Glovebox(cutter.url, new_token("agent", space)) as client:
            events = list(client.execs.events(exec.exec_id))
        assert cutter.left < 4, "nothing was cut"
    assert [it.seq for it in events] == list(range(1, len(events) + 1))
    assert [it.status for it in events if it.kind == "state"][-1] == "succeeded"
    assert sum(it.last for it in events) == 1 and events[-1].last
    printed = b"".join(it.data for it in events if it.kind == "output")
    assert printed == b"".join(b"line %d\n" % number for number in range(1, 41))
    # The same again after the end, and from the middle.
    assert list(agent.execs.events(exec.exec_id)) == events
    assert list(agent.execs.events(exec.exec_id, after=events[3].seq)) == events[4:]


def test_bytes_that_are_no_text_arrive_as_they_are(agent: Glovebox) -> None:
    exec = agent.run("printf", r"\377\000x")
    assert agent.execs.stdout(exec.exec_id) == b"\xff\x00x"
    assert agent.execs.stdout(exec.exec_id, offset=1, limit=1) == b"\x00"
    printed = [it.data for it in agent.execs.events(exec.exec_id) if it.kind == "output"]
    assert b"".join(printed) == b"\xff\x00x"


def test_a_request_whose_answer_was_lost_runs_once(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    task = f"task-{uuid.uuid4().hex}"
    with Cutter(url, limit=100, cuts=2) as cutter:
        with Glovebox(cutter.url, new_token("agent", space)) as client:
            exec = client.run("sh", "-c", "echo x >> counted", project_id="once", task_id=task)
        assert cutter.left == 0
    assert exec.ok
    assert [it.exec_id for it in agent.execs.list(task_id=task)] == [exec.exec_id]
    assert agent.workspaces.read("once", "counted") == b"x\n"


def test_a_key_is_good_for_one_request(agent: Glovebox) -> None:
    body = request.body(request.argv(("true",)), {"client_id": "once"})
    call = calls.create_exec(body, wait=True)
    first = agent._send(call)
    assert agent._send(call) == first
    other = calls.create_exec({**body, "client_id": "twice"}, wait=True)
    other.headers["Idempotency-Key"] = call.headers["Idempotency-Key"]  # type: ignore[index]
    with pytest.raises(Conflict) as caught:
        agent._send(other)
    assert caught.value.code == "idempotency_conflict"
    with pytest.raises(Conflict, match="client id"):
        agent.run("true", client_id="once")


def test_cancel(agent: Glovebox) -> None:
    exec = agent.start("sleep", "60")
    agent.execs.cancel(exec.exec_id)
    ended = agent.execs.wait(exec.exec_id)
    assert ended.status == "canceled"
    assert agent.execs.cancel(exec.exec_id) == ended


def test_waiting_ends_before_the_exec_does(agent: Glovebox) -> None:
    exec = agent.start_shell("until [ -e gate ]; do sleep 0.02; done", project_id="gated")
    with pytest.raises(WaitTimeout):
        agent.execs.wait(exec.exec_id, timeout=0.2)
    assert agent.execs.get(exec.exec_id).status in ("queued", "running")
    agent.workspaces.write("gated", "gate", "")
    assert agent.execs.wait(exec.exec_id, timeout=60).ok


def test_close_cancels_what_this_client_began_and_nothing_else(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    token = new_token("agent", space)
    others = agent.start("sleep", "1")
    with Glovebox(url, token) as client:
        gone = client.start("sleep", "60")
        stays = client.start("sleep", "1")
        client.detach(stays)
    assert agent.execs.wait(gone.exec_id).status == "canceled"
    assert agent.execs.wait(stays.exec_id).ok and agent.execs.wait(others.exec_id).ok


def test_a_task_that_is_canceled_takes_its_exec_with_it(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    token = new_token("agent", space)

    async def work() -> None:
        async with AsyncGlovebox(url, token) as client:
            await client.run("sleep", "60", client_id="taken")

    async def main() -> None:
        task = asyncio.ensure_future(work())
        while True:
            try:
                await asyncio.to_thread(agent.execs.get, "taken")
                break
            except NotFound:
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 90))
    assert agent.execs.wait("taken").status == "canceled"


def test_the_async_client_does_the_same(
    url: str, space: str, new_token: Callable[[str, str], str], tmp_path: Path
) -> None:
    token = new_token("agent", space)

    async def main() -> None:
        async with AsyncGlovebox(url, token) as client:
            exec = await client.run_shell(
                "mkdir -p /workspace/artifacts; echo hi | tee /workspace/artifacts/a.txt"
            )
            assert exec.stdout == "hi\n"
            assert [it.path for it in exec.artifacts] == ["a.txt"]
            assert await client.execs.download(exec.exec_id, "a.txt", tmp_path / "a.txt") == 3
            kinds = [it.kind async for it in client.execs.events(exec.exec_id)]
            assert kinds[-1] == "state" and "output" in kinds
            many = [client.run("echo", str(number)) for number in range(8)]
            assert [it.stdout for it in await asyncio.gather(*many)] == [f"{n}\n" for n in range(8)]
            assert len([it async for it in client.execs.list(page_size=4)]) == 9

    asyncio.run(main())
    assert (tmp_path / "a.txt").read_text() == "hi\n"


def test_files_of_a_workspace(agent: Glovebox) -> None:
    agent.workspaces.write("files", "dir/a b%.bin", b"\x00\xff")
    assert agent.workspaces.read("files", "dir/a b%.bin") == b"\x00\xff"
    assert [it.name for it in agent.workspaces.files("files", "dir").entries] == ["a b%.bin"]
    assert [(it.name, it.type) for it in agent.workspaces.files("files").entries] == [
        ("dir", "directory")
    ]
    assert agent.run("cat", "dir/a b%.bin", project_id="files").ok
    assert [it.project_id for it in agent.workspaces.list()] == ["files"]
    measured = agent.workspaces.get("files")
    assert measured.complete and measured.files and measured.bytes
    agent.workspaces.remove("files", "dir/a b%.bin")
    with pytest.raises(NotFound):
        agent.workspaces.read("files", "dir/a b%.bin")
    agent.workspaces.delete("files")
    with pytest.raises(NotFound):
        agent.workspaces.get("files")


def test_a_workspace_in_use_stays(agent: Glovebox) -> None:
    exec = agent.start("sleep", "60", project_id="used")
    with pytest.raises(Conflict):
        agent.workspaces.delete("used")
    agent.execs.cancel(exec.exec_id)
    agent.execs.wait(exec.exec_id)

    def deleted() -> bool:
        try:
            agent.workspaces.delete("used")
        except Conflict:
            # Its record is there a moment before everything of it is gone.
            return False
        return True

    assert soon(deleted)


def test_another_space_is_not_there(
    agent: Glovebox, url: str, new_token: Callable[[str, str], str]
) -> None:
    exec = agent.run("true", project_id="secret")
    never = "e_" + "0" * 32
    with Glovebox(url, new_token("agent", "elsewhere")) as stranger:
        seen = []
        for exec_id in (exec.exec_id, never):
            for ask in (
                stranger.execs.get,
                stranger.execs.cancel,
                stranger.execs.stdout,
                stranger.execs.artifacts,
                stranger.execs.observation,
                lambda it: list(stranger.execs.events(it)),
            ):
                with pytest.raises(NotFound) as caught:
                    ask(exec_id)
                seen.append(str(caught.value))
        assert len(set(seen)) == 1
        with pytest.raises(NotFound):
            stranger.workspaces.get("secret")
        assert list(stranger.execs.list()) == [] and list(stranger.workspaces.list()) == []


def test_roles(
    url: str, space: str, admin: Glovebox, new_token: Callable[[str, str], str]
) -> None:
    with Glovebox(url, new_token("auditor", space)) as auditor:
        assert auditor.whoami().role == "auditor"
        with pytest.raises(Forbidden):
            auditor.run("true")
        assert auditor.audit.verify().sound
    with Glovebox(url, new_token("agent", space)) as agent:
        for refused in (agent.audit.verify, agent.settings.get, agent.metrics):
            with pytest.raises(Forbidden):
                refused()
        with pytest.raises(Forbidden):
            agent.tokens.create("mine", "admin")
    with Glovebox(url, "gb_wrong") as nobody:
        with pytest.raises(Unauthenticated):
            nobody.whoami()
        assert nobody.alive() and nobody.ready()
    assert admin.whoami().role == "admin" and "glovebox" in admin.metrics()


def test_policy_refuses_and_explains(agent: Glovebox) -> None:
    with pytest.raises(PolicyDenied) as caught:
        agent.run("true", memory="900G")
    assert caught.value.exec_id and caught.value.hints
    denied = agent.execs.get(caught.value.exec_id)
    assert denied.status == "policy_denied" and denied.error
    assert [it.status for it in agent.execs.events(denied.exec_id)] == ["policy_denied"]
    why = agent.explain("true", memory="900G")
    assert not why.allowed and why.code == "policy_denied" and why.reason
    assert agent.explain("true").allowed
    capped = agent.run("true", memory="900G", on_exceed="cap")
    assert capped.ok and [it.field for it in capped.capped] == ["memory"]


def test_the_ledger_has_it_all(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    exec = agent.run("true")
    with Glovebox(url, new_token("auditor", space)) as auditor:
        entries = list(auditor.audit.list(exec_id=exec.exec_id, page_size=1))
        assert exec.receipt and exec.receipt.hash == entries[0].hash
        assert [it.kind for it in entries][0] == "outcome" and entries[-1].kind == "planned"
        verified = auditor.audit.verify()
        assert verified.sound and verified.entries >= len(entries) and verified.problems == []
        assert auditor.audit.checkpoint().seq == verified.head.seq if verified.head else False
        assert auditor.audit.export().count(b"\n") >= len(entries)
        assert exec.exec_id.encode() in auditor.audit.export(format="ocsf")


def test_settings_change_while_the_server_runs(admin: Glovebox) -> None:
    before = admin.settings.get()
    assert before.settings["max_queued"] > 1 and before.ceiling == 16
    changed = admin.settings.change({"max_queued": 17}, version=before.version)
    try:
        assert changed.settings["max_queued"] == 17 and changed.version > before.version
        with pytest.raises(Conflict):
            admin.settings.change({"max_queued": 18}, version=before.version)
    finally:
        admin.settings.change({"max_queued": before.settings["max_queued"]})
    assert admin.settings.get().settings == before.settings


def test_a_token_is_shown_once_and_can_be_revoked(admin: Glovebox, url: str, space: str) -> None:
    new = admin.tokens.create("short", "agent", space_id=space, agent_id="robot")
    assert new.secret not in repr(new) and new.token.agent_id == "robot"
    with Glovebox(url, new.secret) as client:
        assert client.whoami() == new.token
        assert client.run("true").ids.agent_id == "robot"
        assert [it.token_id for it in admin.tokens.list(space_id=space)] == [new.token.token_id]
        assert admin.tokens.revoke(new.token.token_id).revoked_at
        assert list(admin.tokens.list(space_id=space)) == []
        with pytest.raises(Unauthenticated):
            client.whoami()


def test_a_kept_sandbox(agent: Glovebox, url: str, new_token: Callable[[str, str], str]) -> None:
    made = agent.sandboxes.create("agent", agent_id="ann", memory="64M")
    assert (made.lifetime, made.scope, made.state) == ("agent", "ann", "idle")
    assert made.extra == {} and made.created_at and made.config["backend"] == "native"
    with pytest.raises(Conflict):
        agent.sandboxes.create("agent", agent_id="ann", memory="64M")
    first = agent.run_shell("echo 1 > kept", sandbox=made.name).check()
    assert agent.run("cat", "kept", sandbox=made.sandbox_id).stdout == "1\n"
    same = agent.run("cat", "kept", lifetime="agent", agent_id="ann", memory="64M").check()
    assert {first.sandbox_id, same.sandbox_id} == {made.sandbox_id}
    assert agent.run("true").sandbox_id != made.sandbox_id
    assert agent.sandboxes.get(made.name).uses == 3
    assert [it.name for it in agent.sandboxes.list(agent_id="ann")] == [made.name]
    # It is given back a moment after the answer.
    assert soon(lambda: list(agent.sandboxes.list(state="busy")) == [])
    assert agent.sandboxes.explain("agent", agent_id="ann", memory="64M").next == "same"
    with Glovebox(url, new_token("agent", "elsewhere")) as stranger:
        for ask in (stranger.sandboxes.get, stranger.sandboxes.remove, stranger.sandboxes.recreate):
            with pytest.raises(NotFound):
                ask(made.sandbox_id)
        with pytest.raises(NotFound):
            stranger.run("true", sandbox=made.sandbox_id)
    assert agent.sandboxes.recreate(made.sandbox_id).state == "down"
    done = agent.sandboxes.recreate_many(agent_id="ann")
    assert [it.name for it in done.recreated] == [made.name] and done.failed == []
    with pytest.raises(Forbidden):
        agent.sandboxes.recreate_many(everything=True)
    assert agent.sandboxes.remove(made.name).sandbox_id == made.sandbox_id
    with pytest.raises(NotFound):
        agent.run("true", sandbox=made.name)


def test_the_async_client_keeps_sandboxes_too(
    url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    token = new_token("agent", space)

    async def main() -> None:
        async with AsyncGlovebox(url, token) as client:
            made = await client.sandboxes.create("session", session_id="talk")
            both = [client.run("true", lifetime="session", session_id="talk") for _ in range(4)]
            assert {it.sandbox_id for it in await asyncio.gather(*both)} == {made.sandbox_id}
            assert [it.uses async for it in client.sandboxes.list()] == [4]
            await client.sandboxes.remove(made.sandbox_id)

    asyncio.run(main())


def test_pool_and_backends_are_the_operators(admin: Glovebox, agent: Glovebox) -> None:
    assert admin.pool().enabled and admin.pool().extra == {}
    native = admin.backends()[0]
    assert (native.name, native.usable, native.extra) == ("native", True, {})
    assert all(it.evidence for it in native.guarantees)
    assert admin.sandboxes.prune().failed == []
    for refused in (agent.pool, agent.backends, agent.sandboxes.prune):
        with pytest.raises(Forbidden):
            refused()


def test_health(admin: Glovebox, agent: Glovebox) -> None:
    health = admin.health(probe=True)
    assert health.ok and health.probe_ok and health.workspace_root_native
    # A path of the host is nobody else's business.
    assert agent.health().workspace_root_native is None
    assert admin.openapi()["openapi"].startswith("3.")


def test_a_unix_socket(socket: str, space: str, new_token: Callable[[str, str], str]) -> None:
    with Glovebox(f"unix:{socket}", new_token("agent", space)) as client:
        assert client.run("echo", "hi").stdout == "hi\n"
