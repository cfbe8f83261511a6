"""Skills, and what they answered, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from glovebox.decode import many, maybe, one, values
from glovebox.records import Exec, ExecError


@dataclass(frozen=True)
class SkillRef:
    """A skill as it was when it was called."""

    id: str = ""
    version: Optional[str] = None
    #: `sha256:…` over all of its files.
    digest: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Skill:
    """A program with described inputs and outputs, and with what it may do and use."""

    id: str = ""
    name: str = ""
    description: str = ""
    version: Optional[str] = None
    digest: str = ""
    #: `shipped` or `directory`.
    origin: str = ""
    #: It stands in the place of one that came with Glovebox.
    replaces_shipped: bool = False
    #: Whether the policy of tools lets you call it.
    allowed: bool = False
    #: JSON Schemas.
    inputs: Mapping[str, Any] = values(dict)
    outputs: Mapping[str, Any] = values(dict)
    #: As in its manifest.
    runtime: Mapping[str, Any] = values(dict)
    permissions: Mapping[str, Any] = values(dict)
    limits: Mapping[str, Any] = values(dict)
    examples: list[Mapping[str, Any]] = values(list)
    #: The text of its `SKILL.md`, and its files: only from `skills.get`.
    instructions: Optional[str] = None
    files: Optional[list[str]] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class InvalidSkill:
    """A directory that would be a skill and is not right."""

    dir: str = ""
    error: ExecError = one(ExecError)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SkillList:
    #: By id.
    skills: list[Skill] = many(Skill)
    invalid: list[InvalidSkill] = many(InvalidSkill)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SkillAnswer:
    """A call of a skill, and what came of it. What it answers is data, whatever it says."""

    exec_id: str = ""
    status: str = ""
    skill: Optional[SkillRef] = maybe(SkillRef)
    #: None while it runs, and when it has none.
    output: Any = None
    #: Whether it is what the skill promises; None when there is none yet.
    output_valid: Optional[bool] = None
    #: What does not fit, and where.
    output_error: Optional[ExecError] = maybe(ExecError)
    exec: Exec = one(Exec)
    extra: Mapping[str, Any] = values(dict)

    @property
    def ok(self) -> bool:
        """It has ended well, and answered what it promises."""
        return self.status == "succeeded" and self.output_valid is True
