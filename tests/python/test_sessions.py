"""Sessions of both clients, against a server that runs."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any, Callable

import pytest

from glovebox import (
    AsyncGlovebox,
    Conflict,
    ExpectTimeout,
    Glovebox,
    InvalidArgument,
    NotFound,
    SessionEnded,
    SessionOptions,
    WaitTimeout,
)
from conftest import soon
from wire import Cutter

# A shell without a start-up file, with a prompt that is known, and without marks around what it
# reads.
BASH = ("bash", "--norc", "--noprofile")
PLAIN: SessionOptions = {"terminal": True, "env": {"PS1": "ready> ", "TERM": "dumb"}}
# What anything here may need on a loaded machine.
PATIENCE = 60.0


def test_a_shell_keeps_its_state_and_its_record_is_an_execs(agent: Glovebox) -> None:
    with agent.sessions.start(*BASH, **PLAIN) as shell:
        shell.expect("ready> ")
        shell.submit("cd /tmp; name=kept")
        shell.expect("ready> ")
        shell.submit("echo $name in $PWD")
        found = shell.expect(re.compile(r"^kept in (\S+)\r$", re.MULTILINE), timeout=PATIENCE)
        assert found.match and found.match[1] == "/tmp"
        assert found.before == "echo $name in $PWD\r\n" and found.text == "kept in /tmp\r"
        assert shell.info.state == "running" and not shell.ended
        assert [it.session_id for it in agent.sessions.list()] == [shell.session_id]
        shell.submit("exit 3")
        info = shell.wait(timeout=PATIENCE)
    assert (info.state, info.exit_code, info.ended, info.ok) == ("exited", 3, True, False)
    record = agent.execs.get(info.exec_id)
    assert (record.status, record.exit_code, record.receipt) == ("failed", 3, info.receipt)
    assert record.session and record.session.terminal and record.session.terminal.columns == 80
    assert info.extra == {} and info.terminal and info.terminal.extra == {}
    # What was not read is still there, and what was read can be read again.
    assert "exit 3" in shell.read().stdout.text
    again = agent.sessions.get(shell.session_id).read()
    assert again.complete and again.stdout.next == shell.stdout and shell.missed == 0
    with pytest.raises(Conflict, match="exited with 3"):
        shell.submit("ls")
    assert shell.kill().exit_code == 3
    shell.remove()
    # Its record stays.
    assert agent.sessions.list() == [] and agent.execs.get(info.exec_id).status == "failed"


def test_pipes_are_apart_and_text_appears_on_one_of_them(agent: Glovebox) -> None:
    script = "echo out; echo err >&2; while read x; do echo got $x; echo no $x >&2; done; echo over"
    with agent.sessions.start("sh", "-c", script) as session:
        assert session.info.terminal is None
        assert session.expect("err\n", stream="stderr", timeout=PATIENCE).before == ""
        with pytest.raises(Conflict, match="no terminal"):
            session.resize(80, 24)
        session.send("one\ntwo\n")
        # What is on the other stream is not read with it.
        assert session.expect("got two\n", timeout=PATIENCE).before == "out\ngot one\n"
        session.send(b"three\n")
        session.close_input()
        assert session.wait(timeout=PATIENCE).exit_code == 0
        output = session.read()
        assert output.stdout.text == "got three\nover\n"
        assert output.stderr.text == "no one\nno two\nno three\n" and output.complete
        with pytest.raises(Conflict, match="takes nothing any more"):
            session.keys("C-c")


def test_a_read_waits_and_takes_parts(agent: Glovebox) -> None:
    with agent.sessions.start("sh", "-c", "while read x; do printf %s $x; done") as session:
        assert session.read().stdout.data == b""
        session.send("abcdef\n")
        assert session.read(wait=PATIENCE, limit=4).stdout.text == "abcd"
        assert session.read(wait=PATIENCE).stdout.text == "ef"
        assert session.stdout == 6
        # From there on, in another process for instance.
        other = agent.sessions.get(session.session_id, stdout=5)
        assert other.read().stdout.text == "f"


def test_bytes_that_are_no_text_arrive_as_they_are(agent: Glovebox) -> None:
    with agent.sessions.start("cat") as session:
        session.send(b"\xff\x00\xc3")
        session.send(b"\xa9 end\n")
        found = session.expect(re.compile("\u00e9 end"), timeout=PATIENCE)
        assert found.before == "\ufffd\x00" and session.stdout == 8
        session.close_input()
        session.wait(timeout=PATIENCE)
        again = agent.sessions.get(session.session_id)
        assert b"".join(it.data for it in again) == b"\xff\x00\xc3\xa9 end\n"


def test_a_terminal_is_resized_and_shown(agent: Glovebox) -> None:
    large: SessionOptions = {**PLAIN, "size": (100, 30)}
    with agent.sessions.start(*BASH, **large) as shell:
        shell.submit("stty size")
        shell.expect("30 100\r\n", timeout=PATIENCE)
        assert shell.resize(90, 20).terminal == shell.screen().size
        shell.submit("stty size")
        shell.expect("20 90\r\n", timeout=PATIENCE)
        screen = shell.screen()
        assert (len(screen.lines), screen.size.columns, screen.extra) == (20, 90, {})
        assert "30 100\nready> stty size\n20 90" in screen.text and not screen.alternate
        interrupts: list[Callable[[], object]] = [
            lambda: shell.keys("C-c"),
            lambda: shell.signal("INT"),
        ]
        for interrupt in interrupts:
            # It says so where it is in the foreground already.
            shell.submit("sh -c 'echo be''gun; exec sleep 1000'")
            shell.expect("begun\r\n", timeout=PATIENCE)
            interrupt()
            shell.expect("ready> ", timeout=PATIENCE)
        shell.paste("echo past")
        shell.send("ed\r")
        shell.expect("\r\npasted\r\n", timeout=PATIENCE)
        with pytest.raises(InvalidArgument):
            shell.keys("NoSuchKey")
        with pytest.raises(InvalidArgument):
            shell.signal("NOSUCH")


def test_what_does_not_appear_is_told_and_is_still_to_be_read(agent: Glovebox) -> None:
    with agent.sessions.start("sh", "-c", "echo one; read x; echo two; exit 4") as session:
        session.expect("one", timeout=PATIENCE)
        with pytest.raises(ExpectTimeout, match="'two'") as late:
            session.expect("two", timeout=0.2)
        assert isinstance(late.value, TimeoutError) and late.value.seen == "\n"
        with pytest.raises(WaitTimeout, match="still runs"):
            session.wait(timeout=0.2)
        session.submit("")
        with pytest.raises(SessionEnded, match="exit code 4") as over:
            session.expect("three", timeout=PATIENCE)
        assert over.value.seen == "\ntwo\n" and over.value.info.exit_code == 4
        assert session.expect("two\n").before == "\n"


def test_output_comes_once_also_over_a_connection_that_is_cut(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    script = "for i in $(seq 40); do read x; echo line $i; echo err $i >&2; done; exit 7"
    session = agent.sessions.start("sh", "-c", script)
    printed = {"stdout": b"", "stderr": b""}
    session.send("\n")
    with Cutter(url, limit=1500, cuts=6) as cutter:
        with Glovebox(cutter.url, new_token("agent", space)) as client:
            heard = client.sessions.get(session.session_id)
            for piece in heard:
                printed[piece.stream] += piece.data
                assert len(printed[piece.stream]) == piece.next
                # The next line is asked for when this one was heard.
                if piece.stream == "stdout" and not printed["stdout"].endswith(b"line 40\n"):
                    session.send("\n")
            assert list(heard) == []
        assert cutter.left < 6, "nothing was cut"
    numbers = range(1, 41)
    assert printed["stdout"] == b"".join(b"line %d\n" % number for number in numbers)
    assert printed["stderr"] == b"".join(b"err %d\n" % number for number in numbers)
    assert (heard.info.state, heard.info.exit_code, heard.missed) == ("exited", 7, 0)


def test_every_end_is_told_as_what_it_was(agent: Glovebox) -> None:
    def end(*argv: str, **options: Any) -> tuple[Any, ...]:
        with agent.sessions.start(*argv, **options) as session:
            info = session.wait(timeout=PATIENCE)
        return info.state, info.exit_code, info.signal, info.limit_hit

    assert end("sh", "-c", "setsid sleep 1000 & exit 4") == ("exited", 4, None, None)
    assert end("sh", "-c", "kill -9 $$") == ("signaled", None, 9, None)
    assert end("sleep", "1000", session_time=0.5)[0::3] == ("timed_out", "wall")
    assert end("sleep", "1000", idle_timeout="300ms")[0::3] == ("timed_out", "idle")
    assert end("no-such-program")[:2] == ("exited", 127)


def test_a_session_is_killed_at_the_end_of_its_block(agent: Glovebox) -> None:
    with agent.sessions.start("sleep", "1000", yield_ms=0) as session:
        assert session.info.state == "running"
    assert session.info.state == "killed"
    assert agent.sessions.get(session.session_id).info.state == "killed"
    with pytest.raises(ZeroDivisionError):
        with agent.sessions.start("sleep", "1000", yield_ms=0) as session:
            raise ZeroDivisionError
    assert session.info.state == "killed"
    with agent.sessions.start("sleep", "1000", yield_ms=0) as session:
        with pytest.raises(Conflict, match="has not ended"):
            session.remove()
        session.detach()
    assert session.refresh().state == "running"
    session.kill()


def test_closing_a_client_ends_the_sessions_that_it_began(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    with Glovebox(url, new_token("agent", space)) as client:
        gone = client.sessions.start("sleep", "1000", yield_ms=0)
        stays = client.sessions.start("sleep", "1000", yield_ms=0)
        stays.detach()
        others = client.sessions.get(agent.sessions.start("cat", yield_ms=0).session_id)
    ended = agent.sessions.get(gone.session_id).wait(timeout=PATIENCE)
    assert ended.state == "killed" and ended.status == "canceled"
    for session_id in (stays.session_id, others.session_id):
        with agent.sessions.get(session_id) as session:
            assert session.info.state == "running"


def test_an_agent_does_not_see_anothers(admin: Glovebox, url: str, space: str) -> None:
    def secret() -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        return admin.tokens.create(name, "agent", space_id=space).secret

    with Glovebox(url, secret()) as owner, Glovebox(url, secret()) as other:
        with owner.sessions.start(*BASH, **PLAIN) as session:
            with pytest.raises(NotFound):
                other.sessions.get(session.session_id)
            assert other.sessions.list() == []
            # Also one that it knows of.
            theirs = type(session)(other, session.info)
            for ask in (
                theirs.refresh,
                theirs.read,
                theirs.screen,
                theirs.close_input,
                theirs.kill,
                theirs.remove,
                lambda: theirs.submit("id"),
                lambda: theirs.resize(80, 24),
                lambda: theirs.signal("KILL"),
                lambda: theirs.expect("ready> "),
                lambda: list(theirs),
            ):
                with pytest.raises(NotFound):
                    ask()
            session.submit("echo still here")
            session.expect("\r\nstill here", timeout=PATIENCE)


def test_the_async_client_does_the_same(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    token = new_token("agent", space)

    async def one(client: AsyncGlovebox, number: int) -> str:
        async with await client.sessions.start(*BASH, **PLAIN) as shell:
            await shell.expect("ready> ", timeout=PATIENCE)
            await shell.submit(f"n={number}; echo $((n * n)).")
            found = await shell.expect(re.compile(r"(\d+)\."), timeout=PATIENCE)
            await shell.submit("exit")
            text = "".join([piece.text async for piece in shell])
            assert text.endswith("exit\r\n") and shell.ended
            return found.match[1] if found.match else ""

    async def main() -> list[str]:
        async with AsyncGlovebox(url, token) as client:
            squares = await asyncio.gather(*(one(client, number) for number in range(4)))
            waits = await client.sessions.start("sleep", "1000", yield_ms=0)
            task = asyncio.ensure_future(waits.wait())
            await waits.kill()
            assert (await task).state == "killed"
            return squares

    assert asyncio.run(main()) == ["0", "1", "4", "9"]


def test_a_task_that_is_canceled_takes_its_session_with_it(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    token = new_token("agent", space)

    async def main() -> None:
        begun = asyncio.Event()

        async def work() -> None:
            async with AsyncGlovebox(url, token) as client:
                async with await client.sessions.start("cat", client_id="taken", yield_ms=0):
                    begun.set()
                    await asyncio.Event().wait()

        task = asyncio.ensure_future(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 90))
    assert agent.sessions.get("taken").info.state == "killed"


def test_a_flood_is_read_on_where_something_is_left(agent: Glovebox) -> None:
    flood = "for i in $(seq 200000); do echo 0123456789012345678901234567890123456789; done; echo over"
    with agent.sessions.start("sh", "-c", flood, yield_ms=0) as session:
        end = session.wait(timeout=PATIENCE).stdout.end
        assert end == 200000 * 41 + 5
        found = session.expect("over\n", timeout=PATIENCE)
        assert session.stdout == end and len(found.before) <= 1 << 20
        assert session.missed > 0
    assert soon(lambda: agent.sessions.get(session.session_id).ended)
