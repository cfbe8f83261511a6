"""What schemathesis is told beside the description of the API."""

from __future__ import annotations

import itertools
import re
from typing import Any

import schemathesis

_numbers = itertools.count()
_KEY = re.compile(r"[!-~]{1,255}")
_EXPECTED = {
    "If-Match": re.compile(r'\*|(?:W/)?"[!#-~]+"(?:, *(?:W/)?"[!#-~]+")*'),
    "If-None-Match": re.compile(r"\*"),
}


def _goes_on(query: dict[str, Any]) -> bool:
    """Whether a watch is asked to go on; what says so may be a number, its text, or a list of one."""
    seconds = query.get("seconds", 0)
    if isinstance(seconds, list) and len(seconds) == 1:
        (seconds,) = seconds
    return seconds is None or re.fullmatch("[0-9]{1,5}", str(seconds)) is not None


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Gives most requests an idempotency key of their own. Few different keys are generated, and
    with a key that was used every request but the first is answered before anything is done. Every
    eighth keeps its key, and so do those that are not valid. A watch that would go on ends at once:
    nobody reads it. What a write expects to be there is left out: that it is not there is a 412, which
    schemathesis takes for a refusal of a good request."""
    del context, kwargs
    number = next(_numbers)
    if case.method == "GET" and case.path.endswith("/watch"):
        if _goes_on(case.query or {}):
            case.query = {**(case.query or {}), "seconds": 0}
    if case.method == "PUT" and case.path.endswith("/files/{path}"):
        for name, form in _EXPECTED.items():
            value = (case.headers or {}).get(name)
            if isinstance(value, str) and form.fullmatch(value):
                del case.headers[name]
    if number % 8 == 0:
        return
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and _KEY.fullmatch(key):
        case.headers["Idempotency-Key"] = f"key-{number}"
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("request_id"), str):
        if _KEY.fullmatch(body["request_id"]):
            case.body = {**body, "request_id": f"key-{number}"}
