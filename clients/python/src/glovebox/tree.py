"""Trees of this machine, as one archive."""

from __future__ import annotations

import io
import os
import tarfile
from typing import Union

#: An archive itself, or where one, or a directory, is on this machine.
Tree = Union[bytes, str, os.PathLike[str]]


def archive(tree: Tree) -> bytes:
    """A directory is packed, with what is in it at the top; an archive is taken as it is."""
    if isinstance(tree, (bytes, bytearray, memoryview)):
        return bytes(tree)
    if os.path.isdir(tree):
        return _packed(os.fspath(tree))
    with open(tree, "rb") as file:
        return file.read()


def _packed(directory: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(os.listdir(directory)):
            tar.add(os.path.join(directory, name), name, filter=_nobodys)
    return packed.getvalue()


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whose they are here is nobody's business there."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
