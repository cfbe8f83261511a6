"""Workspaces that are watched over connections that are cut."""

from __future__ import annotations

import json
from typing import Any, Callable

import httpx
import pytest

from glovebox import ConnectionFailed, NotFound, Patience, UnexpectedAnswer
from glovebox.watch import Watching
from conftest import Pieces, Server, refusal

WATCH = "/v1/workspaces/demo/watch"


def event(seq: int, name: str, **data: Any) -> bytes:
    return f"id: {seq}\nevent: {name}\ndata: {json.dumps({'seq': seq, **data})}\n\n".encode()


def change(seq: int, kind: str, path: Any, **data: Any) -> bytes:
    return event(seq, "change", kind=kind, path=path, is_dir=False, **data)


def stream(*pieces: bytes, cut: bool = False) -> Callable[[httpx.Request], httpx.Response]:
    error = httpx.ReadError("cut") if cut else None
    return lambda _: httpx.Response(200, stream=Pieces(*pieces, cut=error))


READY = event(100, "ready", partial=False)
END = event(109, "end")


def asked(server: Server) -> list[dict[str, str]]:
    return [dict(request.url.params) for request in server.seen]


def test_a_watch_that_is_cut_goes_on_where_it_was(client: Any, server: Server) -> None:
    server.on(
        "GET",
        WATCH,
        stream(READY, change(101, "created", "a"), change(102, "modified", "a")[:9], cut=True),
        refusal(503, "busy"),
        stream(event(101, "ready", partial=False), cut=True),
        # It also ends when the server is shut down.
        stream(event(101, "ready", partial=False), change(102, "modified", "a")),
        stream(
            change(103, "moved", {"hex": "ff"}, **{"from": "a"}),
            change(104, "removed", "d"),
            END,
        ),
    )
    seen = list(client.workspaces.watch("demo"))
    assert [(it.seq, it.kind, it.path, it.moved_from) for it in seen] == [
        (100, "ready", None, None),
        (101, "created", "a", None),
        (102, "modified", "a", None),
        (103, "moved", b"\xff", "a"),
        (104, "removed", "d", None),
        (109, "end", None, None),
    ]
    assert [it.get("after") for it in asked(server)] == [None, "101", "101", "101", "102"]


def test_what_was_lost_is_told(client: Any, server: Server) -> None:
    server.on(
        "GET",
        WATCH,
        stream(event(900, "ready", partial=True), change(901, "created", "a"), cut=True),
        # Another server's numbers may be smaller.
        stream(
            event(901, "ready", partial=False),
            event(5, "overflow"),
            change(6, "created", "b"),
            cut=True,
        ),
        stream(END),
    )
    seen = list(client.workspaces.watch("demo"))
    assert [(it.kind, it.partial) for it in seen] == [
        ("ready", True),
        ("created", False),
        ("overflow", False),
        ("created", False),
        ("end", False),
    ]
    assert asked(server) == [{}, {"after": "901"}, {"after": "6"}]


def test_a_watch_goes_on_from_a_number(client: Any, server: Server) -> None:
    server.on("GET", WATCH, stream(event(7, "ready", partial=False), END))
    assert [it.kind for it in client.workspaces.watch("demo", after=7)] == ["ready", "end"]
    assert asked(server) == [{"after": "7"}]


def test_a_workspace_that_is_not_there(client: Any, server: Server) -> None:
    server.on("GET", WATCH, refusal(404, "not_found"))
    for seconds in (None, 0):
        with pytest.raises(NotFound):
            list(client.workspaces.watch("demo", seconds=seconds))


def test_a_watch_that_is_always_cut_is_given_up(
    client: Any, server: Server, sleeps: list[float]
) -> None:
    server.on("GET", WATCH, stream(cut=True))
    with pytest.raises(ConnectionFailed, match="cut"):
        list(client.workspaces.watch("demo"))
    assert len(server.seen) == 5 and len(sleeps) == 4


def test_a_watch_ends_when_the_caller_says_so(
    client: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("glovebox.watch.now", lambda: now[0])

    def late(_: httpx.Request) -> httpx.Response:
        now[0] += 2
        return stream(READY)(_)

    server.on("GET", WATCH, late)
    assert [it.kind for it in client.workspaces.watch("demo", seconds=4.5)] == ["ready"]
    # Each connection is for what is left of the time.
    assert [it["seconds"] for it in asked(server)] == ["5", "3", "1"]


def test_a_quiet_workspace_is_watched_for_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("glovebox.watch.now", lambda: now[0])
    watching = Watching("demo", None, None, Patience())
    for _ in range(50):
        assert watching.open() is None
        now[0] += 60
        assert watching.lost(ConnectionFailed("a proxy cut it")) <= 30


def test_an_event_that_makes_no_sense_is_said() -> None:
    for text in (b"data: {}\n\n", b"id: 1\ndata: nope\n\n", b"id: 1\ndata: [1]\n\n"):
        watching = Watching("demo", None, None, Patience())
        with pytest.raises(UnexpectedAnswer):
            list(watching.feed(text))


def test_what_a_newer_server_tells_is_passed_on() -> None:
    watching = Watching("demo", None, None, Patience())
    news = event(3, "mood", good=True) + change(4, "renamed", "a", color="red")
    first, second = watching.feed(news)
    assert (first.kind, first.extra) == ("mood", {"good": True})
    assert (second.kind, second.path, second.extra) == ("renamed", "a", {"color": "red"})
