# Generated from async_webhooks.py by clients/python/generate.py: do not edit.
"""Webhooks, for code that waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Optional

from glovebox import network_calls
from glovebox.records import Webhook, WebhookDelivery

if TYPE_CHECKING:
    from glovebox.client import Glovebox


class Webhooks:
    """Who is told of approvals and of the ends of execs, and how that went: for the operator."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def list(self) -> Sequence[Webhook]:
        """Those of the server's configuration."""
        return self._client._send(network_calls.list_webhooks())

    def deliveries(
        self,
        *,
        webhook: Optional[str] = None,
        state: Optional[str] = None,
        page_size: Optional[int] = None,
    ) -> Iterator[WebhookDelivery]:
        """Messages and what came of them, newest first."""
        return self._client._pages(
            lambda cursor: self._client._send(
                network_calls.list_deliveries(
                    webhook=webhook, state=state, limit=page_size, cursor=cursor
                )
            )
        )

    def test(self, name: str) -> WebhookDelivery:
        """Sends a message that is about nothing; `deliveries` says what came of it."""
        return self._client._send(network_calls.test_webhook(name))
