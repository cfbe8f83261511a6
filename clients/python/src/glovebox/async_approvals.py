"""What waits for people, for code that awaits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Optional

from glovebox import approval_calls
from glovebox.records import Approval, Grant

if TYPE_CHECKING:
    from glovebox.async_client import AsyncGlovebox


class AsyncApprovals:
    """What people are asked before it runs. Who asked cannot answer, and an agent never does."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    def list(
        self,
        *,
        state: Optional[str] = None,
        exec_id: Optional[str] = None,
        conversation_id: Optional[str] = None,
        page_size: Optional[int] = None,
    ) -> AsyncIterator[Approval]:
        """The newest first; `state="pending"` are those that wait for an answer."""
        return self._client._pages(
            lambda cursor: self._client._send(
                approval_calls.list_approvals(
                    state=state,
                    exec_id=exec_id,
                    conversation_id=conversation_id,
                    limit=page_size,
                    cursor=cursor,
                )
            )
        )

    async def get(self, approval_id: str) -> Approval:
        return await self._client._send(approval_calls.get_approval(approval_id))

    async def reply(
        self,
        approval_id: str,
        decision: str,
        *,
        reason: Optional[str] = None,
        policy_overrides: Optional[Mapping[str, Any]] = None,
        exec: Optional[Mapping[str, Any]] = None,
        expires_at: Optional[str] = None,
    ) -> Approval:
        """`allow_once`, `allow_kind` (until `expires_at`), `narrow` (with `policy_overrides`), `edit`
        (with `exec`) or `deny`. What was answered already is a `Conflict`; after its time it is `Expired`.

            gb.approvals.reply(it.id, "narrow", policy_overrides={"memory": "1G"})
        """
        return await self._client._send(
            approval_calls.reply(
                approval_id, decision, reason, policy_overrides, exec, expires_at
            )
        )

    async def allow(
        self, approval_id: str, *, kind: bool = False, reason: Optional[str] = None
    ) -> Approval:
        """Lets it run; with `kind` also its kind in this conversation from now on."""
        return await self.reply(approval_id, "allow_kind" if kind else "allow_once", reason=reason)

    async def deny(self, approval_id: str, *, reason: Optional[str] = None) -> Approval:
        return await self.reply(approval_id, "deny", reason=reason)

    async def watch(
        self, *, every: float = 1.0, seconds: Optional[float] = None
    ) -> AsyncIterator[Approval]:
        """Each that waits for an answer, once, as it comes; until `seconds` have passed, or you
        stop.

            for it in gb.approvals.watch():
                print(it.ask.description)
                gb.approvals.deny(it.id, reason="nobody is here")
        """
        until = None if seconds is None else time.monotonic() + seconds
        seen: set[str] = set()
        while True:
            waiting = [it async for it in self.list(state="pending")]
            for it in reversed(waiting):
                if it.id not in seen:
                    yield it
            seen = {it.id for it in waiting}
            if until is not None and time.monotonic() >= until:
                return
            await asyncio.sleep(every)


class AsyncGrants:
    """What `allow_kind` has allowed."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    def list(
        self,
        *,
        conversation_id: Optional[str] = None,
        revoked: bool = False,
        page_size: Optional[int] = None,
    ) -> AsyncIterator[Grant]:
        """The newest first, those that were revoked only with `revoked`."""
        return self._client._pages(
            lambda cursor: self._client._send(
                approval_calls.list_grants(
                    conversation_id=conversation_id,
                    revoked=revoked or None,
                    limit=page_size,
                    cursor=cursor,
                )
            )
        )

    async def revoke(self, grant_id: str) -> Grant:
        """From then on people are asked again."""
        return await self._client._send(approval_calls.revoke_grant(grant_id))
