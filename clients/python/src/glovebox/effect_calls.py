"""What is asked about the effects of an exec, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

from glovebox.call import Call, changing, getting, of, query, segment
from glovebox.records import EffectPage, Exec, Settled, TaskResult

# The server answers a waiting call after ten minutes at the latest, and what is carried into a
# workspace takes its time.
_WAIT = 630.0


def effects(exec_id: str, after: int) -> Call[EffectPage]:
    return getting(f"/v1/execs/{segment(exec_id)}/effects", of(EffectPage), after=after)


def result(exec_id: str) -> Call[TaskResult]:
    return getting(f"/v1/execs/{segment(exec_id)}/result", of(TaskResult))


def apply_exec(exec_id: str) -> Call[Settled]:
    path = f"/v1/execs/{segment(exec_id)}/apply"
    return changing("POST", path, of(Settled), timeout=_WAIT)


def rerun_exec(exec_id: str, wait: bool) -> Call[Exec]:
    path = f"/v1/execs/{segment(exec_id)}/rerun"
    call = changing("POST", path, of(Exec), timeout=_WAIT)
    return call if wait else replace(call, params={"wait": query(wait)})
