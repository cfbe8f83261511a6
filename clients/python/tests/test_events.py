"""Streams that are cut, and execs that are waited for."""

from __future__ import annotations

import json
from typing import Any, Callable

import httpx
import pytest

from glovebox import (
    ConnectionFailed,
    Expired,
    Patience,
    UnexpectedAnswer,
    WaitTimeout,
    stream as streams,
)
from glovebox.stream import Follow, Lines
from conftest import Pieces, Server, record, refusal

EVENTS = "/v1/execs/mine/events"
ID = record()["exec_id"]


def event(seq: int, kind: str, **data: Any) -> bytes:
    body = {"seq": seq, "at": "2026-11-15T22:11:08.447203367Z", **data}
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(body)}\n\n".encode()


def output(seq: int, text: str) -> bytes:
    return event(seq, "output", stream="stdout", text=text)


def stream(*pieces: bytes, cut: bool = False) -> Callable[[httpx.Request], httpx.Response]:
    error = httpx.ReadError("cut") if cut else None
    return lambda _: httpx.Response(200, stream=Pieces(*pieces, cut=error))


def after(server: Server) -> list[str]:
    return [request.url.params["after"] for request in server.seen if "after" in request.url.params]


def test_a_stream_that_is_cut_goes_on_where_it_was(client: Any, server: Server) -> None:
    last = event(5, "state", status="succeeded", exit_code=0)
    server.on(
        "GET",
        EVENTS,
        stream(event(1, "state", status="running"), output(2, "a"), cut=True),
        stream(b": still here\n\n", cut=True),
        refusal(503, "busy"),
        # What was seen comes again, and half of another one.
        stream(output(2, "a"), output(3, "b"), output(4, "c")[:20], cut=True),
        stream(output(4, "c"), last),
    )
    seen = list(client.execs.events("mine"))
    assert [(it.seq, it.kind, it.text) for it in seen] == [
        (1, "state", ""),
        (2, "output", "a"),
        (3, "output", "b"),
        (4, "output", "c"),
        (5, "state", ""),
    ]
    assert seen[-1].status == "succeeded" and seen[-1].extra == {"exit_code": 0}
    assert after(server) == ["0", "2", "2", "2", "3"]


def test_an_end_without_the_last_event_is_no_end(client: Any, server: Server) -> None:
    server.on(
        "GET", EVENTS, stream(output(1, "a")), stream(event(2, "state", status="canceled"))
    )
    assert [it.seq for it in client.execs.events("mine")] == [1, 2]


def test_a_stream_that_is_always_cut_is_given_up(
    client: Any, server: Server, sleeps: list[float]
) -> None:
    server.on("GET", EVENTS, stream(cut=True))
    with pytest.raises(ConnectionFailed, match="cut"):
        list(client.execs.events("mine"))
    assert len(server.seen) == 5 and len(sleeps) == 4


def test_what_was_kept_for_its_time_is_expired(client: Any, server: Server) -> None:
    server.on("GET", EVENTS, refusal(410, "expired"))
    with pytest.raises(Expired):
        list(client.execs.events("mine", after=7))
    assert after(server) == ["7"]


def test_bytes_that_are_no_text_arrive_as_they_are(client: Any, server: Server) -> None:
    raw = event(1, "output", stream="stderr", base64="/wA=")
    server.on("GET", EVENTS, stream(raw, event(2, "state", status="failed")))
    first = next(client.execs.events("mine"))
    assert (first.stream, first.data, first.text) == ("stderr", b"\xff\x00", "\ufffd\x00")
    assert first.at.microsecond == 447203


def test_lines_may_be_cut_anywhere() -> None:
    whole = b": hello\r\n\r\n" + output(1, "\u2028x\u00e9\n") + b"retry: 5\n\n" + output(2, "b")
    for size in range(1, len(whole)):
        lines = Lines(streams.event)
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        found = [it for piece in pieces for it in lines.feed(piece)]
        assert [(it.seq, it.text) for it in found] == [(1, "\u2028x\u00e9\n"), (2, "b")]


def test_an_event_that_makes_no_sense_is_said() -> None:
    for text in (b"data: 1\n\n", b"id: 1\ndata: nope\n\n", b"id: x\ndata: {}\n\n"):
        with pytest.raises(UnexpectedAnswer):
            list(Lines(streams.event).feed(text))


def test_a_run_outlasts_the_servers_patience(client: Any, server: Server) -> None:
    server.on("POST", "/v1/execs", httpx.Response(202, json=record("running")))
    server.on(
        "GET",
        f"/v1/execs/{ID}",
        httpx.Response(200, json=record("running")),
        httpx.Response(200, json=record("failed", exit_code=3)),
    )
    server.on("GET", f"/v1/execs/{ID}/events", stream(event(1, "state", status="failed")))
    exec = client.run("sleep", "700")
    assert (exec.status, exec.exit_code) == ("failed", 3)


def test_waiting_for_what_has_ended_asks_once(client: Any, server: Server) -> None:
    server.on("GET", "/v1/execs/mine", httpx.Response(200, json=record("lost")))
    assert client.execs.wait("mine").status == "lost"
    assert len(server.seen) == 1


def test_waiting_ends_when_the_caller_says_so(
    client: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def silent(_: httpx.Request) -> httpx.Response:
        now[0] += 3
        raise httpx.ReadTimeout("nothing came")

    monkeypatch.setattr("glovebox.stream.now", lambda: now[0])
    server.on("GET", "/v1/execs/mine", httpx.Response(200, json=record("running")))
    server.on("GET", f"/v1/execs/{ID}/events", silent)
    with pytest.raises(WaitTimeout) as caught:
        client.execs.wait("mine", timeout=5)
    assert isinstance(caught.value, TimeoutError) and caught.value.exec_id == ID
    # It goes on, and is canceled when the client is closed only if this client began it.
    assert not [request for request in server.seen if request.method == "POST"]


def test_a_connection_may_not_be_silent_for_longer_than_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("glovebox.stream.now", lambda: now[0])
    follow = Follow("mine", 0, Patience(), 60.0)
    assert follow.open() == 45
    now[0] = 30
    assert not follow.enough()
    now[0] = 45
    assert follow.enough() and follow.lost(None) == 0
    assert follow.open() == 15
    now[0] = 61
    with pytest.raises(WaitTimeout):
        follow.enough()


def test_a_quiet_exec_is_followed_for_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("glovebox.stream.now", lambda: now[0])
    follow = Follow("mine", 0, Patience())
    for _ in range(50):
        follow.open()
        now[0] += 60
        assert follow.lost(ConnectionFailed("a proxy cut it")) <= 30
