"""The calls about skills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glovebox import request
from glovebox.call import Call, changing, getting, of, segment
from glovebox.records import Skill, SkillAnswer, SkillList
from glovebox.request import SkillOptions

# As for an exec that is waited for.
_WAIT = 630.0


def list_skills() -> Call[SkillList]:
    return getting("/v1/skills", of(SkillList))


def get_skill(skill_id: str) -> Call[Skill]:
    return getting(f"/v1/skills/{segment(skill_id)}", of(Skill))


def body(inputs: Mapping[str, Any], options: SkillOptions) -> dict[str, Any]:
    return request.skill(inputs, options)


def invoke(skill_id: str, sent: Mapping[str, Any], *, wait: bool) -> Call[SkillAnswer]:
    path = f"/v1/skills/{segment(skill_id)}/invoke"
    timeout = _WAIT if wait else 30.0
    return changing(
        "POST", path, of(SkillAnswer), json_body={**sent, "wait": wait}, timeout=timeout
    )


def output(exec_id: str) -> Call[SkillAnswer]:
    return getting(f"/v1/execs/{segment(exec_id)}/output", of(SkillAnswer))
