"""What is sent, and how it is repeated."""

from __future__ import annotations

from typing import Any, Callable

import httpx
import pytest

from glovebox import (
    BudgetExceeded,
    ConnectionFailed,
    PolicyDenied,
    RateLimited,
    Unavailable,
    UnexpectedAnswer,
)
from conftest import TOKEN, Pieces, Server, record, refusal, sent

EXECS = "/v1/execs"


def test_a_run_is_one_call_that_waits(client: Any, server: Server) -> None:
    server.on("POST", EXECS, httpx.Response(200, json=record(stdout="hi\n", exit_code=0)))
    exec = client.run("echo", "hi", project_id="demo", timeout=5, task_id="t", env={"A": "b"})
    assert (exec.stdout, exec.exit_code, exec.ok) == ("hi\n", 0, True)
    body = sent(server.seen[0])
    assert body.pop("client_id").startswith("py-")
    assert body == {
        "project_id": "demo",
        "exec": {"kind": "argv", "command": "echo", "args": ["hi"], "env": {"A": "b"}},
        "policy_overrides": {"timeout": 5},
        "task_ref": {"task_id": "t"},
        "wait": True,
    }
    assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert server.calls() == ["POST /v1/execs"]


def test_code_and_scripts_have_the_shapes_of_the_contract(client: Any, server: Server) -> None:
    server.on("POST", EXECS, httpx.Response(200, json=record()))
    client.run_python("print(1)")
    client.run_shell("ls | wc", inputs={"a.txt": "text", "b.bin": b"\xff"})
    assert sent(server.seen[0])["exec"] == {
        "kind": "python",
        "command": "python",
        "args": ["-c", "print(1)"],
    }
    assert sent(server.seen[1])["exec"]["args"] == ["-lc", "ls | wc"]
    assert sent(server.seen[1])["inputs"] == [
        {"path": "a.txt", "content": "text"},
        {"path": "b.bin", "content_base64": "/w=="},
    ]


@pytest.mark.parametrize(
    ("words", "options", "told"),
    [
        ((), {}, "there is no command"),
        (("echo", 1), {}, r"argument 1 of the command is text, not `int`: write `str\(…\)`"),
        ((b"echo",), {}, "the command is text, not `bytes`"),
        ((["echo", "x"],), {}, r"one by one: `run\(\*words\)`"),
        (("true",), {"inputs": ["a.csv"]}, "`inputs` is a dict of paths .* not `list`"),
        (("true",), {"inputs": {"a.csv": 1}}, "the input `a.csv` is text or bytes, not `int`"),
        (("true",), {"inputs": {1: "a"}}, "the path of an input is text, not `int`"),
    ],
)
def test_a_wrong_type_is_told_before_anything_is_sent(
    client: Any, server: Server, words: Any, options: Any, told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        client.run(*words, **options)
    with pytest.raises(TypeError, match="the code is text, not `bytes`"):
        client.run_python(b"print(1)")
    assert server.seen == []


def test_an_option_that_does_not_exist_is_refused_before_anything_is_sent(
    client: Any, server: Server
) -> None:
    with pytest.raises(TypeError, match="tiemout"):
        client.run("true", tiemout=3)
    assert server.seen == []


def test_every_change_has_a_key_of_its_own_and_reading_has_none(
    client: Any, server: Server
) -> None:
    server.on("POST", EXECS, httpx.Response(200, json=record()))
    server.on("GET", "/v1/execs/mine", httpx.Response(200, json=record()))
    client.run("true")
    client.run("true")
    client.execs.get("mine")
    keys = [request.headers.get("idempotency-key") for request in server.seen]
    assert keys[0] and keys[1] and keys[0] != keys[1] and keys[2] is None


@pytest.mark.parametrize(
    "failure",
    [
        lambda: refusal(503, "busy"),
        lambda: refusal(429, "rate_limited"),
        lambda: httpx.Response(502, text="<html>bad gateway</html>"),
        httpx.ConnectError("refused"),
        httpx.ReadError("cut"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("incomplete chunked read"),
    ],
)
def test_what_may_pass_is_tried_again_with_the_same_key(
    client: Any, server: Server, sleeps: list[float], failure: Any
) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        if isinstance(failure, Exception):
            raise failure
        return failure()  # type: ignore[no-any-return]

    server.on("POST", EXECS, fail, fail, httpx.Response(200, json=record()))
    assert client.run("true").ok
    assert len({request.headers["idempotency-key"] for request in server.seen}) == 1
    assert len({request.content for request in server.seen}) == 1
    assert len(server.seen) == 3 and len(sleeps) == 2


def test_the_server_says_how_long_to_wait(
    client: Any, server: Server, sleeps: list[float]
) -> None:
    header = httpx.Response(503, headers={"retry-after": "7"})
    server.on(
        "GET",
        "/v1/whoami",
        refusal(429, "rate_limited", after_ms=3500),
        header,
        httpx.Response(200, json={"name": "me"}),
    )
    assert client.whoami().name == "me"
    assert sleeps == [3.5, 7.0]


def test_retries_end(client: Any, server: Server, sleeps: list[float]) -> None:
    server.on("GET", "/v1/whoami", refusal(503, "busy"))
    with pytest.raises(Unavailable):
        client.whoami()
    assert len(server.seen) == 5 and len(sleeps) == 4
    assert all(0 < pause <= 30 for pause in sleeps)


def test_a_pause_that_is_too_long_is_left_to_the_caller(client: Any, server: Server) -> None:
    server.on("POST", EXECS, refusal(429, "budget_exceeded", after_ms=1_800_000))
    with pytest.raises(BudgetExceeded) as caught:
        client.run("true")
    assert isinstance(caught.value, RateLimited) and caught.value.retry_after == 1800
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (400, "invalid_argument"),
        (409, "idempotency_conflict"),
        (500, "internal"),
        (503, "backend_unavailable"),
    ],
)
def test_what_will_not_pass_is_tried_once(
    client: Any, server: Server, answer: tuple[int, str]
) -> None:
    never = {"allowed": False, "after_ms": None}
    server.on("POST", EXECS, refusal(*answer, retry=never))
    with pytest.raises(Exception, match="it is"):
        client.run("true")
    assert len(server.seen) == 1


