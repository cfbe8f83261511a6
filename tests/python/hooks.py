"""What schemathesis is told beside the description of the API."""

from __future__ import annotations

import itertools
import re
from typing import Any

import schemathesis

_numbers = itertools.count()
_KEY = re.compile(r"[!-~]{1,255}")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Gives most requests an idempotency key of their own. Few different keys are generated, and
    with a key that was used every request but the first is answered before anything is done. Every
    eighth keeps its key, and so do those that are not valid."""
    del context, kwargs
    number = next(_numbers)
    if number % 8 == 0:
        return
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and _KEY.fullmatch(key):
        case.headers["Idempotency-Key"] = f"key-{number}"
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("request_id"), str):
        if _KEY.fullmatch(body["request_id"]):
            case.body = {**body, "request_id": f"key-{number}"}
