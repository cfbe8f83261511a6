"""The events of one exec, from a stream that may be cut at any time."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any, Callable, Generic, Optional, TypeVar

from glovebox import decode
from glovebox.errors import ConnectionFailed, GloveboxError, UnexpectedAnswer, WaitTimeout
from glovebox.events import Event
from glovebox.retry import Patience

# The server says something every 15 seconds, if only that it is still there.
SILENCE = 45.0
# A stream that lasted so long was a good one, also if nothing happened meanwhile.
GOOD = 5.0

T = TypeVar("T")


def now() -> float:
    return time.monotonic()


class Lines(Generic[T]):
    """Server-sent events out of pieces that are cut anywhere."""

    def __init__(self, read: Callable[[dict[str, str], str], T]) -> None:
        self._read = read
        self._rest = b""
        self._fields: dict[str, str] = {}
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[T]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if text:
                self._field(text)
            elif self._data:
                yield self._read(self._fields, "\n".join(self._data))
                self._fields, self._data = {}, []
            else:
                self._fields = {}

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            self._data.append(value)
        elif name:
            self._fields[name] = value


def event(fields: dict[str, str], data: str) -> Event:
    try:
        body: dict[str, Any] = dict(json.loads(data))
        seq = int(fields["id"])
        if "base64" in body:
            body["data"] = base64.b64decode(body.pop("base64"))
        elif "text" in body:
            body["data"] = body.pop("text").encode()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnexpectedAnswer(f"cannot read the event `{data[:80]}`") from error
    return decode.record(Event, {**body, "seq": seq, "kind": fields.get("event", "message")})


class Follow:
    """What is known of a stream between one connection and the next."""

    def __init__(
        self,
        exec_id: str,
        after: int,
        patience: Patience,
        timeout: Optional[float] = None,
    ) -> None:
        self.exec_id = exec_id
        self.after = after
        self.done = False
        self._patience = patience
        self._timeout = timeout
        self._deadline = None if timeout is None else now() + timeout
        self._failures = 0
        self._opened = now()
        self._silence = SILENCE
        self._late = False
        self._lines = Lines(event)

    def open(self) -> float:
        """Another connection begins. Returns how long it may be silent."""
        self._lines = Lines(event)
        self._opened = now()
        self._silence = min(SILENCE, self._left())
        self._late = False
        return self._silence

    def feed(self, piece: bytes) -> Iterator[Event]:
        for found in self._lines.feed(piece):
            # What a reconnection brings again was already seen.
            if found.seq <= self.after:
                continue
            self.after = found.seq
            self._failures = 0
            self.done = found.last
            yield found

    def enough(self) -> bool:
        """This connection has nothing more to give: the end was seen, or it may be silent for
        much longer than there is time left, and the next one will not."""
        self._late = self._left() < self._silence / 2
        return self.done or self._late

    def lost(self, error: Optional[GloveboxError]) -> float:
        """The connection is gone. Returns the pause before the next, or raises."""
        if now() - self._opened >= GOOD:
            self._failures = 0
        self._left()
        if error is None and self._late:
            return 0.0
        self._failures += 1
        failure = error or ConnectionFailed("the stream ended before the exec did")
        pause = self._patience.pause(self._failures, failure)
        if pause is None:
            raise failure
        return min(pause, self._left())

    def _left(self) -> float:
        if self._deadline is None or self._timeout is None:
            return float("inf")
        left = self._deadline - now()
        if left <= 0:
            raise WaitTimeout(self.exec_id, self._timeout)
        return left
