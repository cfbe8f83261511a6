"""The calls about approvals and grants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from glovebox.call import Call, Page, changing, getting, of, page_of, segment
from glovebox.records import Approval, Grant, Replayed

# An answer plans the exec anew.
_ANSWER = 90.0


def list_approvals(**filters: object) -> Call[Page[Approval]]:
    return getting("/v1/approvals", page_of(Approval), **filters)


def get_approval(approval_id: str) -> Call[Approval]:
    return getting(f"/v1/approvals/{segment(approval_id)}", of(Approval))


def reply(
    approval_id: str,
    decision: str,
    reason: Optional[str],
    policy_overrides: Optional[Mapping[str, Any]],
    exec: Optional[Mapping[str, Any]],
    expires_at: Optional[str],
) -> Call[Approval]:
    said = {
        "reason": reason,
        "policy_overrides": policy_overrides,
        "exec": exec,
        "expires_at": expires_at,
    }
    body = {"decision": decision, **{key: it for key, it in said.items() if it is not None}}
    path = f"/v1/approvals/{segment(approval_id)}/reply"
    return changing("POST", path, of(Approval), json_body=body, timeout=_ANSWER)


def list_grants(**filters: object) -> Call[Page[Grant]]:
    return getting("/v1/grants", page_of(Grant), **filters)


def revoke_grant(grant_id: str) -> Call[Grant]:
    return changing("DELETE", f"/v1/grants/{segment(grant_id)}", of(Grant))


def replay_policy(config: str, limit: Optional[int]) -> Call[Replayed]:
    body: dict[str, Any] = {"config": config}
    if limit is not None:
        body["limit"] = limit
    return changing("POST", "/v1/policy/replay", of(Replayed), json_body=body, timeout=_ANSWER)
