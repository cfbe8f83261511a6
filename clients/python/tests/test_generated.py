"""What is generated is what the script makes of its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

import generate


def test_nothing_that_is_generated_is_stale_or_was_edited() -> None:
    changed = sorted(path.name for path in generate.stale(generate.outputs()))
    assert changed == [], "run `python3 clients/python/generate.py`"


def test_what_says_that_it_is_generated_is() -> None:
    says = {
        path
        for path in generate.SOURCE.glob("*.py")
        if path.read_text().startswith("# Generated from ")
    }
    assert says == set(generate.outputs())
    assert {"client.py", "execs.py", "workspaces.py"} <= {path.name for path in says}


def test_what_has_no_other_form_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "async_it.py"
    source.write_text("import asyncio\n\nasync def both() -> None:\n    await asyncio.gather()\n")
    with pytest.raises(SystemExit, match=r"async_it.py:4: .* asyncio\.gather\(\)"):
        generate.waiting(source)
