"""Sessions: where their reader is, what is expected of them, and what is left of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Callable, Optional

import httpx
import pytest

from glovebox import (
    ConnectionFailed,
    ExpectTimeout,
    NotFound,
    Patience,
    ServerError,
    SessionEnded,
    UnexpectedAnswer,
    WaitTimeout,
)
from glovebox.talk import NOTHING, Hearing, Place
from conftest import Pieces, Server, refusal, sent, session

PATH = "/v1/sessions/s"
OUTPUT, STREAM, KILL = f"{PATH}/output", f"{PATH}/stream", f"{PATH}/kill"


def info(state: str = "running", **fields: Any) -> dict[str, Any]:
    status = {"exited": "succeeded", "killed": "canceled"}.get(state, "running")
    return {"session_id": "s", "client_id": "mine", "state": state, "status": status, **fields}


def piece(offset: int, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"offset": offset, "next": offset + len(content)}
    try:
        return {**found, "content": content.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {**found, "content": base64.b64encode(content).decode(), "encoding": "base64"}


class Program:
    """What a program put out until now, as the server tells it; more at each question."""

    def __init__(self, *more: bytes, stderr: bytes = b"", ends: bool = False) -> None:
        self._more = list(more)
        self._said = {"stdout": b"", "stderr": stderr}
        self._ends = ends
        #: The first byte that is kept.
        self.start = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self._more:
            self._said["stdout"] += self._more.pop(0)
        over = self._ends and not self._more
        asked, found = request.url.params, {}
        for stream, said in self._said.items():
            first = max(min(int(asked[stream]), len(said)), self.start if stream == "stdout" else 0)
            found[stream] = piece(first, said[first : first + int(asked.get("limit", 1 << 16))])
        extents: dict[str, Any] = {name: {"start": 0, "end": len(said)} for name, said in self._said.items()}
        state = info("exited", exit_code=3, **extents) if over else info(**extents)
        return httpx.Response(200, json={"session": state, "complete": over, **found})


def event(offset: int, content: bytes, stream: str = "stdout", last: str = "0-0") -> bytes:
    data = json.dumps({"stream": stream, **piece(offset, content)})
    return f"id: {last}\nevent: output\ndata: {data}\n\n".encode()


END = f"id: 9-9\nevent: end\ndata: {json.dumps(info('exited', exit_code=0))}\n\n".encode()


def stream(*pieces: bytes, cut: bool = False) -> Callable[[httpx.Request], httpx.Response]:
    error = httpx.ReadError("cut") if cut else None
    return lambda _: httpx.Response(200, stream=Pieces(*pieces, cut=error))


def asked(server: Server, *names: str) -> list[tuple[Optional[str], ...]]:
    return [tuple(it.url.params.get(name) for name in names) for it in server.seen]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that stands until a test moves it."""
    now = [0.0]
    monkeypatch.setattr("glovebox.talk.now", lambda: now[0])
    yield now


def test_a_stream_that_is_cut_goes_on_where_each_of_its_streams_was(
    client: Any, server: Server
) -> None:
    server.on(
        "GET",
        STREAM,
        # Both have the id after both: who was cut off in between has not heard the second.
        stream(event(0, b"ab", last="2-3"), event(0, b"err", "stderr", "2-3")[:30], cut=True),
        refusal(503, "busy"),
        stream(b": still here\n\n", event(0, b"err", "stderr", "2-3")),
        # What was heard comes again, with more.
        stream(event(0, b"abc"), event(7, b"\xff\x00"), cut=True),
        stream(b"event: news\ndata: {}\n\n", END),
    )
    followed = session(client)
    heard = [(it.stream, it.data, it.next) for it in followed]
    assert heard == [
        ("stdout", b"ab", 2),
        ("stderr", b"err", 3),
        ("stdout", b"c", 3),
        ("stdout", b"\xff\x00", 9),
    ]
    assert asked(server, "stdout", "stderr") == [
        ("0", "0"),
        ("2", "0"),
        ("2", "0"),
        ("2", "3"),
        ("9", "3"),
    ]
    assert (followed.stdout, followed.stderr, followed.missed) == (9, 3, 4)
    assert (followed.info.state, followed.info.ok) == ("exited", True)


