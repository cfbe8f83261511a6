"""When a call is tried again, and after how long. Every call is safe to repeat: reading changes
nothing, and whatever changes something carries an idempotency key."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional

from glovebox.errors import ApiError, ConnectionFailed, GloveboxError

_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Patience:
    """How often a call is repeated. A pause that would be longer than `longest` seconds, such as
    that of a budget which opens in half an hour, is the caller's to decide: the error is raised."""

    retries: int = 4
    longest: float = 30.0
    first: float = 0.2

    def pause(self, failures: int, error: GloveboxError) -> Optional[float]:
        """Seconds to wait after the call failed `failures` times, or None to give up."""
        if failures > self.retries or not _may_pass(error):
            return None
        asked = error.retry_after if isinstance(error, ApiError) else None
        if asked is not None and asked > self.longest:
            return None
        # With jitter, so that clients that failed together do not come back together.
        own = self.first * 2.0 ** (failures - 1) * random.uniform(0.5, 1.0)
        return min(max(own, asked or 0.0), self.longest)


def _may_pass(error: GloveboxError) -> bool:
    if isinstance(error, ApiError):
        return error.status in _STATUSES and error.retry_allowed
    return isinstance(error, ConnectionFailed) and error.passing
