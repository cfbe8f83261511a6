"""What is known of secrets, as the server tells it. No record ever has a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from glovebox.decode import many, moment, one, values


@dataclass(frozen=True)
class Secret:
    """A secret without its value."""

    name: str = ""
    #: Counts the values that it had.
    version: int = 0
    #: Where a brokered value may go.
    hosts: list[str] = values(list)
    #: The ways in which it may be given to a program: `file`, `descriptor`, `broker`, `env`.
    deliveries: list[str] = values(list)
    created_at: Optional[datetime] = moment()
    updated_at: Optional[datetime] = moment()
    last_used_at: Optional[datetime] = moment()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SecretGrant:
    """That some may have a secret without being asked about each time."""

    grant_id: str = ""
    secret: str = ""
    conversation_id: Optional[str] = None
    agent_id: Optional[str] = None
    deliveries: list[str] = values(list)
    granted_by: str = ""
    granted_at: Optional[datetime] = moment()
    expires_at: Optional[datetime] = moment()
    revoked_at: Optional[datetime] = moment()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SecretGiven:
    """What an exec was given."""

    name: str = ""
    version: int = 0
    delivery: str = "file"
    #: The standing grant that gave it; without one somebody agreed to this exec.
    grant_id: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SecretHold:
    """A running exec that has a value where nobody can take it away."""

    exec_id: str = ""
    secret: str = ""
    version: int = 0
    delivery: str = ""
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SecretRemoval:
    """A secret that is gone."""

    secret: Secret = one(Secret)
    #: Grants that ended with it.
    revoked: list[SecretGrant] = many(SecretGrant)
    #: Running execs that keep the value until they end.
    still_held: list[SecretHold] = many(SecretHold)
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class SecretRevocation:
    """Grants that give nothing any more."""

    revoked: list[SecretGrant] = many(SecretGrant)
    #: Running execs that keep the value until they end.
    still_held: list[SecretHold] = many(SecretHold)
    extra: Mapping[str, Any] = values(dict)