def test_a_reader_that_stops_goes_on_there(client: Any, server: Server) -> None:
    server.on("GET", STREAM, stream(event(0, b"a"), event(1, b"b"), END))
    server.on("GET", OUTPUT, Program(b"ab", ends=True))
    followed = session(client)
    for it in followed:
        assert it.text == "a"
        break
    assert followed.read().stdout.text == "b"


def test_a_stream_that_is_always_cut_is_given_up(
    client: Any, server: Server, sleeps: list[float]
) -> None:
    server.on("GET", STREAM, stream(cut=True))
    with pytest.raises(ConnectionFailed, match="cut"):
        list(session(client))
    assert len(server.seen) == 5 and len(sleeps) == 4


def test_an_event_that_makes_no_sense_is_said() -> None:
    for text in (
        b"data: {}\n\n",
        b"event: output\ndata: nope\n\n",
        b"event: output\ndata: {}\n\n",
        b'event: output\ndata: {"stream": "stdout", "next": 1, "encoding": "rot13"}\n\n',
        b'event: output\ndata: {"stream": "stdout", "next": 1, "content": "?", '
        b'"encoding": "base64"}\n\n',
    ):
        with pytest.raises(UnexpectedAnswer):
            list(Hearing(Place(0, 0), Patience()).feed(text))


def test_reading_goes_on_where_it_was_and_waits_for_something(
    client: Any, server: Server, clock: list[float]
) -> None:
    server.on("GET", OUTPUT, Program(b"", b"", b"one", b"two", stderr=b"err"))
    reader = session(client)
    assert reader.read().stderr.text == "err"
    # An answer may come before its time.
    assert reader.read(wait=100).stdout.text == "one"
    assert reader.read(limit=2).stdout.text == "tw"
    clock[0] = 200
    assert reader.read().stdout.text == "o"
    assert asked(server, "stdout", "stderr", "wait_ms", "limit") == [
        ("0", "0", "0", None),
        ("0", "3", "30000", None),
        ("0", "3", "30000", None),
        ("3", "3", "0", "2"),
        ("5", "3", "0", None),
    ]


def test_what_was_not_kept_is_counted(client: Any, server: Server) -> None:
    program = Program(b"0123456789")
    program.start = 6
    server.on("GET", OUTPUT, program)
    reader = session(client)
    assert reader.read().stdout.text == "6789"
    assert (reader.stdout, reader.missed) == (10, 6)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_what_is_expected_is_found_wherever_it_is_cut(
    client: Any, server: Server, size: int
) -> None:
    whole = "caf\u00e9 \u65e5\u672c: 42.\n".encode() + b"\xff then $ "
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    server.on("GET", OUTPUT, Program(*parts))
    expecting = session(client)
    found = expecting.expect(re.compile(r"(\d+)\."))
    assert (found.before, found.text) == ("caf\u00e9 \u65e5\u672c: ", "42.")
    assert found.match and found.match[1] == "42"
    assert expecting.stdout == whole.index(b"\n")
    found = expecting.expect("$ ")
    assert (found.before, found.text, found.match) == ("\n\ufffd then ", "$ ", None)
    assert expecting.stdout == len(whole)


def test_the_other_stream_neither_ends_a_wait_nor_is_read(client: Any, server: Server) -> None:
    server.on("GET", OUTPUT, Program(b"", b"out", stderr=b"a lot"))
    expecting = session(client)
    assert expecting.expect("lot", stream="stderr").before == "a "
    assert expecting.expect("out").before == ""
    assert (expecting.stdout, expecting.stderr) == (3, 5)
    first, second = asked(server, "stdout", "stderr")
    assert (first, second) == ((str(NOTHING), "0"), ("0", str(NOTHING)))


def test_what_lies_apart_is_not_one_text(client: Any, server: Server) -> None:
    program = Program(b"ab", b"cdefgh", b"ef")

    def later(request: httpx.Request) -> httpx.Response:
        answer = program(request)
        program.start = 6
        return answer

    server.on("GET", OUTPUT, later)
    expecting = session(client)
    found = expecting.expect("ef")
    assert (found.before, expecting.stdout, expecting.missed) == ("gh", 10, 4)


