"""A file that is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from types import TracebackType
from typing import Optional, Union


class Download:
    def __init__(self, to: Union[str, os.PathLike[str]]) -> None:
        self._to = os.fspath(to)

    def __enter__(self) -> Download:
        # In the same directory, so that the rename cannot cross a file system.
        folder = os.path.dirname(os.path.abspath(self._to))
        handle, self._path = tempfile.mkstemp(prefix=".glovebox-", dir=folder)
        self._file = os.fdopen(handle, "wb")
        self._kept = False
        return self

    def write(self, piece: bytes) -> None:
        self._file.write(piece)

    def keep(self) -> int:
        size = self._file.tell()
        self._file.close()
        os.replace(self._path, self._to)
        self._kept = True
        return size

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._file.close()
        if not self._kept:
            os.unlink(self._path)
