"""What an exec would change in its workspace, as the server answers with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from glovebox.decode import Text, many, maybe, maybe_text, one, text, texts, values


@dataclass(frozen=True)
class ChangeCount:
    """How much an exec changed that did not write to the workspace itself."""

    created: int = 0
    modified: int = 0
    removed: int = 0
    #: Of what was created or modified.
    bytes: int = 0
    #: There were more than could be looked at.
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class ChangeSide:
    """What stands somewhere, before or after an exec."""

    type: str = ""
    size: int = 0
    #: Permissions, octal.
    mode: str = ""
    #: BLAKE3 of a file's bytes, unless there are too many.
    digest: Optional[str] = None
    #: The text of a link.
    target: Optional[Text] = maybe_text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Change:
    path: Text = text()
    #: `created`, `modified`, `replaced` by something of another kind, `removed`, or `touched`:
    #: the same contents with another mode, other attributes or another time.
    what: str = ""
    #: As it stands in the workspace now.
    before: Optional[ChangeSide] = maybe(ChangeSide)
    #: As the exec left it.
    after: Optional[ChangeSide] = maybe(ChangeSide)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class ChangeText:
    path: Text = text()
    #: A unified diff.
    unified: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Changes:
    """What an exec would change in the workspace as it is now."""

    exec_id: str = ""
    count: ChangeCount = one(ChangeCount)
    #: A directory before what lies in it.
    changes: list[Change] = many(Change)
    #: Files that were opened for writing and are as they were.
    unchanged: int = 0
    #: FIFOs, sockets and devices, which are never carried over.
    skipped: list[Text] = texts()
    #: Of the files that are text.
    texts: list[ChangeText] = many(ChangeText)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Settled:
    """Changes that waited, and now are kept or gone."""

    exec_id: str = ""
    count: ChangeCount = one(ChangeCount)
    extra: Mapping[str, Any] = values(dict)
