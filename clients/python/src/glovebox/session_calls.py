"""The calls about sessions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional, Union

from glovebox import decode, request
from glovebox.call import Answer, Call, as_text, changing, getting, nothing, of, segment
from glovebox.errors import UnexpectedAnswer
from glovebox.records import SessionInfo, SessionOutput, SessionScreen
from glovebox.stream import SILENCE

# A start waits a minute at most for the program, and its keeper may need half of one.
_START = 120.0
# A session is killed when nothing of it is left.
_KILL = 90.0


def _path(session_id: str, what: str = "") -> str:
    return f"/v1/sessions/{segment(session_id)}{what}"


def start_session(body: Mapping[str, Any]) -> Call[SessionOutput]:
    read = of(SessionOutput)
    return changing("POST", "/v1/sessions", read, json_body=body, timeout=_START)


def list_sessions() -> Call[list[SessionInfo]]:
    def read(answer: Answer) -> list[SessionInfo]:
        body = answer.json()
        if not isinstance(body, dict) or not isinstance(body.get("sessions"), list):
            raise UnexpectedAnswer("expected a list with `sessions`")
        return [decode.record(SessionInfo, it) for it in body["sessions"]]

    return getting("/v1/sessions", read)


def get_session(session_id: str) -> Call[SessionInfo]:
    return getting(_path(session_id), of(SessionInfo))


def remove_session(session_id: str) -> Call[None]:
    return changing("DELETE", _path(session_id), nothing)


def session_output(
    session_id: str, stdout: int, stderr: int, wait: float, limit: Optional[int]
) -> Call[SessionOutput]:
    call = getting(
        _path(session_id, "/output"),
        of(SessionOutput),
        stdout=stdout,
        stderr=stderr,
        limit=limit,
        wait_ms=max(0, round(wait * 1000)),
    )
    return replace(call, timeout=wait + 30.0)


def stream_session(session_id: str, stdout: int, stderr: int) -> Call[None]:
    call = getting(_path(session_id, "/stream"), nothing, stdout=stdout, stderr=stderr)
    return replace(call, timeout=SILENCE)


def session_screen(session_id: str) -> Call[SessionScreen]:
    return getting(_path(session_id, "/screen"), of(SessionScreen))


def session_recording(session_id: str) -> Call[str]:
    return getting(_path(session_id, "/recording"), as_text)


def type_in(session_id: str, typed: Mapping[str, Any]) -> Call[SessionInfo]:
    return changing("POST", _path(session_id, "/input"), of(SessionInfo), json_body=typed)


def typed(text: Union[str, bytes]) -> Mapping[str, str]:
    if isinstance(text, str):
        return {"text": text}
    return {"base64": base64.b64encode(text).decode("ascii")}


def close_input(session_id: str) -> Call[SessionInfo]:
    return changing("POST", _path(session_id, "/close-input"), of(SessionInfo))


def resize_session(session_id: str, columns: int, rows: int) -> Call[SessionInfo]:
    size = request.terminal_size(columns, rows)
    return changing("POST", _path(session_id, "/resize"), of(SessionInfo), json_body=size)


def signal_session(session_id: str, signal: Union[str, int]) -> Call[SessionInfo]:
    body = {"signal": str(signal)}
    return changing("POST", _path(session_id, "/signal"), of(SessionInfo), json_body=body)


def kill_session(session_id: str) -> Call[SessionInfo]:
    return changing("POST", _path(session_id, "/kill"), of(SessionInfo), timeout=_KILL)
