"""What a client leaves behind: nothing that it began, unless it was told to."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

import httpx
import pytest

from glovebox import AsyncGlovebox, CleanupFailed, ConnectionFailed, NotFound
from conftest import Server, record, refusal, sent

EXECS = "/v1/execs"


def taken(status: str) -> Callable[[httpx.Request], httpx.Response]:
    """An exec with the client id that was sent, and an exec id made from it."""

    def reply(request: httpx.Request) -> httpx.Response:
        name = sent(request)["client_id"]
        return httpx.Response(202, json=record(status, client_id=name, exec_id=f"e_{name}"))

    return reply


def canceled(server: Server) -> list[str]:
    return [it.url.path.split("/")[3] for it in server.seen if it.url.path.endswith("/cancel")]


def test_close_cancels_what_still_runs(connect: Callable[..., Any], server: Server) -> None:
    server.on("POST", EXECS, taken("running"))
    with connect() as client:
        first = client.start("sleep", "60", client_id="a")
        client.start_shell("sleep 60", client_id="b")
        server.on("POST", f"{EXECS}/{first.exec_id}/cancel", httpx.Response(200, json=record()))
        server.on("POST", f"{EXECS}/e_b/cancel", httpx.Response(200, json=record()))
        assert canceled(server) == []
    assert canceled(server) == ["e_a", "e_b"]
    client.close()
    assert len(canceled(server)) == 2


def test_close_leaves_alone_what_ended_or_was_detached(
    connect: Callable[..., Any], server: Server
) -> None:
    server.on("POST", EXECS, taken("succeeded"), taken("running"))
    with connect() as client:
        client.run("true")
        client.detach(client.start("sleep", "60", client_id="a"))
        client.start("sleep", "60", client_id="b")
        client.detach("b")
        client.start("sleep", "60", client_id="c")
        ended = record("killed", client_id="c", exec_id="e_c")
        server.on("GET", f"{EXECS}/e_c", httpx.Response(200, json=ended))
        assert client.execs.get("e_c").status == "killed"
    assert canceled(server) == []


def test_close_leaves_alone_what_others_began(
    connect: Callable[..., Any], server: Server
) -> None:
    server.on("GET", f"{EXECS}/mine", httpx.Response(200, json=record("running")))
    with connect() as client:
        client.execs.get("mine")
    assert canceled(server) == []


def test_a_run_whose_answer_never_came_is_canceled_by_its_own_name(
    connect: Callable[..., Any], server: Server
) -> None:
    def cut(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("cut")

    server.on("POST", EXECS, cut)
    with connect() as client:
        with pytest.raises(ConnectionFailed):
            client.run("sleep", "60", client_id="a")
        # The server never heard of it: that is fine too.
        server.on("POST", f"{EXECS}/a/cancel", refusal(404, "not_found"))
    assert canceled(server) == ["a"]


def test_what_was_refused_is_not_canceled(connect: Callable[..., Any], server: Server) -> None:
    server.on("POST", EXECS, refusal(404, "not_found"))
    with connect() as client, pytest.raises(NotFound):
        client.run("true")
    assert canceled(server) == []


def test_close_says_what_it_could_not_cancel(
    connect: Callable[..., Any], server: Server
) -> None:
    server.on("POST", EXECS, taken("running"))
    server.on("POST", f"{EXECS}/e_a/cancel", refusal(500, "internal"))
    server.on("POST", f"{EXECS}/e_b/cancel", httpx.Response(200, json=record()))
    client = connect()
    client.start("sleep", "60", client_id="a")
    client.start("sleep", "60", client_id="b")
    with pytest.raises(CleanupFailed, match="e_a") as caught:
        client.close()
    assert list(caught.value.failures) == ["e_a"] and canceled(server) == ["e_a", "e_b"]


def test_the_error_of_the_block_is_the_one_that_is_raised(
    connect: Callable[..., Any], server: Server
) -> None:
    server.on("POST", EXECS, taken("running"))
    server.on("POST", f"{EXECS}/e_a/cancel", refusal(500, "internal"))
    with pytest.warns(ResourceWarning, match="e_a"), pytest.raises(ZeroDivisionError):
        with connect() as client:
            client.start("sleep", "60", client_id="a")
            raise ZeroDivisionError


def test_a_task_that_is_canceled_takes_its_exec_with_it(server: Server) -> None:
    begun = asyncio.Event()

    async def hang(request: httpx.Request) -> httpx.Response:
        answer = server(request)
        if request.url.path == EXECS:
            begun.set()
            await asyncio.Event().wait()
        return answer

    async def work() -> None:
        transport = httpx.MockTransport(hang)
        async with AsyncGlovebox("http://box.test", "t", transport=transport) as client:
            await client.run("sleep", "60", client_id="a")

    async def main() -> None:
        task = asyncio.ensure_future(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    server.on("POST", f"{EXECS}/a/cancel", httpx.Response(200, json=record()))
    asyncio.run(main())
    assert canceled(server) == ["a"]
