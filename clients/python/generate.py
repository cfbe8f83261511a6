#!/usr/bin/env python3
"""Writes the modules that follow from something else: those that wait from those that await, the
records from `openapi.json`, and what the package exports from what it has.

    python3 clients/python/generate.py            # writes them
    python3 clients/python/generate.py --check    # fails, and names those that would change
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

# Nothing but what is generated is written beside the sources.
sys.dont_write_bytecode = True

from generate_records import Records, Words, field_order

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src" / "glovebox"
API = HERE.parents[1] / "openapi.json"
WORDS = HERE / "records.in.py"

PACKAGE = '''"""Runs commands and code in Glovebox's sandboxes.

    from glovebox import Glovebox

    with Glovebox() as gb:
        print(gb.run_python("print(6 * 7)").stdout)

`Glovebox` waits, `AsyncGlovebox` awaits; both have the same methods.
"""'''

# What the package exports beside all records and errors.
EXPORTED = {
    "async_client": ["AsyncGlovebox"],
    "async_sessions": ["AsyncSession"],
    "call": ["FileContent"],
    "client": ["Glovebox"],
    "events": ["Event", "Found", "Printed", "WatchEvent"],
    "request": ["SessionOptions", "SkillOptions"],
    "retry": ["Patience"],
    "sessions": ["Session"],
}

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
    (r"\b__a(?=enter__|exit__|iter__)", "__"),
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
    every, target = records(), SOURCE / "records.py"
    found[target] = header(f"{API.name} and {WORDS.name}") + every.text()
    found[SOURCE / "__init__.py"] = header("its modules") + package(every.classes.values())
    return found


def records() -> Records:
    api = json.loads(API.read_text(encoding="utf-8"))
    target = SOURCE / "records.py"
    order = field_order(target.read_text(encoding="utf-8")) if target.exists() else {}
    return Records(api, Words.read(WORDS), order)


def header(source: str) -> str:
    return f"# Generated from {source} by clients/python/generate.py: do not edit.\n"


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


def package(classes: Iterable[str]) -> str:
    errors = ast.parse((SOURCE / "errors.py").read_text(encoding="utf-8")).body
    raised = [node.name for node in errors if isinstance(node, ast.ClassDef)]
    exported = {**EXPORTED, "errors": raised, "records": list(classes)}
    names = sorted(name for found in exported.values() for name in found)
    lines = [PACKAGE, ""]
    for module, found in sorted(exported.items()):
        lines += [f"from glovebox.{module} import (", *(f"    {it}," for it in sorted(found)), ")"]
    lines += ["from glovebox.version import VERSION as __version__", "", "__all__ = ["]
    lines += [*(f'    "{name}",' for name in [*names, "__version__"]), "]", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