def test_a_server_that_is_not_there(client: Any, server: Server) -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    server.on("GET", "/v1/whoami", refuse)
    server.on("GET", "/healthz", refuse)
    server.on("GET", "/readyz", refusal(503, "shutting_down"))
    with pytest.raises(ConnectionFailed, match="connection refused"):
        client.whoami()
    assert client.alive() is False and client.ready() is False


def test_a_refusal_by_policy_says_which_record_it_is(client: Any, server: Server) -> None:
    denied = refusal(
        403,
        "policy_denied",
        exec_id="e_" + "2" * 32,
        request_id="r-1",
        hints=["ask for less"],
        rule={"file": "team.toml", "line": 2},
    )
    server.on("POST", EXECS, denied)
    with pytest.raises(PolicyDenied, match="hint: ask for less") as caught:
        client.run("true", memory="64G")
    error = caught.value
    assert (error.exec_id, error.request_id, error.hints) == (
        "e_" + "2" * 32,
        "r-1",
        ["ask for less"],
    )
    assert error.rule == {"file": "team.toml", "line": 2}


def test_lists_fetch_the_pages_they_need(client: Any, server: Server) -> None:
    def page(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("cursor", "0"))
        items = [record(exec_id=f"e_{number}") for number in range(start, start + 2)]
        return httpx.Response(200, json={"items": items, "next": str(start + 2) if start < 4 else None})

    server.on("GET", EXECS, page)
    listed = client.execs.list(task_id="a&b", page_size=2)
    assert server.seen == []
    assert [next(listed).exec_id for _ in range(3)] == ["e_0", "e_1", "e_2"]
    assert len(server.seen) == 2
    assert [exec.exec_id for exec in listed] == ["e_3", "e_4", "e_5"]
    assert [dict(request.url.params) for request in server.seen] == [
        {"task_id": "a&b", "limit": "2"},
        {"task_id": "a&b", "limit": "2", "cursor": "2"},
        {"task_id": "a&b", "limit": "2", "cursor": "4"},
    ]


def test_a_list_that_goes_round_in_circles_ends(client: Any, server: Server) -> None:
    server.on("GET", EXECS, httpx.Response(200, json={"items": [], "next": "again"}))
    with pytest.raises(UnexpectedAnswer, match="circles"):
        list(client.execs.list())


def test_names_cannot_become_other_paths(client: Any, server: Server) -> None:
    server.on("GET", "/v1/execs/a/../b", httpx.Response(200, json=record()))
    client.execs.get("a/../b")
    assert server.seen[0].url.raw_path == b"/v1/execs/a%2F..%2Fb"
    for name in ("", ".", ".."):
        with pytest.raises(ValueError):
            client.execs.get(name)
    with pytest.raises(ValueError):
        client.workspaces.read("demo", "a/../b")


def test_the_workspace_itself_is_listed_by_a_name_that_arrives(
    client: Any, server: Server
) -> None:
    entries = [{"name": "a", "type": "file", "size": 1}]
    server.on("GET", "/v1/workspaces/demo/files", httpx.Response(200, json={"entries": entries}))
    server.on("GET", "/v1/workspaces/demo/files/d", httpx.Response(200, json={"truncated": True}))
    assert [it.name for it in client.workspaces.files("demo").entries] == ["a"]
    assert server.seen[0].url.raw_path == b"/v1/workspaces/demo/files"
    assert client.workspaces.files("demo", "d").truncated


def test_another_kind_of_server_is_noticed(client: Any, server: Server) -> None:
    server.on("GET", "/v1/whoami", httpx.Response(200, text="<html>welcome</html>"))
    with pytest.raises(UnexpectedAnswer, match="welcome"):
        client.whoami()


def test_redirects_do_not_take_the_token_elsewhere(client: Any, server: Server) -> None:
    away = httpx.Response(302, headers={"location": "http://evil.test/v1/whoami"})
    server.on("GET", "/v1/whoami", away)
    with pytest.raises(Exception, match="302"):
        client.whoami()
    assert [request.url.host for request in server.seen] == ["box.test"]


def test_a_download_is_there_whole_or_not_at_all(
    client: Any, server: Server, tmp_path: Any
) -> None:
    path = f"{EXECS}/mine/artifacts/dir/out.bin"
    cut = httpx.ReadError("cut")
    server.on(
        "GET",
        path,
        lambda _: httpx.Response(200, stream=Pieces(b"half", cut=cut)),
        lambda _: httpx.Response(200, stream=Pieces(b"the ", b"whole")),
    )
    target = tmp_path / "out.bin"
    assert client.execs.download("mine", "dir/out.bin", target) == 9
    assert target.read_bytes() == b"the whole"
    server.on("GET", path, lambda _: httpx.Response(200, stream=Pieces(b"half", cut=cut)))
    with pytest.raises(ConnectionFailed):
        client.execs.download("mine", "dir/out.bin", target)
    assert target.read_bytes() == b"the whole"
    assert list(tmp_path.iterdir()) == [target]


def test_the_token_is_never_shown(connect: Callable[..., Any]) -> None:
    with connect() as client:
        assert "box.test" in repr(client) and TOKEN not in repr(client)
