"""Where the server is, and how to connect to it."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from typing import Optional, Union

#: True: the certificates of httpx. A path: a file of certificates in PEM. False: whatever the
#: server shows, which makes TLS worthless against whoever is in between.
Verify = Union[bool, str, "os.PathLike[str]", ssl.SSLContext]

SERVER = "http://127.0.0.1:7070"

# What waits for a long exec has an idle connection. The kernel asks now and then whether the other
# side is still there, so that a host that died is noticed within a minute and a half.
_KEEPALIVE = [
    (option, value)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    if (option := getattr(socket, name, None)) is not None
]
SOCKET_OPTIONS = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, option, value) for option, value in _KEEPALIVE),
]


@dataclass(frozen=True)
class Target:
    url: str
    socket: Optional[str]
    token: Optional[str]
    verify: Union[bool, ssl.SSLContext]

    @classmethod
    def of(cls, url: Optional[str], token: Optional[str], verify: Verify) -> Target:
        """What is not given comes from `GLOVEBOX_SERVER` and `GLOVEBOX_TOKEN`."""
        url = url or os.environ.get("GLOVEBOX_SERVER") or SERVER
        if token is None:
            token = os.environ.get("GLOVEBOX_TOKEN") or None
        path = None
        if url.startswith("unix:"):
            path = url[len("unix:") :]
            if path.startswith("//"):
                path = path[2:]
            if not path.startswith("/"):
                raise ValueError(f"`{url}` is no absolute path: write `unix:/path/of/the.sock`")
            url = "http://localhost"
        elif not url.startswith(("http://", "https://")):
            raise ValueError(f"`{url}` is no `http://`, `https://` or `unix:/` address")
        if isinstance(verify, (str, os.PathLike)):
            verify = ssl.create_default_context(cafile=os.fspath(verify))
        return cls(url.rstrip("/"), path, None if token is None else _word(token), verify)

    @property
    def socket_options(self) -> list[tuple[int, int, int]]:
        return [] if self.socket else SOCKET_OPTIONS

    def __repr__(self) -> str:
        return f"unix:{self.socket}" if self.socket else self.url


def _word(token: str) -> str:
    """The token as it goes into a header: files and variables often end with a newline. What is
    wrong with it is said without showing it, for errors are logged."""
    if not isinstance(token, str):
        raise TypeError(f"`token` is text, not `{type(token).__name__}`")
    word = token.strip()
    if not word:
        raise ValueError("the token is empty")
    if not all("!" <= character <= "~" for character in word):
        raise ValueError("the token is not one word of letters, digits and `_`; it is not shown")
    return word
