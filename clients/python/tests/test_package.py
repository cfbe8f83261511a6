"""What the package exports, and which Python it is written in."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import glovebox
from glovebox import events, records


def _is_of(value: object, module: Any) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__


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
    for module in (events, records):
        read = {name for name, value in vars(module).items() if _is_of(value, module)}
        assert read <= set(glovebox.__all__), module
    assert sorted(glovebox.__all__) == glovebox.__all__
