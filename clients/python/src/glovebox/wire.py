"""What both clients tell httpx."""

from __future__ import annotations

from typing import Optional

import httpx

from glovebox.version import VERSION


def headers(token: Optional[str]) -> dict[str, str]:
    own = {"User-Agent": f"glovebox-python/{VERSION}"}
    return own if token is None else {**own, "Authorization": f"Bearer {token}"}


def timeouts(read: float) -> httpx.Timeout:
    return httpx.Timeout(connect=10.0, read=read, write=30.0, pool=30.0)


def passing(error: httpx.RequestError) -> bool:
    """Whether the next attempt may go better."""
    hopeless = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
    return isinstance(error, httpx.TransportError) and not isinstance(error, hopeless)
