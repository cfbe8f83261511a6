"""The two clients have the same methods, with the same parameters and the same results."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import glovebox
from glovebox import AsyncGlovebox, Glovebox, async_client, client

PAIRS = [
    (Glovebox, AsyncGlovebox),
    *(
        (getattr(client, name), getattr(async_client, f"Async{name}"))
        for name in ("Execs", "Workspaces", "Audit", "Settings", "Tokens")
    ),
]


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
        for value in vars(Glovebox("http://box.test")).values()
        if type(value).__module__ == "glovebox.client"
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
    assert sorted(glovebox.__all__) == glovebox.__all__
