"""What happens to an exec, in a session or to the files of a workspace, as its stream tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import Text, maybe, maybe_text, moment, values
from glovebox.records import OPEN, Effect


@dataclass(frozen=True)
class Event:
    """One thing that happened to an exec. `seq` begins with 1 and has no gaps."""

    seq: int = 0
    #: `state`, `output` or `effect`; a newer server may send others, with their fields in `extra`.
    kind: str = ""
    at: Optional[datetime] = moment()
    #: Of a `state`.
    status: Optional[str] = None
    queue_position: Optional[int] = None
    #: Of an `output`: `stdout` or `stderr`.
    stream: Optional[str] = None
    data: bytes = b""
    truncated: bool = False
    #: Of an `effect`.
    effect: Optional[Effect] = maybe(Effect)
    extra: Mapping[str, Any] = values(dict)

    @property
    def text(self) -> str:
        """The output as text. A character may be split between two events; `data` is exact."""
        return self.data.decode("utf-8", "replace")

    @property
    def last(self) -> bool:
        """Nothing comes after this one."""
        return self.kind == "state" and self.status is not None and self.status not in OPEN


@dataclass(frozen=True)
class WatchEvent:
    """Something that happened in a workspace."""

    #: The number to go on with: `watch(project_id, after=seq)`.
    seq: int = 0
    #: `ready` once everything that happens is seen; `created`, `modified`, which is also a new file
    #: that is put in its place whole, `removed` or `moved`; `overflow` when changes before it are
    #: lost, so that everything is to be looked at anew; `end` when the workspace is gone. A newer
    #: server may send others.
    kind: str = ""
    path: Optional[Text] = maybe_text()
    is_dir: bool = False
    #: Where it was, of one that is `moved`.
    moved_from: Optional[Text] = maybe_text()
    #: Of a `ready`: there are more directories than can be watched.
    partial: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Printed:
    """A piece of what a session put out."""

    #: `stdout`, which of a terminal is all that it shows, or `stderr`.
    stream: str = ""
    data: bytes = b""
    #: Where it ends in all that was put out on this stream.
    next: int = 0

    @property
    def text(self) -> str:
        """A character may be split between two pieces; `data` is exact."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Found:
    """What was expected of a session, and appeared."""

    #: What came before it, since the session was last read.
    before: str = ""
    text: str = ""
    #: Of a pattern. Bytes that are no text are lone surrogates in it, as in names of files.
    match: Optional[re.Match[str]] = None
