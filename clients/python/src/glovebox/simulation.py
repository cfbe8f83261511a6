"""For tools in Python that run in a simulation: they tell what they would do, and do not do it.

    from glovebox import simulation

    @simulation.simulation_aware
    def pay(params):
        context = params.get(simulation.CONTEXT_KEY)
        if context is None:
            return bank.pay(params["amount"])
        context.record_side_effect("external_api_call", "bank", "pay", {"amount": params["amount"]})
        return context.get_simulated_data("receipt")

    simulation.run_tool(pay, {"amount": 5})

A tool that acts outside the sandbox and does not know of simulations is not run in one. This file
imports nothing but the standard library, so that it can be given to a sandbox by itself:
`inputs={"simulation.py": inspect.getsource(simulation)}`."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Callable, Optional, TypeVar

#: Where a tool finds its context among its parameters. Nobody else may use it.
CONTEXT_KEY = "__simulationContext"
#: What a tool can tell of itself. Files, programs and requests are seen by the sandbox.
EFFECT_TYPES = ("state_mutation", "external_api_call")

# What the sandbox's side takes in one line, and with the line's end not all of it.
_QUESTION_MOST = 256 << 10
# More than any request that has data for a simulation may have.
_ANSWER_MOST = 64 << 20
_SECONDS = 10.0
_PAUSE = 0.02

T = TypeVar("T")


class SimulationError(Exception):
    """This is a simulation, and it cannot be spoken to, or it refuses what was said."""


class NotSimulationAware(SimulationError):
    """The tool acts outside the sandbox and does not know of simulations: it was not run."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"`{tool}` does not know of simulations and was not run\n"
            "hint: mark it with `@simulation_aware` when it looks for its context and tells what "
            "it would do\n"
            "hint: `acts_outside=False` if all that it does stays in the sandbox"
        )
        self.tool = tool


@dataclass(frozen=True)
class Outcome:
    """How a call of a tool fares in a simulation whose faults name it."""

    #: Milliseconds before it, however it ends.
    delay_ms: int = 0
    #: `error`, `timeout`, `crash` or `rate_limit`; None: it succeeds.
    fault: Optional[str] = None
    #: Of a rate limit.
    retry_after_ms: Optional[int] = None

    @property
    def ok(self) -> bool:
        return self.fault is None


class Context:
    """What a tool is told of the simulation that it runs in. Every name is there a second time in
    the words of workflow engines."""

    def __init__(
        self, path: Optional[str], exec_id: Optional[str], responses: Mapping[str, Any]
    ) -> None:
        self._path = path
        self.exec_id = exec_id
        #: What the simulation has for tools, by name.
        self.simulated_responses: Mapping[str, Any] = MappingProxyType(dict(responses))

    @property
    def is_simulation(self) -> bool:
        return self._path is not None

    def record_side_effect(
        self,
        type: str,
        target: str,
        action: str,
        data: Any = None,
        would_succeed: bool = True,
        failure_reason: Optional[str] = None,
        simulated_result: Any = None,
    ) -> Optional[int]:
        """Tells what the tool would do, and returns the number of the effect. Outside a simulation
        nothing happens. `data` is shown to people and stays on record: no secrets.

            context.record_side_effect("state_mutation", "orders", "insert", {"rows": 2})
        """
        if self._path is None:
            return None
        if type not in EFFECT_TYPES:
            known = " or ".join(f"`{it}`" for it in EFFECT_TYPES)
            raise ValueError(f"`{type}` is nothing that a tool tells of itself: {known}")
        if would_succeed and failure_reason is not None:
            raise ValueError("what would succeed has no `failure_reason`: `would_succeed=False`")
        if not would_succeed:
            failure_reason = failure_reason or "the tool says that it would fail"
        given = {
            "data": data,
            "failure_reason": failure_reason,
            "simulated_result": simulated_result,
        }
        question = {"op": "record", "type": type, "target": target, "action": action}
        question.update({key: value for key, value in given.items() if value is not None})
        return _part(_ask(self._path, question), "seq", int)

    def get_simulated_data(self, key: str, default: Any = None) -> Any:
        """What to say instead of the truth, or `default` where the simulation has nothing."""
        return self.simulated_responses.get(key, default)

    def outcome(self, tool: str) -> Outcome:
        """How this call of a tool fares. Each asking is one try; outside a simulation all is well.

            outcome = context.outcome("payments")
            time.sleep(outcome.delay_ms / 1000)
            if not outcome.ok:
                raise PaymentFailed(outcome.fault)
        """
        if self._path is None:
            return Outcome()
        told = _part(_ask(self._path, {"op": "outcome", "tool": tool}), "outcome", dict)
        return Outcome(_part(told, "delay_ms", int), told.get("fault"), told.get("retry_after_ms"))

    @property
    def isSimulation(self) -> bool:
        return self.is_simulation

    @property
    def simulatedResponses(self) -> Mapping[str, Any]:
        return self.simulated_responses

    recordSideEffect = record_side_effect
    getSimulatedData = get_simulated_data

    def __repr__(self) -> str:
        return f"Context(is_simulation={self.is_simulation}, exec_id={self.exec_id!r})"


