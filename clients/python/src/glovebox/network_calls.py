"""The calls about pages and webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from glovebox.call import Answer, Call, Page, changing, getting, of, page_of, segment
from glovebox.records import Retrieved, Webhook, WebhookDelivery

#: Longer than a server reads.
_READING = 120.0


def retrieve(
    url: str,
    method: Optional[str],
    max_bytes: Optional[int],
    max_text_bytes: Optional[int],
    timeout: Optional[float],
    task_ref: Optional[Mapping[str, str]],
) -> Call[Retrieved]:
    said = {
        "method": method,
        "max_bytes": max_bytes,
        "max_text_bytes": max_text_bytes,
        "timeout_ms": None if timeout is None else max(1, round(timeout * 1000)),
        "task_ref": None if task_ref is None else dict(task_ref),
    }
    body: dict[str, Any] = {"url": url}
    body.update((key, it) for key, it in said.items() if it is not None)
    return changing("POST", "/v1/retrieve", of(Retrieved), json_body=body, timeout=_READING)


def list_webhooks() -> Call[Sequence[Webhook]]:
    page = page_of(Webhook)

    def read(answer: Answer) -> Sequence[Webhook]:
        return page(answer).items

    return getting("/v1/webhooks", read)


def list_deliveries(**filters: object) -> Call[Page[WebhookDelivery]]:
    return getting("/v1/webhooks/deliveries", page_of(WebhookDelivery), **filters)


def test_webhook(name: str) -> Call[WebhookDelivery]:
    return changing("POST", f"/v1/webhooks/{segment(name)}/test", of(WebhookDelivery))