def test_only_so_much_is_looked_through(
    client: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glovebox.talk._LOOK_BACK", 8)
    server.on("GET", OUTPUT, Program(b"first......", b"....", b"last", ends=True))
    expecting = session(client)
    assert expecting.expect("last").before == "...."
    assert (expecting.stdout, expecting.missed) == (19, 0)


def test_what_does_not_appear_in_time_is_still_to_be_read(
    client: Any, server: Server, clock: list[float]
) -> None:
    program = Program(b"one ", b"two ", b"three ")

    def slow(request: httpx.Request) -> httpx.Response:
        clock[0] += 3
        return program(request)

    server.on("GET", OUTPUT, slow)
    expecting = session(client)
    with pytest.raises(ExpectTimeout, match="'four' within 5 s, but 'one two '") as caught:
        expecting.expect("four", timeout=5)
    assert isinstance(caught.value, TimeoutError)
    assert (caught.value.session_id, caught.value.seen) == ("s", "one two ")
    assert expecting.stdout == 0
    assert expecting.expect("three", timeout=5).before == "one two "
    # What is there is looked through, also if there is no time to wait for more.
    assert expecting.expect(" ", timeout=0).text == " "
    assert [it for (it,) in asked(server, "wait_ms")] == ["5000", "2000", "5000", "0"]


def test_what_puts_out_more_and_more_ends_no_search_late(
    client: Any, server: Server, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glovebox.talk._AT_ONCE", 4)
    server.on("GET", OUTPUT, Program(*[b"12345678"] * 100))
    clock[0] = 9
    with pytest.raises(ExpectTimeout):
        session(client).expect("x", timeout=0)
    # Eight bytes were there when the time was over.
    assert len(server.seen) == 2


def test_an_end_before_it_appears_is_told(client: Any, server: Server) -> None:
    server.on("GET", OUTPUT, Program(b"x" * 300, b"bye\n", ends=True))
    expecting = session(client)
    with pytest.raises(SessionEnded, match=r"`exited` with exit code 3.*'\$ ', but …'xxx") as caught:
        expecting.expect("$ ")
    assert caught.value.info.exit_code == 3 and caught.value.seen == "x" * 300 + "bye\n"
    assert expecting.stdout == 0 and expecting.ended


@pytest.mark.parametrize("cue", ["", b"bytes", 7, ["a", "b"], re.compile(b"a")])
def test_what_cannot_be_expected_is_refused(client: Any, server: Server, cue: Any) -> None:
    with pytest.raises(TypeError, match="some text, or a pattern"):
        session(client).expect(cue)
    with pytest.raises(ValueError, match="`stdout` or `stderr`"):
        session(client).expect("a", stream="stdin")
    assert server.seen == []


def test_waiting_reads_nothing(client: Any, server: Server) -> None:
    server.on("GET", OUTPUT, Program(b"a", b"b", b"c", ends=True))
    waiting = session(client)
    assert waiting.wait().exit_code == 3
    assert (waiting.stdout, waiting.missed, waiting.ended) == (0, 0, True)
    nothing = str(NOTHING)
    assert asked(server, "stdout", "stderr", "wait_ms") == [(nothing, nothing, "30000")] * 3


def test_waiting_ends_when_the_caller_says_so(
    client: Any, server: Server, clock: list[float]
) -> None:
    program = Program(b"a")

    def slow(request: httpx.Request) -> httpx.Response:
        clock[0] += 3
        return program(request)

    server.on("GET", OUTPUT, slow)
    with pytest.raises(WaitTimeout, match="`s` did not end within 5 s"):
        session(client).wait(timeout=5)
    assert [it for (it,) in asked(server, "wait_ms")] == ["5000", "2000"]


def test_a_start_says_what_is_wanted(client: Any, server: Server) -> None:
    told = {"session": info("exited"), "complete": True}
    server.on("POST", "/v1/sessions", httpx.Response(200, json=told))
    started = client.sessions.start(
        "bash", size=(100, 30), session_time=60, policy={"network": "none"}, agent_id="ann"
    )
    assert started.session_id == "s" and "'s', 'exited'" in repr(started)
    body = sent(server.seen[0])
    assert body["exec"] == {"kind": "argv", "command": "bash", "args": []}
    assert body["session"] == {"size": {"columns": 100, "rows": 30}}
    assert body["policy_overrides"] == {"network": "none", "session_time": 60}
    assert body["task_ref"] == {"agent_id": "ann"} and body["client_id"].startswith("py-")
    with pytest.raises(TypeError, match="`session_time`"):
        client.sessions.start("bash", timeout=60)
    with pytest.raises(TypeError, match="unknown options: stdin"):
        client.sessions.start("bash", stdin="ls")
    with pytest.raises(TypeError, match="no command"):
        client.sessions.start()
    assert len(server.seen) == 1


def test_sessions_are_found(client: Any, server: Server) -> None:
    both = {"sessions": [info(), info("killed", session_id="t")]}
    server.on("GET", "/v1/sessions", httpx.Response(200, json=both), httpx.Response(200, json=[]))
    server.on("GET", PATH, httpx.Response(200, json=info()))
    assert [(it.session_id, it.ended) for it in client.sessions.list()] == [
        ("s", False),
        ("t", True),
    ]
    with pytest.raises(UnexpectedAnswer):
        client.sessions.list()
    found = client.sessions.get("s", stdout=5, stderr=6)
    assert (found.stdout, found.stderr, found.info.exec_id) == (5, 6, "s")
    with pytest.raises(NotFound):
        client.sessions.get("other")


def test_what_is_typed_is_typed_once(client: Any, server: Server) -> None:
    server.on("POST", f"{PATH}/input", refusal(503, "busy"), httpx.Response(200, json=info()))
    session(client).send("a")
    first, second = server.seen
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    session(client).send(b"\xff\x00")
    assert sent(server.seen[2]) == {"base64": "/wA="}


def killed(server: Server) -> int:
    return server.calls().count(f"POST {KILL}")


def test_the_end_of_a_block_kills(client: Any, server: Server) -> None:
    server.on("POST", KILL, httpx.Response(200, json=info("killed")))
    with session(client) as running:
        pass
    assert killed(server) == 1 and running.info.state == "killed"
    with pytest.raises(ZeroDivisionError), session(client):
        raise ZeroDivisionError
    assert killed(server) == 2
    with session(client) as left:
        left.detach()
    with session(client, state="exited"):
        pass
    assert killed(server) == 2


def test_the_end_of_a_block_says_what_it_could_not_kill(client: Any, server: Server) -> None:
    server.on("POST", KILL, refusal(404, "not_found"), refusal(500, "internal"))
    with session(client):
        pass  # It was removed meanwhile.
    with pytest.raises(ServerError), session(client):
        pass
    with pytest.warns(ResourceWarning, match="`s` may still run"):
        with pytest.raises(ZeroDivisionError), session(client):
            raise ZeroDivisionError


def test_close_ends_what_this_client_began_and_still_runs(
    connect: Callable[..., Any], server: Server
) -> None:
    def begun(request: httpx.Request) -> httpx.Response:
        name = sent(request)["client_id"]
        state = info("exited" if name == "over" else "running", client_id=name, session_id=f"e_{name}")
        return httpx.Response(201, json={"session": state})

    server.on("POST", "/v1/sessions", begun)
    server.on("GET", PATH, httpx.Response(200, json=info()))
    for name in ("a", "lost"):
        server.on("POST", f"/v1/execs/{name}/cancel", httpx.Response(200, json={}))
        server.on("POST", f"/v1/execs/e_{name}/cancel", httpx.Response(200, json={}))
    with connect() as client:
        client.sessions.start("cat", client_id="a")
        client.sessions.start("cat", client_id="over")
        client.sessions.start("cat", client_id="left").detach()
        client.sessions.get("s")
        seen = client.sessions.start("cat", client_id="b")
        path = "/v1/sessions/e_b/kill"
        ended = info("killed", client_id="b", session_id="e_b")
        server.on("POST", path, httpx.Response(200, json=ended))
        seen.kill()
        server.on("POST", "/v1/sessions", refusal(500, "internal"))
        # Nothing is known of this one but the name that it was given.
        with pytest.raises(ServerError):
            client.sessions.start("cat", client_id="lost")
        server.on("POST", "/v1/sessions", refusal(403, "policy_denied"))
        with pytest.raises(Exception, match="policy_denied"):
            client.sessions.start("cat", client_id="refused")
    canceled = [it.url.path.split("/")[3] for it in server.seen if it.url.path.endswith("cancel")]
    assert canceled == ["e_a", "lost"]
