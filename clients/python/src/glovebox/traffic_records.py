"""What programs did with their network, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import many, moment, values


@dataclass(frozen=True)
class Refused:
    """A destination that was refused, however often."""

    host: str = ""
    port: int = 0
    code: str = ""
    times: int = 0
    #: What is missing, and how to ask for it.
    hint: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Traffic:
    """What an exec did with its network."""

    connections: int = 0
    sent: int = 0
    received: int = 0
    #: The first few; `refused_more` counts the rest.
    refused: list[Refused] = many(Refused)
    refused_more: int = 0
    #: What it tried that its simulation had not shown; nothing got out from there on.
    strayed: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Attempt:
    """One attempt to get out: told when it was decided, and again at its end."""

    seq: int = 0
    at: Optional[datetime] = moment()
    #: `OK`, or why not: `NOT_IN_ALLOWLIST`, `PORT_NOT_ALLOWED`, `INVALID_DESTINATION` …
    code: str = ""
    #: `direct`, `connect`, `socks`, `proxied` or `dns`.
    approach: str = ""
    #: `dns`, `udp`, `tcp`, `tls`, `http` or `https`.
    spoken: str = ""
    host: str = ""
    port: int = 0
    #: The entry of the list that let it through.
    rule: Optional[str] = None
    #: Where it really went.
    address: Optional[str] = None
    method: Optional[str] = None
    path: Optional[str] = None
    sent: int = 0
    received: int = 0
    ended: bool = False
    hint: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class NetworkPage:
    """A part of an exec's network log."""

    attempts: list[Attempt] = many(Attempt)
    #: The place after these.
    next: int = 0
    #: The exec has ended, and nothing comes after these.
    complete: bool = False
    extra: Mapping[str, Any] = values(dict)
