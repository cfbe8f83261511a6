"""Workspaces and their files, as the server answers with them. Every path is relative to the
workspace, and is bytes where it is no text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import Text, many, maybe_text, moment, one, text, values


@dataclass(frozen=True)
class Workspace:
    project_id: str = ""
    #: Only `workspaces.get()` measures it, and fills in what follows.
    bytes: Optional[int] = None
    files: Optional[int] = None
    #: False when it was too large to be measured in time.
    complete: Optional[bool] = None
    #: What it may hold; None where nothing bounds it.
    max_bytes: Optional[int] = None
    max_files: Optional[int] = None
    #: Execs whose changes wait to be kept or discarded.
    waiting: list[str] = values(list)
    snapshots: Optional[int] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class FileInfo:
    """What a file is; a link is never followed to find out."""

    path: Text = text()
    #: The last part of the path; `.` for the workspace itself.
    name: Text = text()
    #: `file`, `directory`, `symlink` or `other`.
    type: str = ""
    #: Of a link: the length of its text.
    size: int = 0
    #: Permissions, octal: `0644`.
    mode: str = ""
    modified_at: Optional[datetime] = moment()
    #: Another one whenever the file is.
    etag: str = ""
    #: The text of a link, which may lead anywhere.
    target: Optional[Text] = maybe_text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class FileContent:
    """The bytes of a file, and the mark of the very file that they are from."""

    data: bytes = b""
    etag: str = ""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Listing:
    """One page of a directory."""

    #: Each directory before what is in it.
    entries: list[FileInfo] = many(FileInfo)
    #: There are more than are listed.
    truncated: bool = False
    #: `after` of the next page.
    next: Optional[str] = None
    #: Directories on this page that could not be looked into.
    unread: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Copied:
    path: Text = text()
    files: int = 0
    directories: int = 0
    links: int = 0
    bytes: int = 0
    #: Special files, which are never copied, and what could not be read.
    skipped: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Replaced:
    times: int = 0
    #: As it is now.
    file: FileInfo = one(FileInfo)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SearchLine:
    line: int = 0
    text: Text = text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SearchMatch:
    path: Text = text()
    #: From 1.
    line: int = 0
    #: Where the match begins in the line, in bytes from 0.
    column: int = 0
    #: The line, cut to 500 bytes around the match.
    text: Text = text()
    before: list[SearchLine] = many(SearchLine)
    after: list[SearchLine] = many(SearchLine)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Search:
    """What was found, and what was not looked at."""

    matches: list[SearchMatch] = many(SearchMatch)
    #: Files that were searched.
    files: int = 0
    bytes: int = 0
    #: Files with a NUL byte, which are not searched.
    binary: int = 0
    #: Files that are too large, unreadable ones, and directories that could not be entered.
    skipped: int = 0
    #: Lines that were not searched to their end.
    long_lines: int = 0
    #: There may be more.
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class GlobPath:
    path: Text = text()
    type: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Glob:
    #: Each directory before what is in it.
    paths: list[GlobPath] = many(GlobPath)
    #: There may be more.
    truncated: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Unpacked:
    entries: int = 0
    files: int = 0
    #: Of the files' contents.
    bytes: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SkippedSeed:
    path: Text = text()
    why: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Seeded:
    """What came from the operator's template."""

    made: int = 0
    #: Something of that name was there, and was not touched.
    kept: int = 0
    skipped: list[SkippedSeed] = many(SkippedSeed)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Reset:
    seeded: Seeded = one(Seeded)
    #: Execs whose artifacts are gone.
    artifacts_removed: int = 0
    extra: Mapping[str, Any] = values(dict)


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