def context() -> Context:
    """Whether this process runs in a simulation, and what it is told there.

        context = simulation.context()
        if context.is_simulation:
            context.record_side_effect("state_mutation", "orders", "insert")
    """
    path = os.environ.get("GLOVEBOX_EFFECTS")
    if not path:
        # Who cannot say what it does must not take a simulation for the truth.
        if os.environ.get("GLOVEBOX_SIMULATION"):
            raise SimulationError(
                "this is a simulation, and `GLOVEBOX_EFFECTS` does not name its socket\n"
                "hint: pass both variables on to the program that this runs in"
            )
        return Context(None, None, {})
    answer = _ask(path, {"op": "context"})
    if answer.get("isSimulation") is not True:
        raise SimulationError(f"`{path}` does not say that this is a simulation")
    return Context(path, answer.get("exec_id"), _part(answer, "simulatedResponses", dict))


def simulation_aware(tool: T) -> T:
    """Says of a tool that it looks for its context, and acts on nothing when there is one."""
    tool.simulation_aware = True  # type: ignore[attr-defined]
    return tool


def is_simulation_aware(tool: Callable[..., Any]) -> bool:
    """Whether a tool has said so: by the decorator, or by an attribute `simulation_aware`."""
    return getattr(tool, "simulation_aware", False) is True


def run_tool(
    tool: Callable[[dict[str, Any]], T], params: Mapping[str, Any], acts_outside: bool = True
) -> T:
    """Calls a tool with its parameters. In a simulation it finds its context among them under
    `CONTEXT_KEY` if it knows of simulations; one that does not, and acts outside the sandbox, is
    not run: an effect says so, and `NotSimulationAware` is raised. Whether a tool acts outside
    nobody can see, so it does unless you say otherwise.

        receipt = simulation.run_tool(pay, {"amount": 5})
    """
    if CONTEXT_KEY in params:
        raise ValueError(f"the parameter `{CONTEXT_KEY}` is reserved: rename yours")
    here = context()
    given = dict(params)
    if not here.is_simulation:
        return tool(given)
    if is_simulation_aware(tool):
        return tool({**given, CONTEXT_KEY: here})
    if not acts_outside:
        return tool(given)
    name = getattr(tool, "__name__", None) or type(tool).__name__
    # Names only: values may be secrets, and this stays on record.
    here.record_side_effect(
        "external_api_call",
        str(name),
        "call",
        {"parameters": sorted(str(key) for key in given)},
        would_succeed=False,
        failure_reason="the tool does not know of simulations and was not run",
    )
    raise NotSimulationAware(str(name))


def _ask(path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """One question on a connection of its own: tools fork and have threads, and on a shared one
    they would read each other's answers."""
    line = json.dumps(question, allow_nan=False).encode() + b"\n"
    if len(line) >= _QUESTION_MOST:
        raise ValueError(f"{len(line)} bytes are too many to tell: at most {_QUESTION_MOST}")
    until = time.monotonic() + _SECONDS
    while True:
        told = _told(path, line, until)
        if told is not None:
            return _read(path, told)
        # Too many ask at once: those who have no place are hung up on before anything is heard.
        time.sleep(_PAUSE)


def _told(path: str, line: bytes, until: float) -> Optional[bytes]:
    """The answer, or None if nobody listened."""
    told = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(_left(until))
            wire.connect(path)
            wire.sendall(line)
            while not told.endswith(b"\n"):
                wire.settimeout(_left(until))
                piece = wire.recv(65536)
                if not piece:
                    break
                told += piece
                if len(told) > _ANSWER_MOST:
                    raise SimulationError(f"`{path}` answers with more than {_ANSWER_MOST} bytes")
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        if not told:
            return None
    except OSError as error:
        raise SimulationError(f"the simulation's socket `{path}`: {error}") from error
    if told and not told.endswith(b"\n"):
        raise SimulationError(f"`{path}` broke off in the middle of an answer")
    return bytes(told) or None


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise SimulationError(f"the simulation did not answer within {_SECONDS:g} s")
    return left


def _read(path: str, told: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(told)
    except ValueError as error:
        raise SimulationError(f"`{path}` does not answer in JSON") from error
    if not isinstance(answer, dict) or answer.get("ok") is not True:
        why = answer.get("error") if isinstance(answer, dict) else None
        raise SimulationError(str(why or f"`{path}` does not say what a simulation says"))
    return answer


def _part(answer: Mapping[str, Any], name: str, kind: type[T]) -> T:
    part = answer.get(name)
    if not isinstance(part, kind):
        raise SimulationError(f"the simulation's answer has no `{name}`")
    return part
