# Generated from async_sessions.py by clients/python/generate.py: do not edit.
"""Sessions, for code that waits: programs that are talked to while they run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

from glovebox import request, session_calls
from glovebox.call import Call
from glovebox.errors import ApiError, ConnectionFailed, GloveboxError, NotFound
from glovebox.events import Found, Printed
from glovebox.records import SessionInfo, SessionOutput, SessionScreen
from glovebox.request import SessionOptions
from glovebox.talk import NOTHING, Clock, Cue, Hearing, Place, Search

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from glovebox.client import Glovebox


class Sessions:
    """Execs whose program lives on, and is talked to: shells, servers, interpreters."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def start(self, *argv: str, **options: Unpack[SessionOptions]) -> Session:
        """Starts one, on a terminal if it is a shell without arguments, on pipes if not, unless
        `terminal` says otherwise. Use it in a `with`, which kills it at the end.

            with gb.sessions.start("bash", project_id="demo") as shell:
                shell.submit("make test")
                shell.expect("passed", timeout=60)
        """
        body = request.session(request.argv(argv), options)
        call = session_calls.start_session(body)
        output = self._client._begun(body["client_id"], call)
        self._client._started.saw(output.session)
        return Session(self._client, output.session)

    def list(self) -> Sequence[Session]:
        """Those that were not removed, the newest first; an agent's own for an agent."""
        listed = self._client._send(session_calls.list_sessions())
        return [Session(self._client, info) for info in listed]

    def get(
        self, session_id: str, *, stdout: int = 0, stderr: int = 0
    ) -> Session:
        """One by its id or the `client_id` that it was given. Its output is read from the beginning,
        or from these offsets, of `session.stdout` and `session.stderr`."""
        info = self._client._send(session_calls.get_session(session_id))
        return Session(self._client, info, stdout=stdout, stderr=stderr)


