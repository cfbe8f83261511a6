"""What was read from outside, and who was told of what, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import maybe, moment, values


@dataclass(frozen=True)
class Refusal:
    """Why something was not read."""

    code: str = ""
    message: str = ""
    hint: Optional[str] = None
    retry_after_ms: Optional[int] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Retrieved:
    """A page as text, or why there is none: either `text` or `error_code` is there."""

    #: Where it came from, after redirects.
    final_url: Optional[str] = None
    status_code: Optional[int] = None
    #: As the server there declares it, and as its bytes look.
    content_type: Optional[str] = None
    sniffed_type: Optional[str] = None
    charset: Optional[str] = None
    title: Optional[str] = None
    #: A file name that is safe to use.
    suggested_name: Optional[str] = None
    #: After decompression, and before.
    bytes_read: int = 0
    wire_bytes: int = 0
    elapsed_ms: int = 0
    text: Optional[str] = None
    truncated: bool = False
    redirects: int = 0
    addresses: list[str] = values(list)
    peer: Optional[str] = None
    #: SHA-256 of the certificate, and of the body after decompression.
    certificate_sha256: Optional[str] = None
    content_sha256: Optional[str] = None
    retrieved_at: Optional[datetime] = moment()
    error_code: Optional[str] = None
    error: Optional[Refusal] = maybe(Refusal)
    extra: Mapping[str, Any] = values(dict)

    @property
    def ok(self) -> bool:
        return self.error_code is None


@dataclass(frozen=True)
class Webhook:
    """Somebody who is told of approvals or of the ends of execs."""

    name: str = ""
    #: Where it is, without path and query.
    origin: str = ""
    events: list[str] = values(list)
    #: It is told of this space alone; of all when there is none.
    space_id: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class WebhookDelivery:
    """One message to one webhook."""

    message_id: str = ""
    webhook: str = ""
    event: str = ""
    space_id: Optional[str] = None
    exec_id: Optional[str] = None
    approval_id: Optional[str] = None
    created_at: Optional[datetime] = moment()
    #: `pending`, `delivered` or `failed`.
    state: str = ""
    attempts: int = 0
    next_at: Optional[datetime] = moment()
    status_code: Optional[int] = None
    problem: Optional[str] = None
    ended_at: Optional[datetime] = moment()
    extra: Mapping[str, Any] = values(dict)
