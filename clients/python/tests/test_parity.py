"""The two clients have the same methods, with the same parameters and the same results."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import glovebox
from glovebox import (
    AsyncGlovebox,
    Glovebox,
    approval_records,
    async_client,
    audit_records,
    change_records,
    client,
    effect_records,
    file_records,
    gate_records,
    network_records,
    records,
    result_records,
    secret_records,
    skill_records,
    snapshot_records,
    traffic_records,
)
from glovebox.approvals import Approvals, Grants
from glovebox.async_approvals import AsyncApprovals, AsyncGrants
from glovebox.async_audit import AsyncAudit
from glovebox.async_execs import AsyncExecs
from glovebox.async_secrets import AsyncSecrets
from glovebox.async_skills import AsyncSkills
from glovebox.async_snapshots import AsyncSnapshots
from glovebox.async_webhooks import AsyncWebhooks
from glovebox.async_workspaces import AsyncWorkspaces
from glovebox.audit import Audit
from glovebox.execs import Execs
from glovebox.secrets import Secrets
from glovebox.skills import Skills
from glovebox.snapshots import Snapshots
from glovebox.webhooks import Webhooks
from glovebox.workspaces import Workspaces

PAIRS = [
    (Glovebox, AsyncGlovebox),
    (Execs, AsyncExecs),
    (Audit, AsyncAudit),
    (Workspaces, AsyncWorkspaces),
    (Snapshots, AsyncSnapshots),
    (Approvals, AsyncApprovals),
    (Grants, AsyncGrants),
    (Secrets, AsyncSecrets),
    (Webhooks, AsyncWebhooks),
    (Skills, AsyncSkills),
    *(
        (getattr(client, name), getattr(async_client, f"Async{name}"))
        for name in ("Sandboxes", "Settings", "Tokens")
    ),
]


def _is_of(value: object, module: Any) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__


def methods(kind: type) -> dict[str, Any]:
    return {
        name: function
        for name, function in vars(kind).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


def plain(signature: inspect.Signature) -> str:
    text = re.sub(r"\bAsync(?=Iterator|Glovebox|Base|Execs)", "", str(signature))
    return text.replace("httpx.AsyncBaseTransport", "httpx.BaseTransport")


@pytest.mark.parametrize(("waits", "awaits"), PAIRS)
def test_methods_are_the_same(waits: type, awaits: type) -> None:
    one, other = methods(waits), methods(awaits)
    assert list(one) == list(other) and (one or waits is None)
    for name, function in one.items():
        assert plain(inspect.signature(function)) == plain(inspect.signature(other[name])), name
        assert function.__doc__ == other[name].__doc__, name
    inits = [plain(inspect.signature(kind.__init__)) for kind in (waits, awaits)]  # type: ignore[misc]
    assert inits[0] == inits[1]


def test_every_group_is_compared() -> None:
    groups = {
        type(value)
        for name, value in vars(Glovebox("http://box.test")).items()
        if not name.startswith("_")
    }
    assert groups == {waits for waits, _ in PAIRS[1:]}


def test_the_source_is_python_3_9() -> None:
    files = list(Path(glovebox.__file__).parent.glob("*.py"))
    assert len(files) > 10
    for file in files:
        ast.parse(file.read_text(), feature_version=(3, 9))


def test_what_is_exported_is_all_there_is() -> None:
    raised = {
        name
        for name, value in vars(glovebox.errors).items()
        if inspect.isclass(value) and issubclass(value, glovebox.GloveboxError)
    }
    assert raised <= set(glovebox.__all__)
    for module in (
        approval_records,
        audit_records,
        change_records,
        effect_records,
        file_records,
        gate_records,
        network_records,
        records,
        result_records,
        secret_records,
        skill_records,
        snapshot_records,
        traffic_records,
    ):
        read = {name for name, value in vars(module).items() if _is_of(value, module)}
        assert read - {"Page", "Problem"} <= set(glovebox.__all__), module
    assert sorted(glovebox.__all__) == glovebox.__all__
