"""What is read, also from servers that are older or newer than this client."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from glovebox import Exec, ExecFailed, UnexpectedAnswer
from glovebox.decode import record
from glovebox.errors import BY_CODE, ApiError, NotFound, ServerError, from_answer


def test_what_a_newer_server_adds_is_kept() -> None:
    exec = record(
        Exec,
        {
            "exec_id": "e_1",
            "status": "succeeded",
            "mood": "good",
            "extra": 5,
            "usage": {"cpu_ms": 3, "gpu_ms": 4},
            "artifacts": [{"path": "a", "size": 1, "hash": "x", "color": "red"}],
        },
    )
    assert exec.extra == {"mood": "good", "extra": 5}
    assert exec.usage.cpu_ms == 3 and exec.usage.extra == {"gpu_ms": 4}
    assert exec.artifacts[0].extra == {"color": "red"}


def test_what_an_older_server_lacks_has_its_default() -> None:
    exec = record(Exec, {"exec_id": "e_1", "status": "running", "args": None, "error": None})
    assert (exec.args, exec.error, exec.artifacts, exec.usage.cpu_ms) == ([], None, [], 0)
    assert not exec.ended


def test_text_that_is_not_utf_8_is_bytes() -> None:
    exec = record(Exec, {"cmd": "a", "args": ["b", {"hex": "61ff"}]})
    assert (exec.cmd, exec.args) == ("a", ["b", b"a\xff"])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-11-15T22:11:08Z", (22, 0)),
        ("2026-11-15T22:11:08.447203367Z", (22, 447203)),
        ("2026-11-15T23:41:08.5+01:30", (22, 500000)),
        ("2026-11-15T20:11:08-02:00", (22, 0)),
    ],
)
def test_times(text: str, read: tuple[int, int]) -> None:
    found = record(Exec, {"started_at": text}).started_at
    hour, micro = read
    assert found == datetime(2026, 11, 15, hour, 11, 8, micro, tzinfo=timezone.utc)


@pytest.mark.parametrize("data", [[], "x", {"started_at": "soon"}, {"usage": 3}, {"args": [1]}])
def test_what_makes_no_sense_is_said(data: object) -> None:
    with pytest.raises(UnexpectedAnswer):
        record(Exec, data)


def test_check_raises_for_everything_but_success() -> None:
    assert record(Exec, {"status": "succeeded"}).check().ok
    failed = {"exec_id": "e_1", "status": "failed", "exit_code": 2, "stderr": "a\nno such file\n"}
    with pytest.raises(ExecFailed, match="`e_1` is `failed` with exit code 2: no such file"):
        record(Exec, failed).check()
    killed = {"exec_id": "e_1", "status": "killed", "signal": 9, "limit_hit": "memory"}
    with pytest.raises(ExecFailed, match="`e_1` is `killed` at the limit `memory`$"):
        record(Exec, killed).check()
    denied = {"exec_id": "e_1", "status": "policy_denied", "error": {"message": "too much"}}
    with pytest.raises(ExecFailed, match="too much"):
        record(Exec, denied).check()


def test_codes_that_are_not_known_yet_fall_back_to_the_status() -> None:
    report = {"error": {"code": "brand_new", "message": "m", "retry": {"allowed": True}}}
    error = from_answer(404, {}, report)
    assert type(error) is NotFound and error.code == "brand_new"
    assert type(from_answer(500, {}, None)) is ServerError
    assert type(from_answer(418, {"x-request-id": "r"}, [])) is ApiError
    assert from_answer(418, {"x-request-id": "r"}, "x").request_id == "r"


def test_every_code_has_a_class_that_says_more_than_its_base() -> None:
    assert ApiError not in BY_CODE.values()
