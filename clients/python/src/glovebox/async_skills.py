"""Skills, for code that awaits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from glovebox import skill_calls
from glovebox.errors import ApiError
from glovebox.records import Skill, SkillAnswer, SkillList
from glovebox.request import SkillOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from glovebox.async_client import AsyncGlovebox


class AsyncSkills:
    """Programs with described inputs and outputs, and with what they may do and use."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    async def list(self) -> SkillList:
        """Those that can be called, and those that are not right with what is wrong."""
        return await self._client._send(skill_calls.list_skills())

    async def get(self, skill_id: str) -> Skill:
        """One, with its instructions and the names of its files."""
        return await self._client._send(skill_calls.get_skill(skill_id))

    async def invoke(
        self,
        skill_id: str,
        inputs: Optional[Mapping[str, Any]] = None,
        **options: Unpack[SkillOptions],
    ) -> SkillAnswer:
        """Calls it and returns when it has ended, however it ended. Inputs that do not fit are a
        `Conflict`, and start nothing.

            answer = gb.skills.invoke("python.run", {"code": "print(6 * 7)"})
            answer.output["stdout"]
        """
        answer = await self._begin(skill_id, inputs, options, wait=True)
        if answer.exec.ended:
            return answer
        await self._client.execs.wait(answer.exec_id)
        return await self.output(answer.exec_id)

    async def start(
        self,
        skill_id: str,
        inputs: Optional[Mapping[str, Any]] = None,
        **options: Unpack[SkillOptions],
    ) -> SkillAnswer:
        """Calls it and returns as soon as the server has taken it on; `output` has the rest."""
        return await self._begin(skill_id, inputs, options, wait=False)

    async def output(self, exec_id: str) -> SkillAnswer:
        """What an exec of a skill has answered, if it has ended."""
        return await self._client._send(skill_calls.output(exec_id))

    async def _begin(
        self,
        skill_id: str,
        inputs: Optional[Mapping[str, Any]],
        options: SkillOptions,
        *,
        wait: bool,
    ) -> SkillAnswer:
        body = skill_calls.body(inputs or {}, options)
        name: str = body["client_id"]
        self._client._started.begin(name)
        try:
            answer = await self._client._send(skill_calls.invoke(skill_id, body, wait=wait))
        except ApiError as error:
            if error.status < 500:
                self._client._started.forget(name)
            raise
        self._client._started.saw(answer.exec)
        return answer
