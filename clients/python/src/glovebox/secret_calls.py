"""The calls about secrets."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Optional, Union

from glovebox.call import Call, Page, changing, getting, of, page_of, segment
from glovebox.records import Secret, SecretGrant, SecretRemoval, SecretRevocation


def list_secrets(**filters: object) -> Call[Page[Secret]]:
    return getting("/v1/secrets", page_of(Secret), **filters)


def set_secret(
    name: str,
    value: Union[str, bytes],
    hosts: Optional[Sequence[str]],
    deliveries: Optional[Sequence[str]],
) -> Call[Secret]:
    raw = value.encode() if isinstance(value, str) else bytes(value)
    body: dict[str, Any] = {"value_base64": base64.b64encode(raw).decode("ascii")}
    if hosts is not None:
        body["hosts"] = list(hosts)
    if deliveries is not None:
        body["deliveries"] = list(deliveries)
    return changing("PUT", f"/v1/secrets/{segment(name)}", of(Secret), json_body=body)


def remove_secret(name: str) -> Call[SecretRemoval]:
    return changing("DELETE", f"/v1/secrets/{segment(name)}", of(SecretRemoval))


def list_secret_grants(**filters: object) -> Call[Page[SecretGrant]]:
    return getting("/v1/secret-grants", page_of(SecretGrant), **filters)


def grant_secret(
    secret: str,
    conversation_id: Optional[str],
    agent_id: Optional[str],
    deliveries: Optional[Sequence[str]],
    expires_at: Optional[str],
) -> Call[SecretGrant]:
    said = {
        "conversation_id": conversation_id,
        "agent_id": agent_id,
        "deliveries": None if deliveries is None else list(deliveries),
        "expires_at": expires_at,
    }
    body = {"secret": secret, **{key: it for key, it in said.items() if it is not None}}
    return changing("POST", "/v1/secret-grants", of(SecretGrant), json_body=body)


def revoke_secret_grant(grant_id: str) -> Call[SecretRevocation]:
    return changing("DELETE", f"/v1/secret-grants/{segment(grant_id)}", of(SecretRevocation))
