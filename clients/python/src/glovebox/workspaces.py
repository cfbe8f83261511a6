# Generated from async_workspaces.py by clients/python/generate.py: do not edit.
"""Workspaces and their files, for code that waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Optional, Union

from glovebox import calls, tree
from glovebox.call import FileContent
from glovebox.decode import Text
from glovebox.errors import ApiError, ConnectionFailed, GloveboxError
from glovebox.events import WatchEvent
from glovebox.records import (
    Copied,
    FileInfo,
    Glob,
    Listing,
    Replaced,
    Reset,
    Search,
    Seeded,
    Unpacked,
    Workspace,
)
from glovebox.request import SearchOptions
from glovebox.stream import SILENCE
from glovebox.tree import Tree
from glovebox.watch import Watching

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from glovebox.client import Glovebox


class Workspaces:
    """Files that stay from one exec to the next. Every path is relative to the workspace."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def list(self, *, page_size: Optional[int] = None) -> Iterator[Workspace]:
        """By name, without their sizes."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_workspaces(limit=page_size, cursor=cursor)
            )
        )

    def get(self, project_id: str) -> Workspace:
        """What it holds and may hold, and which execs' changes wait."""
        return self._client._send(calls.get_workspace(project_id))

    def delete(self, project_id: str) -> None:
        """With its inputs and artifacts. One with execs that run is a `Conflict`."""
        return self._client._send(calls.delete_workspace(project_id))

    def seed(self, project_id: str) -> Seeded:
        """Copies the operator's template into it; nothing that is there is touched."""
        return self._client._send(calls.seed_workspace(project_id))

    def reset(
        self, project_id: str, *, inputs: bool = False, artifacts: bool = False
    ) -> Reset:
        """Empties it, and seeds it from the operator's template if there is one. The inputs and
        the artifacts of its execs go only if you say so; snapshots stay."""
        return self._client._send(
            calls.reset_workspace(project_id, inputs=inputs, artifacts=artifacts)
        )

    def files(
        self,
        project_id: str,
        path: Text = "",
        *,
        depth: int = 1,
        limit: Optional[int] = None,
        after: Optional[str] = None,
    ) -> Listing:
        """What is in a directory, one page of it: `after` is `next` of the page before.

            for entry in gb.workspaces.files("demo", "src").entries:
                print(entry.type, entry.size, entry.path)
        """
        return self._client._send(calls.list_files(project_id, path, depth, limit, after))

    def walk(
        self,
        project_id: str,
        path: Text = "",
        *,
        depth: int = 100,
        page_size: Optional[int] = None,
    ) -> Iterator[FileInfo]:
        """Everything below a directory, each directory before what is in it. Pages are fetched as
        they are needed.

            size = sum(it.size for it in gb.workspaces.walk("demo") if it.type == "file")
        """
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.page_of_files(project_id, path, depth, page_size, cursor)
            )
        )

    def stat(self, project_id: str, path: Text = "") -> FileInfo:
        """What it is. Of a link: the link itself."""
        return self._client._send(calls.stat_file(project_id, path))

    def read(
        self,
        project_id: str,
        path: Text,
        *,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> bytes:
        """The bytes of a file, or a part of them: `limit` bytes from `offset` on, or the last ones
        if `offset` is negative. There are none behind the end.

            gb.workspaces.read("demo", "train.log", offset=-4096)
        """
        return self._client._send(calls.read_file(project_id, path, offset, limit))

    def fetch(
        self, project_id: str, path: Text, *, known: Optional[str] = None
    ) -> Optional[FileContent]:
        """The bytes of a file with its mark; None if it is the one with the mark `known`.

            seen = gb.workspaces.fetch("demo", "notes.md")
            gb.workspaces.write("demo", "notes.md", seen.data + b"more", etag=seen.etag)
        """
        return self._client._send(calls.fetch_file(project_id, path, known))

    def write(
        self,
        project_id: str,
        path: Text,
        content: Union[str, bytes],
        *,
        etag: Optional[str] = None,
        new: bool = False,
        mode: Union[int, str, None] = None,
    ) -> FileInfo:
        """Whole or not at all; directories on the way, and the workspace itself, are made. With
        `etag` only over the file that has this mark, with `new` only where nothing stands: anything
        else is a `Conflict`, and stays as it is.

            gb.workspaces.write("demo", "bin/run", "#!/bin/sh\\necho hi\\n", mode=0o755)
        """
        return self._client._send(
            calls.write_file(project_id, path, content, etag, new, mode)
        )

    def remove(self, project_id: str, path: Text, *, recursive: bool = True) -> None:
        """A file, or a directory with everything in it. A link goes, what it points at stays."""
        return self._client._send(calls.delete_file(project_id, path, recursive))

    def mkdir(self, project_id: str, path: Text, *, parents: bool = True) -> FileInfo:
        """Makes a directory. With `parents` those on the way too, and one that is there already is
        no error."""
        return self._client._send(calls.make_directory(project_id, path, parents))

    def move(
        self,
        project_id: str,
        source: Text,
        to: Text,
        *,
        overwrite: bool = False,
        parents: bool = True,
    ) -> FileInfo:
        """A file, a directory, or a link itself, in one step. What stands there is a `Conflict`,
        unless `overwrite` is said; a directory that is not empty never goes.

            gb.workspaces.move("demo", "draft.md", "docs/final.md")
        """
        return self._client._send(
            calls.move_file(project_id, source, to, overwrite, parents)
        )

    def copy(
        self,
        project_id: str,
        source: Text,
        to: Text,
        *,
        overwrite: bool = False,
        parents: bool = True,
    ) -> Copied:
        """A file, or a directory with everything in it. Links are copied as links."""
        return self._client._send(
            calls.copy_file(project_id, source, to, overwrite, parents)
        )

    def replace(
        self,
        project_id: str,
        path: Text,
        old: str,
        new: str,
        *,
        all: bool = False,
        etag: Optional[str] = None,
    ) -> Replaced:
        """Replaces a text in a file, which must be there exactly once, unless `all` are meant.
        Whoever writes to the file meanwhile makes it a `Conflict`.

            gb.workspaces.replace("demo", "main.py", "port = 80", "port = 8080")
        """
        return self._client._send(
            calls.replace_in_file(project_id, path, old, new, all, etag)
        )

    def search(
        self, project_id: str, pattern: str, **options: Unpack[SearchOptions]
    ) -> Search:
        """The lines with a text, or a regular expression, in them. What ended the search early, or
        was passed over, is told.

            for it in gb.workspaces.search("demo", "TODO", include=["**/*.py"]).matches:
                print(it.path, it.line, it.text)
        """
        return self._client._send(calls.search_files(project_id, pattern, options))

    def glob(
        self,
        project_id: str,
        pattern: str,
        *,
        path: Text = "",
        hidden: bool = False,
        limit: Optional[int] = None,
    ) -> Glob:
        """Files by their names. `*` and `?` stay within one name, `**` crosses directories.

            gb.workspaces.glob("demo", "**/*.csv", path="data").paths
        """
        return self._client._send(calls.glob_files(project_id, pattern, path, hidden, limit))

    def watch(
        self,
        project_id: str,
        *,
        after: Optional[int] = None,
        seconds: Optional[float] = None,
    ) -> Iterator[WatchEvent]:
        """What changes, as it changes, from now on or after number `after`: first a `ready`, then
        whatever happens, until the workspace is gone, `seconds` have passed, or you stop. A
        connection that is cut is made again; what could not be told then is told by an `overflow`.

            for event in gb.workspaces.watch("demo", seconds=60):
                if event.kind == "overflow":
                    ...  # Some were lost: look at everything anew.
                elif event.kind != "ready":
                    print(event.kind, event.path)
        """
        return self._watch(Watching(project_id, after, seconds, self._client._patience))

    def download(
        self,
        project_id: str,
        to: Union[str, os.PathLike[str]],
        *,
        path: Text = "",
        format: str = "tar",
    ) -> int:
        """Writes a directory to a file as an archive, `tar`, `tar.gz`, `tar.zst` or `zip`, which is
        there whole or not at all. Returns its size. Whatever ran in the workspace wrote what is in
        it: unpack it as you would a stranger's.

            gb.workspaces.download("demo", "results.tar", path="results")
            with tarfile.open("results.tar") as tar:
                tar.extractall("results", filter="data")
        """
        return self._client._download(calls.download_archive(project_id, path, format), to)

    def upload(self, project_id: str, source: Tree, *, path: Text = "") -> Unpacked:
        """Unpacks an archive into a directory, all of it or nothing: the bytes of a tar or ZIP, or
        the path of one on this machine, or of a directory, which is packed first. Files of the same
        name are replaced.

            gb.workspaces.upload("demo", "my/project", path="src")
        """
        content = tree.archive(source)
        return self._client._send(calls.upload_archive(project_id, content, path))

    def _watch(self, watching: Watching) -> Iterator[WatchEvent]:
        while not watching.done:
            lost: Optional[GloveboxError] = None
            seconds = watching.open()
            call = calls.watch(watching.project_id, watching.after, seconds, SILENCE)
            try:
                with self._client._open(call) as response:
                    if not response.is_success:
                        raise self._client._refused(response)
                    for piece in response.iter_bytes():
                        for event in watching.feed(piece):
                            yield event
                        if watching.done:
                            break
            except (ApiError, ConnectionFailed) as error:
                lost = error
            if not watching.done:
                time.sleep(watching.lost(lost))
