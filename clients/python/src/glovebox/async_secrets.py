"""Secrets, for code that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Optional, Union

from glovebox import secret_calls
from glovebox.records import Secret, SecretGrant, SecretRemoval, SecretRevocation

if TYPE_CHECKING:
    from glovebox.async_client import AsyncGlovebox


class AsyncSecrets:
    """What programs may use and nobody may see: a value goes in and never comes out."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    def list(self, *, page_size: Optional[int] = None) -> AsyncIterator[Secret]:
        """What is known of each, in the order of their names."""
        return self._client._pages(
            lambda cursor: self._client._send(
                secret_calls.list_secrets(limit=page_size, cursor=cursor)
            )
        )

    async def set(
        self,
        name: str,
        value: Union[str, bytes],
        *,
        hosts: Optional[Sequence[str]] = None,
        deliveries: Optional[Sequence[str]] = None,
    ) -> Secret:
        """Its first value, or another. What is not said of `hosts` and `deliveries` stays.

            gb.secrets.set("github", token, hosts=["api.github.com:443"])
            gb.run("gh", "api", "user", secrets=["github"])
        """
        return await self._client._send(secret_calls.set_secret(name, value, hosts, deliveries))

    async def remove(self, name: str) -> SecretRemoval:
        """With every value that it had, and its grants; says which running execs still have it."""
        return await self._client._send(secret_calls.remove_secret(name))

    async def grant(
        self,
        secret: str,
        *,
        conversation_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        deliveries: Optional[Sequence[str]] = None,
        expires_at: Optional[str] = None,
    ) -> SecretGrant:
        """Lets a conversation, an agent, or an agent in a conversation have it without being asked
        about, for a day unless `expires_at` says otherwise. An agent's token cannot."""
        return await self._client._send(
            secret_calls.grant_secret(secret, conversation_id, agent_id, deliveries, expires_at)
        )

    def grants(
        self,
        *,
        secret: Optional[str] = None,
        conversation_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        include_ended: bool = False,
        page_size: Optional[int] = None,
    ) -> AsyncIterator[SecretGrant]:
        """The newest first, those that were revoked or have expired only with `include_ended`."""
        return self._client._pages(
            lambda cursor: self._client._send(
                secret_calls.list_secret_grants(
                    secret=secret,
                    conversation_id=conversation_id,
                    agent_id=agent_id,
                    all=include_ended or None,
                    limit=page_size,
                    cursor=cursor,
                )
            )
        )

    async def revoke(self, grant_id: str) -> SecretRevocation:
        """From then on people are asked again; says which running execs still have it."""
        return await self._client._send(secret_calls.revoke_secret_grant(grant_id))
