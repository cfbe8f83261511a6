"""Reads what a run of schemathesis did, and says whether it proves anything.

usage: judge.py ROLE LEAST OPENAPI REPORT EVENTS STATUS
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def interactions(events: Path) -> Iterator[tuple[str, str, int | None]]:
    """Method, path of the description, and status of every request."""
    with events.open() as lines:
        for line in lines:
            scenario = json.loads(line).get("ScenarioFinished")
            recorder = scenario["recorder"] if scenario else {}
            for name, made in recorder.get("interactions", {}).items():
                case = recorder["cases"][name]["value"]
                response = made.get("response") or {}
                yield case["method"], case["path"], response.get("status_code")


def given_up(events: Path) -> int:
    """How often schemathesis could not make what it wanted to send: one of its generators cannot
    turn around what an array of the description says. That is no request and no answer; the cases
    of every operation are counted all the same."""
    with events.open() as lines:
        errors = (json.loads(line).get("NonFatalError") for line in lines)
        return sum("demanded elements" in json.dumps(error) for error in errors if error)


def documented(document: dict[str, Any], method: str, path: str) -> set[str] | None:
    operation = document["paths"].get(path, {}).get(method.lower())
    return None if operation is None else set(operation["responses"])


def has_inputs(document: dict[str, Any], operation: str) -> bool:
    method, _, path = operation.partition(" ")
    found = document["paths"][path][method.lower()]
    return bool(found.get("parameters") or found.get("requestBody"))


def main() -> int:
    role, least = sys.argv[1], int(sys.argv[2])
    document, report = (json.loads(Path(name).read_text()) for name in sys.argv[3:5])
    statuses: Counter[int | None] = Counter()
    cases: Counter[str] = Counter()
    problems: list[str] = []
    for method, path, status in interactions(Path(sys.argv[5])):
        statuses[status] += 1
        known = documented(document, method, path)
        if known is not None:
            cases[f"{method} {path}"] += 1
        if status is None:
            problems.append(f"{method} {path}: no answer")
        elif status >= 500:
            problems.append(f"{method} {path}: {status}")
        # A method that is not described has one right answer, also if it is not described.
        elif str(status) not in (known or {"401", "403", "404", "405", "429"}):
            problems.append(f"{method} {path}: {status} is not documented")
    operations = [
        f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
    ]
    # Nothing is sent twice: an operation that takes little may come to a little less.
    enough = max(1, least * 3 // 4)
    for operation in operations:
        if cases[operation] < (enough if has_inputs(document, operation) else 1):
            problems.append(f"{operation}: only {cases[operation]} cases")
    if not report["complete"] or report["operations"]["tested"] != len(operations):
        problems.append(f"not complete: {report['stop_reason']}, {report['operations']}")
    failures = report["test_cases"]["unique_failures"]
    unmade = given_up(Path(sys.argv[5]))
    errors = sum(error["count"] for error in report.get("errors", [])) - unmade
    if sys.argv[6] not in ("0", "1" if failures or errors or unmade else "0"):
        problems.append(f"schemathesis ended with {sys.argv[6]}")
    shown = " ".join(f"{status}:{count}" for status, count in sorted(statuses.items(), key=str))
    print(
        f"{role:9} {len(operations)} operations, {statuses.total()} requests, "
        f"{failures} failures, {errors} errors, {unmade} not made, "
        f"{report['running_time']:.0f} s; {shown}"
    )
    for problem, count in Counter(problems).most_common(20):
        print(f"  {count} x {problem}")
    return 1 if problems or failures or errors else 0


sys.exit(main())
