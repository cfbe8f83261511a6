"""Tools that know of simulations, and tools that do not, with a socket that answers as the
sandbox's does."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from glovebox import simulation
from glovebox.simulation import (
    CONTEXT_KEY,
    Context,
    NotSimulationAware,
    Outcome,
    SimulationError,
    run_tool,
    simulation_aware,
)

DATA = {"rate": 1.17, "nothing": None}
#: What each question must have, and what it may have.
QUESTIONS: dict[str, tuple[set[str], set[str]]] = {
    "context": (set(), set()),
    "outcome": ({"tool"}, set()),
    "record": (
        {"type", "target", "action"},
        {"data", "failure_reason", "simulated_result"},
    ),
}


class Desk:
    """The sandbox's side: one line of JSON for each line, and nothing that it does not know."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.recorded: list[dict[str, Any]] = []
        self.asked = 0
        #: How many callers find no place, and whether what they say is read before they notice.
        self.full = 0
        self.reads = False
        #: What is said instead, if anything.
        self.instead: Optional[bytes] = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                wire, _ = self._listener.accept()
            except OSError:
                return
            with wire:
                if self.full > 0:
                    self.full -= 1
                    if self.reads:
                        wire.recv(65536)
                    continue
                with wire.makefile("rb") as lines:
                    wire.sendall(self._answer(lines.readline()))

    def _answer(self, line: bytes) -> bytes:
        self.asked += 1
        if self.instead is not None:
            return self.instead
        question = json.loads(line)
        op = question.pop("op")
        must, may = QUESTIONS[op]
        if not must <= set(question) <= must | may:
            return b'{"ok": false, "error": "that is no request"}\n'
        return json.dumps({"ok": True, **self._said(op, question)}).encode() + b"\n"

    def _said(self, op: str, question: dict[str, Any]) -> dict[str, Any]:
        if op == "context":
            return {"isSimulation": True, "exec_id": "e_1", "simulatedResponses": DATA}
        if op == "outcome":
            limited = {"delay_ms": 0, "fault": "rate_limit", "retry_after_ms": 9}
            fine = {"delay_ms": 5, "fault": None}
            return {"outcome": limited if question["tool"] == "busy" else fine}
        self.recorded.append(question)
        return {"seq": len(self.recorded)}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    made = Desk(str(tmp_path / "effects.sock"))
    monkeypatch.setenv("GLOVEBOX_SIMULATION", "1")
    monkeypatch.setenv("GLOVEBOX_EFFECTS", made.path)
    yield made
    made.close()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLOVEBOX_SIMULATION", raising=False)
    monkeypatch.delenv("GLOVEBOX_EFFECTS", raising=False)


def never(params: dict[str, Any]) -> None:
    raise AssertionError("it was run for real")


@simulation_aware
def aware(params: dict[str, Any]) -> Any:
    return params


def test_a_tool_is_told_of_its_simulation(desk: Desk) -> None:
    here = simulation.context()
    assert here.is_simulation and here.exec_id == "e_1" and dict(here.simulated_responses) == DATA
    assert here.record_side_effect("state_mutation", "orders", "insert", {"rows": 2}) == 1
    second = here.record_side_effect(
        "external_api_call", "bank", "pay", would_succeed=False, simulated_result={"id": 7}
    )
    here.record_side_effect("state_mutation", "t", "a", None, False, "the table is gone")
    assert second == 2
    assert desk.recorded == [
        {"type": "state_mutation", "target": "orders", "action": "insert", "data": {"rows": 2}},
        {
            "type": "external_api_call",
            "target": "bank",
            "action": "pay",
            "failure_reason": "the tool says that it would fail",
            "simulated_result": {"id": 7},
        },
        {
            "type": "state_mutation",
            "target": "t",
            "action": "a",
            "failure_reason": "the table is gone",
        },
    ]


def test_data_and_outcomes_come_from_the_simulation(desk: Desk) -> None:
    here = simulation.context()
    assert here.get_simulated_data("rate") == 1.17
    assert here.get_simulated_data("nothing", 3) is None
    assert (here.get_simulated_data("other"), here.get_simulated_data("other", 3)) == (None, 3)
    assert here.outcome("any") == Outcome(5) and here.outcome("any").ok
    limited = here.outcome("busy")
    assert (limited.ok, limited.fault, limited.retry_after_ms) == (False, "rate_limit", 9)


