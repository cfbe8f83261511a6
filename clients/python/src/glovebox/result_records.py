"""An exec as workflow engines want to see it: success, data, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Optional

from glovebox.decode import many, maybe, one, values
from glovebox.effect_records import Effect
from glovebox.gate_records import Validation


@dataclass(frozen=True)
class CrvValidation:
    """What all gates said together."""

    SAID: ClassVar[Mapping[str, str]] = {
        "blocked_commit": "blockedCommit",
        "validation_results": "validationResults",
    }

    passed: bool = False
    blocked_commit: bool = False
    validation_results: list[Validation] = many(Validation)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class ResourceUsage:
    #: Milliseconds of processor time.
    cpu: int = 0
    #: Bytes.
    memory: int = 0
    #: Bytes that were written beside the workspace.
    disk: int = 0
    #: Bytes in both directions.
    network: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class TaskMetadata:
    SAID: ClassVar[Mapping[str, str]] = {
        "sandbox_id": "sandboxId",
        "execution_time": "executionTime",
        "simulation_mode": "simulationMode",
        "side_effects": "sideEffects",
        "side_effect_count": "sideEffectCount",
        "crv_validation": "crvValidation",
        "hip_cortex_entry_id": "hipCortexEntryId",
        "resource_usage": "resourceUsage",
        "permission_violations": "permissionViolations",
        "resource_limit_exceeded": "resourceLimitExceeded",
    }

    #: `none` for what ran without a sandbox.
    sandbox_id: str = ""
    #: Milliseconds.
    execution_time: int = 0
    simulation_mode: bool = False
    #: The first of them; `execs.effects` has all.
    side_effects: list[Effect] = many(Effect)
    side_effect_count: int = 0
    crv_validation: Optional[CrvValidation] = maybe(CrvValidation)
    #: The entry of the ledger, `SEQ:HASH`.
    hip_cortex_entry_id: Optional[str] = None
    resource_usage: ResourceUsage = one(ResourceUsage)
    permission_violations: list[str] = values(list)
    resource_limit_exceeded: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class TaskResult:
    """A view of an exec's record."""

    #: The program succeeded, nothing that policy forbids was tried, and no gate blocks.
    success: bool = False
    #: What it printed: JSON where it is JSON, else text.
    data: Any = None
    error: Optional[str] = None
    metadata: TaskMetadata = one(TaskMetadata)
    extra: Mapping[str, Any] = values(dict)
