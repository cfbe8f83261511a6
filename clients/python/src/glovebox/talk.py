"""What is known of a session between one answer of the server and the next."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Optional, Union

from glovebox import decode
from glovebox.errors import (
    ConnectionFailed,
    ExpectTimeout,
    GloveboxError,
    SessionEnded,
    UnexpectedAnswer,
    WaitTimeout,
)
from glovebox.events import Found, Printed
from glovebox.records import SessionInfo, SessionOutput, SessionPiece
from glovebox.retry import Patience
from glovebox.stream import GOOD, Lines, now

Cue = Union[str, re.Pattern[str]]

# A place behind everything: nothing of that stream is asked for, and nothing of it ends a wait.
NOTHING = 2**53 - 1
# One question waits so long at most: a proxy takes a longer silence for an end.
_LONGEST = 30.0
# Bytes in which something is looked for; what came earlier is not looked at any more.
_LOOK_BACK = 1 << 20
# Of these, at most so many in one answer.
_AT_ONCE = 512 << 10


class Clock:
    """The time that a caller gave, if any."""

    def __init__(self, seconds: Optional[float]) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._end = now() + self.seconds

    @property
    def over(self) -> bool:
        return now() >= self._end

    def wait(self) -> float:
        """How long the next question may wait."""
        return min(_LONGEST, max(0.0, self._end - now()))

    def check_end(self, session_id: str) -> None:
        if self.over:
            raise WaitTimeout(session_id, self.seconds)


class Place:
    """Where the reader of a session is, on both streams."""

    def __init__(self, stdout: int, stderr: int) -> None:
        self.at = {"stdout": stdout, "stderr": stderr}
        #: Bytes that came and were not kept until they were read.
        self.missed = 0

    def take(self, stream: str, piece: SessionPiece) -> bytes:
        """What of it is new; the reader is behind it now."""
        at = self.at[stream]
        if piece.next <= at:
            return b""
        self.missed += max(0, piece.offset - at)
        self.at[stream] = piece.next
        return piece.data[max(0, at - piece.offset) :]


class Search:
    """Looks for something in what one stream puts out, from where the reader is. The reader moves
    when it is found."""

    def __init__(self, cue: Cue, stream: str, timeout: Optional[float], place: Place) -> None:
        if stream not in place.at:
            raise ValueError(f"`stream` is `stdout` or `stderr`, not `{stream}`")
        pattern = cue.pattern if isinstance(cue, re.Pattern) else cue
        if not isinstance(pattern, str) or cue == "":
            raise TypeError("what is expected is some text, or a pattern of `re.compile`")
        self.found: Optional[Found] = None
        self._cue = cue
        self._named: str = pattern
        self._stream = stream
        self._place = place
        self._clock = Clock(timeout)
        self._start = self._next = place.at[stream]
        self._bytes = b""
        self._missed = 0
        self._until: Optional[int] = None

    def ask(self) -> tuple[int, int, float, int]:
        """The offsets of the next question, how long it may wait and how much it may bring."""
        there = {"stdout": NOTHING, "stderr": NOTHING, self._stream: self._next}
        return there["stdout"], there["stderr"], self._clock.wait(), _AT_ONCE

    def feed(self, output: SessionOutput) -> None:
        """Raises when it was not found and will not be."""
        piece: SessionPiece = getattr(output, self._stream)
        if piece.offset > self._next:
            # What lies apart is not looked at as if it were one.
            self._missed += piece.offset - self._next
            self._start, self._bytes = piece.offset, b""
        self._bytes += piece.data[max(0, self._next - piece.offset) :]
        self._next = max(self._next, piece.next)
        over = max(0, len(self._bytes) - _LOOK_BACK)
        self._start, self._bytes = self._start + over, self._bytes[over:]
        self.found = self._look()
        if self.found is not None:
            return
        if output.complete:
            raise SessionEnded(output.session, self._named, _shown(self._text()))
        # What was there when the time was over is looked through, and no more.
        if self._clock.over and self._until is None:
            self._until = getattr(output.session, self._stream).end
        if self._until is not None and self._next >= self._until:
            who, seconds = output.session.session_id, self._clock.seconds
            raise ExpectTimeout(who, self._named, seconds, _shown(self._text()))

    def _look(self) -> Optional[Found]:
        text, match = self._text(), None
        if isinstance(self._cue, str):
            first = text.find(self._cue)
            if first < 0:
                return None
            last = first + len(self._cue)
        else:
            match = self._cue.search(text)
            if match is None:
                return None
            first, last = match.span()
        self._place.at[self._stream] = self._start + len(_bytes(text[:last]))
        self._place.missed += self._missed
        return Found(_shown(text[:first]), _shown(text[first:last]), match)

    def _text(self) -> str:
        """Such that what it was made from can be told: its places count bytes."""
        return self._bytes.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _shown(text: str) -> str:
    return _bytes(text).decode("utf-8", "replace")


Told = Union[SessionInfo, tuple[str, SessionPiece]]


def _event(fields: dict[str, str], data: str) -> Optional[Told]:
    try:
        body: dict[str, Any] = dict(json.loads(data))
        name = fields["event"]
        if name == "output":
            return str(body.pop("stream")), decode.record(SessionPiece, body)
    except (KeyError, TypeError, ValueError) as error:
        raise UnexpectedAnswer(f"cannot read the event `{data[:80]}`") from error
    # What a newer server tells beside that is not output.
    return decode.record(SessionInfo, body) if name == "end" else None


class Hearing:
    """What a session puts out, from a stream that may be cut at any time."""

    def __init__(self, place: Place, patience: Patience) -> None:
        self.place = place
        #: The session as it ended, once the end was heard.
        self.end: Optional[SessionInfo] = None
        self._patience = patience
        self._failures = 0
        self._opened = now()
        self._lines = Lines(_event)

    def open(self) -> tuple[int, int]:
        """Another connection begins. Returns where."""
        self._lines = Lines(_event)
        self._opened = now()
        return self.place.at["stdout"], self.place.at["stderr"]

    def feed(self, piece: bytes) -> Iterator[Printed]:
        for told in self._lines.feed(piece):
            self._failures = 0
            if isinstance(told, SessionInfo):
                self.end = told
            elif told is not None and told[0] in self.place.at:
                # Each stream goes on where its own last piece ended: the id of an event may be
                # further, with more that comes in the next one.
                stream, heard = told
                data = self.place.take(stream, heard)
                if data:
                    yield Printed(stream, data, heard.next)

    def lost(self, error: Optional[GloveboxError]) -> float:
        """The connection is gone. Returns the pause before the next, or raises."""
        if now() - self._opened >= GOOD:
            self._failures = 0
        self._failures += 1
        failure = error or ConnectionFailed("the stream ended before the session did")
        pause = self._patience.pause(self._failures, failure)
        if pause is None:
            raise failure
        return pause