def test_outside_a_simulation_nothing_is_told(outside: None) -> None:
    here = simulation.context()
    assert not here.is_simulation and here.exec_id is None
    assert here.record_side_effect("state_mutation", "t", "a") is None
    assert here.get_simulated_data("rate") is None and here.outcome("busy") == Outcome()


def test_outside_a_simulation_every_tool_is_run_as_it_is(outside: None) -> None:
    params = {"a": 1}
    assert run_tool(aware, params) == params
    assert run_tool(lambda given: given["a"], params) == 1


def test_a_tool_that_knows_finds_its_context_under_the_reserved_key(desk: Desk) -> None:
    params = {"a": 1}
    given = run_tool(aware, params)
    here = given.pop(CONTEXT_KEY)
    assert given == params == {"a": 1} and CONTEXT_KEY == "__simulationContext"
    assert isinstance(here, Context) and here.isSimulation is True
    assert here.recordSideEffect("state_mutation", "t", "a") == 1
    assert here.getSimulatedData("rate") == here.simulatedResponses["rate"] == 1.17
    with pytest.raises(TypeError):
        here.simulatedResponses["rate"] = 2  # type: ignore[index]


def test_a_tool_that_does_not_know_is_not_run_and_an_effect_says_so(desk: Desk) -> None:
    with pytest.raises(NotSimulationAware, match="`never` does not know") as caught:
        run_tool(never, {"b": "hunter2", "a": 1})
    assert caught.value.tool == "never" and isinstance(caught.value, SimulationError)
    assert desk.recorded == [
        {
            "type": "external_api_call",
            "target": "never",
            "action": "call",
            "data": {"parameters": ["a", "b"]},
            "failure_reason": "the tool does not know of simulations and was not run",
        }
    ]


def test_only_what_says_that_it_knows_counts_as_knowing(desk: Desk) -> None:
    class Pays:
        simulation_aware = True

        def __call__(self, params: dict[str, Any]) -> Any:
            return params[CONTEXT_KEY].is_simulation

    class Says:
        #: Anything but the truth itself is not enough.
        simulation_aware = "yes"

        def __call__(self, params: dict[str, Any]) -> None:
            never(params)

    class Bank:
        @simulation_aware
        def pay(self, params: dict[str, Any]) -> Any:
            return params[CONTEXT_KEY].exec_id

    assert run_tool(Pays(), {}) is True and run_tool(Bank().pay, {}) == "e_1"
    for tool, name in ((Says(), "Says"), (functools.partial(never), "partial")):
        with pytest.raises(NotSimulationAware) as caught:
            run_tool(tool, {})
        assert caught.value.tool == name


def test_what_stays_in_the_sandbox_is_run(desk: Desk) -> None:
    assert run_tool(lambda params: params, {"a": 1}, acts_outside=False) == {"a": 1}
    assert desk.recorded == []


def test_a_tool_on_asyncio_is_awaited_by_its_caller(desk: Desk) -> None:
    @simulation_aware
    async def pay(params: dict[str, Any]) -> Any:
        return params[CONTEXT_KEY].get_simulated_data("rate")

    async def unaware(params: dict[str, Any]) -> None:
        never(params)

    assert asyncio.run(run_tool(pay, {})) == 1.17
    with pytest.raises(NotSimulationAware):
        asyncio.run(run_tool(unaware, {}))


@pytest.mark.parametrize("where", ["desk", "outside"])
def test_nobody_else_may_use_the_reserved_key(request: pytest.FixtureRequest, where: str) -> None:
    request.getfixturevalue(where)
    with pytest.raises(ValueError, match="`__simulationContext` is reserved"):
        run_tool(aware, {CONTEXT_KEY: {"isSimulation": False}})


@pytest.mark.parametrize("how", ["no name", "nothing there", "nobody listens"])
def test_a_simulation_that_cannot_be_spoken_to_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("GLOVEBOX_SIMULATION", "1")
    monkeypatch.delenv("GLOVEBOX_EFFECTS", raising=False)
    if how != "no name":
        monkeypatch.setenv("GLOVEBOX_EFFECTS", str(tmp_path / "socket"))
    if how == "nobody listens":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(tmp_path / "socket"))
    for tool in (never, simulation_aware(lambda params: never(params))):
        with pytest.raises(SimulationError) as caught:
            run_tool(tool, {}, acts_outside=False)
        assert type(caught.value) is SimulationError


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"hello\n", "does not answer in JSON"),
        (b"[]\n", "does not say what a simulation says"),
        (b'{"ok": true}\n', "does not say that this is a simulation"),
        (b'{"ok": true, "isSimulation": false}\n', "does not say that this is a simulation"),
        (b'{"ok": true, "isSimulation": true}\n', "has no `simulatedResponses`"),
        (b'{"ok": false, "error": "no"}\n', "^no$"),
        (b'{"ok": true', "broke off"),
    ],
)
def test_an_answer_that_makes_no_sense_runs_nothing(desk: Desk, said: bytes, told: str) -> None:
    desk.instead = said
    with pytest.raises(SimulationError, match=told):
        run_tool(never, {}, acts_outside=False)


