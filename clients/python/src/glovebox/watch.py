"""The changes of one workspace, from a stream that may be cut at any time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Optional

from glovebox import decode
from glovebox.errors import ConnectionFailed, GloveboxError, UnexpectedAnswer
from glovebox.events import WatchEvent
from glovebox.retry import Patience
from glovebox.stream import GOOD, Lines, now


def _event(fields: dict[str, str], data: str) -> WatchEvent:
    name = fields.get("event", "message")
    try:
        body: dict[str, Any] = dict(json.loads(data))
        body["seq"] = int(fields["id"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnexpectedAnswer(f"cannot read the event `{data[:80]}`") from error
    # A change says in its data what kind it is of; the others are named by the event.
    kind = body.get("kind", name) if name == "change" else name
    if "from" in body:
        body["moved_from"] = body.pop("from")
    return decode.record(WatchEvent, {**body, "kind": kind})


class Watching:
    """What is known of a watch between one connection and the next."""

    def __init__(
        self, project_id: str, after: Optional[int], seconds: Optional[float], patience: Patience
    ) -> None:
        self.project_id = project_id
        #: None: from now on.
        self.after = after
        self.done = False
        self._patience = patience
        self._until = None if seconds is None else now() + seconds
        self._greeted = False
        self._failures = 0
        self._opened = now()
        self._lines = Lines(_event)

    def open(self) -> Optional[int]:
        """Another connection begins. Returns after how many seconds the server is to end it."""
        self._lines = Lines(_event)
        self._opened = now()
        return None if self._until is None else max(0, math.ceil(self._until - now()))

    def feed(self, piece: bytes) -> Iterator[WatchEvent]:
        """Whatever comes is new: the server begins after the number that it is given. Numbers of
        a server that was started again may be smaller, and follow an `overflow`."""
        for event in self._lines.feed(piece):
            self.after = event.seq
            self._failures = 0
            self.done = event.kind == "end"
            # Of all the connections, the first is the one that the caller knows of.
            if event.kind == "ready" and self._greeted and not event.partial:
                continue
            self._greeted = True
            yield event

    def lost(self, error: Optional[GloveboxError]) -> float:
        """The connection is gone. Returns the pause before the next, or raises."""
        left = math.inf if self._until is None else self._until - now()
        if left <= 0 and (error is None or self._greeted):
            self.done = True
            return 0.0
        if now() - self._opened >= GOOD:
            self._failures = 0
        self._failures += 1
        failure = error or ConnectionFailed("the stream ended, and the workspace is still there")
        pause = self._patience.pause(self._failures, failure)
        if pause is None:
            raise failure
        return min(pause, max(0.0, left))