class Session:
    """One session, and where its reader is. It goes on when this object is forgotten; a `with`
    kills it at the end, and closing the client that began it ends it, unless it was detached."""

    def __init__(
        self, client: Glovebox, info: SessionInfo, *, stdout: int = 0, stderr: int = 0
    ) -> None:
        self._client = client
        self._place = Place(stdout, stderr)
        self._detached = False
        #: As it was last seen.
        self.info = info

    def __repr__(self) -> str:
        return f"Session({self.session_id!r}, {self.info.state!r})"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._detached or self.info.ended:
            return
        try:
            self.kill()
        except NotFound:
            pass  # It was removed.
        except GloveboxError as failed:
            # What went wrong in the block says more; this must not take its place.
            if error is None:
                raise
            what = f"`{self.session_id}` may still run: {failed}"
            warnings.warn(what, ResourceWarning, stacklevel=2)

    @property
    def session_id(self) -> str:
        """Its record is the exec of the same id."""
        return self.info.session_id

    @property
    def ended(self) -> bool:
        """It had, when it was last seen."""
        return self.info.ended

    @property
    def stdout(self) -> int:
        """How much of the standard output, or of what a terminal shows, was read; in bytes."""
        return self._place.at["stdout"]

    @property
    def stderr(self) -> int:
        return self._place.at["stderr"]

    @property
    def missed(self) -> int:
        """Bytes that came and were not kept until they were read."""
        return self._place.missed

    def refresh(self) -> SessionInfo:
        """The session as it is now."""
        return self._told(session_calls.get_session(self.session_id))

    def read(self, *, wait: float = 0.0, limit: Optional[int] = None) -> SessionOutput:
        """What it put out since it was last read, at most `limit` bytes of each stream (64 KiB
        without it). Waits up to `wait` seconds if that is nothing."""
        clock = Clock(wait)
        while True:
            output = self._output(self.stdout, self.stderr, clock.wait(), limit)
            news = [self._place.take("stdout", output.stdout)]
            news.append(self._place.take("stderr", output.stderr))
            if any(news) or output.complete or clock.over:
                return output

    def __iter__(self) -> Iterator[Printed]:
        """What it puts out, as it comes, from where it was last read to its end. A connection that
        is cut is made again, and nothing comes twice or is left out.

            for piece in session:
                print(piece.text, end="")
        """
        return self._hear(Hearing(self._place, self._client._patience))

    def expect(
        self, cue: Cue, *, timeout: Optional[float] = 30.0, stream: str = "stdout"
    ) -> Found:
        """Reads until this text, or something that this pattern of `re.compile` matches, appears,
        and not beyond it. `ExpectTimeout` is raised if it does not within `timeout` seconds, and
        `SessionEnded` if the session ends before it does; what it put out is still to be read then.

            shell.submit("id -u")
            shell.expect(re.compile(r"^(\\d+)\\r?$", re.M)).match[1]
        """
        search = Search(cue, stream, timeout, self._place)
        while search.found is None:
            search.feed(self._output(*search.ask()))
        return search.found

    def wait(self, *, timeout: Optional[float] = None) -> SessionInfo:
        """The session as it ended, however it ended. What it puts out is still to be read. After
        about `timeout` seconds `WaitTimeout` is raised, and it goes on."""
        clock = Clock(timeout)
        while True:
            output = self._output(NOTHING, NOTHING, clock.wait())
            if output.complete:
                return output.session
            clock.check_end(self.session_id)

    def send(self, text: Union[str, bytes]) -> SessionInfo:
        """Types this as it is. A call that is repeated types once."""
        return self._type(session_calls.typed(text))

    def submit(self, line: str) -> SessionInfo:
        """Types a line, and Enter."""
        return self._type({"submit": line})

    def keys(self, *names: str) -> SessionInfo:
        """Presses keys: `Enter`, `C-c`, `M-x`, `Up`, `F5`, or single characters. Terminals only."""
        return self._type({"keys": names})

    def paste(self, text: str) -> SessionInfo:
        """Types this as pasted text: in brackets where the program asked for that. Terminals
        only."""
        return self._type({"paste": text})

    def close_input(self) -> SessionInfo:
        """Ends its input; on a terminal the key for that is typed."""
        return self._told(session_calls.close_input(self.session_id))

    def resize(self, columns: int, rows: int) -> SessionInfo:
        return self._told(session_calls.resize_session(self.session_id, columns, rows))

    def signal(self, signal: Union[str, int]) -> SessionInfo:
        """Sends it, `INT` for instance, to all that runs in it; on a terminal `INT`, `QUIT` and
        `TSTP` go to what is in the foreground, as their keys do."""
        return self._told(session_calls.signal_session(self.session_id, signal))

    def kill(self) -> SessionInfo:
        """Ends everything in it, at once, and returns when nothing of it is left. One that has ended
        stays as it is."""
        return self._told(session_calls.kill_session(self.session_id))

    def screen(self) -> SessionScreen:
        """What a person would see on its terminal now, or saw last."""
        return self._client._send(session_calls.session_screen(self.session_id))

    def recording(self) -> str:
        """What it put out until now, with its times: asciicast version 2, as players read it."""
        return self._client._send(session_calls.session_recording(self.session_id))

    def remove(self) -> None:
        """Forgets what it put out; its record stays. One that runs is a `Conflict`."""
        self._client._send(session_calls.remove_session(self.session_id))

    def detach(self) -> None:
        """Leaves it running at the end of a `with`, and when the client is closed. `sessions.get`
        finds it by its id."""
        self._detached = True
        self._client._started.drop(self.session_id)

    def _type(self, typed: Mapping[str, Any]) -> SessionInfo:
        return self._told(session_calls.type_in(self.session_id, typed))

    def _told(self, call: Call[SessionInfo]) -> SessionInfo:
        return self._saw(self._client._send(call))

    def _output(
        self, stdout: int, stderr: int, wait: float, limit: Optional[int] = None
    ) -> SessionOutput:
        call = session_calls.session_output(self.session_id, stdout, stderr, wait, limit)
        output = self._client._send(call)
        self._saw(output.session)
        return output

    def _saw(self, info: SessionInfo) -> SessionInfo:
        self.info = info
        self._client._started.saw(info)
        return info

    def _hear(self, hearing: Hearing) -> Iterator[Printed]:
        while hearing.end is None:
            lost: Optional[GloveboxError] = None
            call = session_calls.stream_session(self.session_id, *hearing.open())
            try:
                with self._client._open(call) as response:
                    if not response.is_success:
                        raise self._client._refused(response)
                    for piece in response.iter_bytes():
                        for printed in hearing.feed(piece):
                            yield printed
                        if hearing.end is not None:
                            break
            except (ApiError, ConnectionFailed) as error:
                lost = error
            if hearing.end is None:
                time.sleep(hearing.lost(lost))
        self._saw(hearing.end)
