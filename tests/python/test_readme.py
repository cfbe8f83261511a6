"""The examples of the client's README, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable

import pytest

README = Path(__file__).resolve().parents[2] / "clients" / "python" / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example(
    example: str,
    url: str,
    space: str,
    new_token: Callable[[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOVEBOX_SERVER", url)
    monkeypatch.setenv("GLOVEBOX_TOKEN", new_token("agent", space))
    exec(compile(example, str(README), "exec"), {"__name__": "example"})