def test_an_effect_that_was_not_taken_down_is_an_error(desk: Desk) -> None:
    here = simulation.context()
    desk.instead = b'{"ok": false, "error": "there is no room"}\n'
    with pytest.raises(SimulationError, match="there is no room"):
        here.record_side_effect("state_mutation", "t", "a")
    with pytest.raises(SimulationError, match="there is no room"):
        here.outcome("t")
    desk.instead = b'{"ok": true, "outcome": 3}\n'
    with pytest.raises(SimulationError, match="has no `seq`"):
        here.record_side_effect("state_mutation", "t", "a")
    with pytest.raises(SimulationError, match="has no `outcome`"):
        here.outcome("t")


@pytest.mark.parametrize("reads", [False, True])
def test_who_finds_no_place_asks_again(desk: Desk, reads: bool) -> None:
    here = simulation.context()
    desk.full, desk.reads = 3, reads
    assert here.record_side_effect("state_mutation", "t", "a") == 1
    assert len(desk.recorded) == 1 and desk.full == 0


def test_waiting_for_a_place_ends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.full = 1_000_000
    monkeypatch.setattr(simulation, "_SECONDS", 0.2)
    with pytest.raises(SimulationError, match="within 0.2 s"):
        simulation.context()


def test_a_silent_socket_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "socket")
    monkeypatch.setenv("GLOVEBOX_EFFECTS", path)
    monkeypatch.setattr(simulation, "_SECONDS", 0.2)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(SimulationError, match="timed out|within"):
            simulation.context()


def test_an_endless_answer_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_ANSWER_MOST", 1000)
    desk.instead = b" " * 5000
    with pytest.raises(SimulationError, match="more than 1000 bytes"):
        simulation.context()


@pytest.mark.parametrize(
    ("tell", "kind", "told"),
    [
        (lambda it: it("filesystem_write", "t", "a"), ValueError, "`state_mutation` or"),
        (lambda it: it("state_mutation", "t", "a", failure_reason="w"), ValueError, "succeed"),
        (lambda it: it("state_mutation", "t", "a", "x" * 262_144), ValueError, "too many"),
        (lambda it: it("state_mutation", "t", "a", float("nan")), ValueError, "JSON"),
        (lambda it: it("state_mutation", "t", "a", object()), TypeError, "JSON"),
    ],
)
def test_what_cannot_be_told_is_an_error_and_not_left_out(
    desk: Desk, tell: Callable[[Any], Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        tell(simulation.context().record_side_effect)
    assert desk.recorded == []


def test_threads_and_children_do_not_read_each_others_answers(desk: Desk) -> None:
    here = simulation.context()
    seen: list[Any] = []

    def work() -> None:
        for _ in range(20):
            seen.append(here.record_side_effect("state_mutation", "t", "a"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 81))


def test_the_file_stands_alone(desk: Desk, tmp_path: Path) -> None:
    tree = ast.parse(inspect.getsource(simulation))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [it.name for it in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }
    assert imported and imported <= {*getattr(sys, "stdlib_module_names", imported), "__future__"}
    assert "glovebox" not in imported
    (tmp_path / "simulation.py").write_text(inspect.getsource(simulation))
    (tmp_path / "tool.py").write_text(
        "import simulation\n"
        "@simulation.simulation_aware\n"
        "def tool(params):\n"
        "    return params[simulation.CONTEXT_KEY].record_side_effect('state_mutation', 't', 'a')\n"
        "print(simulation.run_tool(tool, {}))\n"
    )
    # Without site-packages: whatever is not in the standard library is not there.
    ran = subprocess.run(
        [sys.executable, "-S", str(tmp_path / "tool.py")],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("1\n", "")
    assert [it["target"] for it in desk.recorded] == ["t"]
