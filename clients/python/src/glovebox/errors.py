"""What can go wrong, one class for each thing that a caller may want to tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from glovebox.records import Exec, SessionInfo


# Characters of a session's output in a message.
_SHOWN = 200


class GloveboxError(Exception):
    """Everything that this package raises on purpose."""


class ConnectionFailed(GloveboxError):
    """The server could not be reached, or the connection was cut, also after the last retry."""

    def __init__(self, message: str, *, passing: bool = True) -> None:
        super().__init__(message)
        #: Trying again may help.
        self.passing = passing


class UnexpectedAnswer(GloveboxError):
    """The answer is not what a Glovebox server says: something else listens there, or answers."""


class WaitTimeout(GloveboxError, TimeoutError):
    """The exec did not end within the time that the caller gave. It still runs."""

    def __init__(self, exec_id: str, seconds: float) -> None:
        super().__init__(f"`{exec_id}` did not end within {seconds:g} s; it still runs")
        self.exec_id = exec_id
        self.seconds = seconds


class ExecFailed(GloveboxError):
    """Raised by `Exec.check()`: the exec ended, and not well."""

    def __init__(self, exec: Exec) -> None:
        held = "; ".join(why for gate in exec.gates if gate.blocked for why in gate.reasons)
        why = exec.error.message if exec.error else held
        why = why or exec.stderr.strip().rpartition("\n")[2]
        code = "" if exec.exit_code is None else f" with exit code {exec.exit_code}"
        limit = "" if exec.limit_hit is None else f" at the limit `{exec.limit_hit}`"
        how = f"`{exec.exec_id}` is `{exec.status}`{code}{limit}"
        super().__init__(how + (f": {why}" if why else ""))
        self.exec = exec


class ExpectTimeout(GloveboxError, TimeoutError):
    """It did not appear within the time that the caller gave. The session goes on, and what it put
    out meanwhile is still to be read."""

    def __init__(self, session_id: str, cue: str, seconds: float, seen: str) -> None:
        super().__init__(
            f"`{session_id}` did not put out {cue!r} within {seconds:g} s, but {_end(seen)}"
        )
        self.session_id = session_id
        self.seconds = seconds
        #: What it put out since it was last read.
        self.seen = seen


class SessionEnded(GloveboxError):
    """The session ended before what was expected appeared. What it put out is still to be read."""

    def __init__(self, info: SessionInfo, cue: str, seen: str) -> None:
        code = "" if info.exit_code is None else f" with exit code {info.exit_code}"
        how = f"`{info.session_id}` is `{info.state}`{code}"
        super().__init__(f"{how}, and did not put out {cue!r}, but {_end(seen)}")
        self.info = info
        #: What it put out since it was last read.
        self.seen = seen


class CleanupFailed(GloveboxError):
    """`close()` could not cancel these execs: they may still run."""

    def __init__(self, failures: Mapping[str, GloveboxError]) -> None:
        super().__init__(f"may still run: {', '.join(f'`{name}`' for name in failures)}")
        self.failures = dict(failures)


def _end(seen: str) -> str:
    if not seen:
        return "nothing"
    return repr(seen) if len(seen) <= _SHOWN else f"…{seen[-_SHOWN:]!r}"


class ApiError(GloveboxError):
    """The server refused. `code` is stable; `message` and `hints` are for people."""

    def __init__(self, status: int, report: Mapping[str, Any]) -> None:
        retry = report.get("retry") or {}
        after = retry.get("after_ms")
        self.status = status
        self.code: str = report.get("code") or f"http_{status}"
        self.message: str = report.get("message") or f"the server answered {status}"
        self.stage: Optional[str] = report.get("stage")
        self.blame: Optional[str] = report.get("blame")
        self.hints: list[str] = list(report.get("hints") or [])
        self.causes: list[str] = list(report.get("causes") or [])
        self.rule: Optional[Mapping[str, Any]] = report.get("rule")
        self.request_id: Optional[str] = report.get("request_id")
        self.exec_id: Optional[str] = report.get("exec_id")
        #: Whether the same call may succeed later.
        self.retry_allowed: bool = bool(retry.get("allowed", False))
        #: Seconds until it makes sense to try again, where the server says so.
        self.retry_after: Optional[float] = None if after is None else after / 1000
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        lines += [f"hint: {hint}" for hint in self.hints]
        return "\n".join(lines)


class InvalidArgument(ApiError):
    pass


class Unauthenticated(ApiError):
    pass


class Forbidden(ApiError):
    """This token may not do that."""


class PolicyDenied(ApiError):
    """Policy does not allow the exec. `exec_id` names the record of the refusal."""


class Denied(PolicyDenied):
    """A person said no, or nobody could be asked. Nothing was run."""


class NotFound(ApiError):
    pass


class MethodNotAllowed(ApiError):
    pass


class RequestTimeout(ApiError):
    pass


class Conflict(ApiError):
    pass


class Held(Conflict):
    """A gate holds the exec back, so nothing of it is made true."""


class IdempotencyConflict(Conflict):
    """The same idempotency key came with another request."""


class Expired(ApiError):
    """It was kept for its time and is gone."""


class PayloadTooLarge(ApiError):
    pass


class UnsupportedMediaType(ApiError):
    pass


class RateLimited(ApiError):
    """Too many calls, or the queue is full. `retry_after` says when to come back."""


class BudgetExceeded(RateLimited):
    """The agent used up what it may use in an hour."""


class ServerError(ApiError):
    """The server or its host cannot do it now."""


class Unavailable(ServerError):
    pass


class DiskFull(ServerError):
    pass


BY_CODE: Mapping[str, type[ApiError]] = {
    "approval_unavailable": Denied,
    "awaiting_approval": Conflict,
    "backend_unavailable": Unavailable,
    "budget_exceeded": BudgetExceeded,
    "busy": Unavailable,
    "canceled": Conflict,
    "command_not_executable": InvalidArgument,
    "command_not_found": InvalidArgument,
    "conflict": Conflict,
    "cwd_not_found": InvalidArgument,
    "denied": Denied,
    "disk_full": DiskFull,
    "expired": Expired,
    "forbidden": Forbidden,
    "held": Held,
    "idempotency_conflict": IdempotencyConflict,
    "internal": ServerError,
    "invalid_argument": InvalidArgument,
    "invalid_config": InvalidArgument,
    "invalid_input": Conflict,
    "invalid_manifest": Conflict,
    "invalid_output": Conflict,
    "ledger_tampered": ServerError,
    "lost": Unavailable,
    "method_not_allowed": MethodNotAllowed,
    "not_found": NotFound,
    "payload_too_large": PayloadTooLarge,
    "policy_denied": PolicyDenied,
    "rate_limited": RateLimited,
    "request_timeout": RequestTimeout,
    "setup_failed": Unavailable,
    "shutting_down": Unavailable,
    "skills_not_configured": Unavailable,
    "store_unavailable": Unavailable,
    "unauthenticated": Unauthenticated,
    "unsupported_media_type": UnsupportedMediaType,
    "workspace_refused": InvalidArgument,
}

# For a code that this version does not know, and for answers of a proxy in between.
_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidArgument,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    408: RequestTimeout,
    409: Conflict,
    410: Expired,
    412: Conflict,
    413: PayloadTooLarge,
    415: UnsupportedMediaType,
    416: InvalidArgument,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: DiskFull,
}


def from_answer(status: int, headers: Mapping[str, str], body: Any) -> ApiError:
    """The error that an answer with this status is. `body` is its JSON, or None."""
    found = body.get("error") if isinstance(body, dict) else None
    report: dict[str, Any] = dict(found) if isinstance(found, dict) else {}
    report.setdefault("request_id", headers.get("x-request-id"))
    kind = BY_CODE.get(report.get("code", "")) or _BY_STATUS.get(status)
    if kind is None:
        kind = ServerError if status >= 500 else ApiError
    error = kind(status, report)
    if "retry" not in report:
        error.retry_allowed = status in (429, 502, 503, 504)
    header = headers.get("retry-after", "")
    # The header is in whole seconds, so it may be later than `after_ms`, never earlier.
    if error.retry_after is None and header.isascii() and header.isdigit():
        error.retry_after = float(header)
    return error
