#!/usr/bin/env python3
"""Writes the modules that follow from others: those that wait, from those that await.

    python3 clients/python/generate.py            # writes them
    python3 clients/python/generate.py --check    # fails, and names those that would change
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src" / "glovebox"

# What becomes of a module that awaits, `async_NAME.py`, in the one that waits, `NAME.py`.
WAITING = (
    (r"\basync (?=def|for|with)", ""),
    (r"\bawait ", ""),
    (r"\bawaits\b", "waits"),
    (r"\bAwaitable, ", ""),
    (r"\bAwaitable\[(\w+\[\w+\])\]", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=\w)", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(?=enter__|exit__)", "__"),
    (r"\ba(?=close\b|read\b|iter_bytes\b)", ""),
    (r"\basyncio\.to_thread\(([\w.]+), ", r"\1("),
    (r"\basyncio(?=\.sleep\b|$)", "time"),
)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    changed = stale(outputs())
    for path, text in changed.items():
        print(path.relative_to(HERE))
        if not arguments:
            path.write_text(text, encoding="utf-8")
    return 1 if arguments and changed else 0


def stale(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """Those that are not what they should be."""
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def outputs() -> dict[Path, str]:
    """Every module that is generated, with its text."""
    found = {}
    for path in sorted(SOURCE.glob("async_*.py")):
        target = path.with_name(path.name.removeprefix("async_"))
        found[target] = header(path.name) + waiting(path)
    return found


def header(source: str) -> str:
    return f"# Generated from {source} by clients/python/generate.py: change those, not this.\n"


def waiting(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    for pattern, instead in WAITING:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    # `time` may be there twice now.
    text = re.sub(r"(?:^import \w+\n)+", _in_order, text, count=1, flags=re.MULTILINE)
    for number, line in enumerate(text.splitlines(), 1):
        if re.search("async|await", line, re.IGNORECASE):
            raise SystemExit(f"{path.name}:{number}: no rule says how to wait here: {line.strip()}")
    return text


def _in_order(imports: re.Match[str]) -> str:
    return "".join(sorted(set(imports[0].splitlines(keepends=True))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
