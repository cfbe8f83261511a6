"""What gates said about an exec before anything of it was kept, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from glovebox.decode import many, values


@dataclass(frozen=True)
class Validation:
    """What one validator of a gate said."""

    validator: str = ""
    valid: bool = False
    #: Between 0 and 1.
    confidence: float = 0.0
    reason: Optional[str] = None
    #: `MISSING_DATA`, `CONFLICT`, `OUT_OF_SCOPE`, `LOW_CONFIDENCE`, `POLICY_VIOLATION`,
    #: `TOOL_ERROR` or `NON_DETERMINISM`.
    failure_code: Optional[str] = None
    remediation: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class GateResult:
    """What one gate said."""

    gate: str = ""
    #: `passed`, `blocked` or `warning`.
    status: str = ""
    #: Nothing is kept because of this.
    blocked: bool = False
    failure_code: Optional[str] = None
    remediation: Optional[str] = None
    #: What to do after a block: `retry_alt_tool`, `ask_user`, `escalate` or `ignore`.
    recovery: Optional[str] = None
    validations: list[Validation] = many(Validation)
    extra: Mapping[str, Any] = values(dict)

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def reasons(self) -> list[str]:
        """Why it did not pass."""
        return [it.reason for it in self.validations if not it.valid and it.reason]
