"""Every test of behaviour runs over both clients: `connect` makes one of them, and the async one is
driven by a loop of its own, so that a test is written once."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Callable, Optional

import httpx
import pytest

from glovebox import AsyncGlovebox, AsyncSession, Glovebox, Patience, Session, SessionInfo

TOKEN = "gb_00000000000000000000000000000001_" + "5" * 64
Reply = Callable[[httpx.Request], httpx.Response]


class Driven:
    """An object with coroutines, as one that waits."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            # The parts of a client have calls of their own; what a session knows has none.
            known = isinstance(self._inner, AsyncSession)
            return value if known else Driven(value, self._loop)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if inspect.iscoroutine(result):
                return self._driven(self._loop.run_until_complete(result))
            if inspect.isasyncgen(result):
                return self._each(result)
            return result

        return call

    def _driven(self, result: Any) -> Any:
        """What a call made, if that has calls of its own."""
        if isinstance(result, AsyncSession):
            return Driven(result, self._loop)
        if isinstance(result, list):
            return [self._driven(it) for it in result]
        return result

    def session(self, info: SessionInfo) -> Driven:
        return Driven(AsyncSession(self._inner, info), self._loop)

    def __iter__(self) -> Iterator[Any]:
        return self._each(self._inner.__aiter__())

    def _each(self, items: Any) -> Iterator[Any]:
        try:
            while True:
                yield self._loop.run_until_complete(items.__anext__())
        except StopAsyncIteration:
            return
        finally:
            self._loop.run_until_complete(items.aclose())

    def __enter__(self) -> Driven:
        self._loop.run_until_complete(self._inner.__aenter__())
        return self

    def __exit__(self, *what: Any) -> None:
        self._loop.run_until_complete(self._inner.__aexit__(*what))

    def __repr__(self) -> str:
        return repr(self._inner)


class Server:
    """Answers with what a test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[httpx.Request] = []
        self._replies: dict[tuple[str, str], list[Reply]] = {}

    def on(self, method: str, path: str, *replies: Any) -> None:
        """One reply for each request; the last one again and again."""
        self._replies[(method, path)] = [
            reply if callable(reply) else _always(reply) for reply in replies
        ]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        replies = self._replies.get((request.method, request.url.path))
        if not replies:
            return refusal(404, "not_found")
        return (replies.pop(0) if len(replies) > 1 else replies[0])(request)

    def calls(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.seen]


def _always(reply: httpx.Response) -> Reply:
    return lambda _: reply


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body in pieces, and perhaps a cut."""

    def __init__(self, *pieces: bytes, cut: Optional[Exception] = None) -> None:
        self._pieces = pieces
        self._cut = cut

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        if self._cut:
            raise self._cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._cut:
            raise self._cut


def session(client: Any, session_id: str = "s", state: str = "running") -> Any:
    """One that the client has not asked for."""
    info = SessionInfo(session_id, state=state)
    if isinstance(client, Driven):
        return client.session(info)
    return Session(client, info)


def refusal(status: int, code: str, *, after_ms: Optional[int] = None, **more: Any) -> httpx.Response:
    retry = {"allowed": status in (429, 503), "after_ms": after_ms}
    body = {"code": code, "message": f"it is {code}", "retry": retry, "hints": [], **more}
    return httpx.Response(status, json={"error": body})


def record(status: str = "succeeded", **fields: Any) -> dict[str, Any]:
    return {"exec_id": "e_" + "1" * 32, "client_id": "mine", "status": status, **fields}


def sent(request: httpx.Request) -> Any:
    return json.loads(request.content)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made; none takes any time."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("glovebox.client.time.sleep", pauses.append)
    monkeypatch.setattr("glovebox.async_client.asyncio.sleep", pause)
    return pauses


@pytest.fixture(params=["sync", "async"])
def connect(
    request: pytest.FixtureRequest, server: Server, sleeps: list[float]
) -> Iterator[Callable[..., Any]]:
    del sleeps
    loop = asyncio.new_event_loop()

    def make(patience: Patience = Patience()) -> Any:
        kind: Any = Glovebox if request.param == "sync" else AsyncGlovebox
        transport = httpx.MockTransport(server)
        client = kind("http://box.test", TOKEN, transport=transport, patience=patience)
        return client if request.param == "sync" else Driven(client, loop)

    yield make
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture
def client(connect: Callable[..., Any]) -> Iterator[Any]:
    with connect() as made:
        yield made
