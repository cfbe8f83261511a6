"""Where the server is."""

from __future__ import annotations

import http.server
import socketserver
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glovebox import Glovebox
from glovebox.target import Target


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GLOVEBOX_SERVER", "GLOVEBOX_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_the_environment_names_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Target.of(None, None, True).url == "http://127.0.0.1:7070"
    monkeypatch.setenv("GLOVEBOX_SERVER", "https://box.test/")
    monkeypatch.setenv("GLOVEBOX_TOKEN", "secret")
    assert (Target.of(None, None, True).url, Target.of(None, None, True).token) == (
        "https://box.test",
        "secret",
    )
    given = Target.of("http://other.test", "mine", True)
    assert (given.url, given.token) == ("http://other.test", "mine")
    monkeypatch.setenv("GLOVEBOX_TOKEN", "")
    assert Target.of(None, None, True).token is None


def test_a_token_may_come_from_a_file_with_a_newline() -> None:
    assert Target.of(None, " gb_12_ab\r\n", True).token == "gb_12_ab"


@pytest.mark.parametrize("token", ["gb_sec ret", "gb_sec\nret", "gb_secrét", "gb_sec\x00ret"])
def test_a_wrong_token_is_refused_and_never_shown(token: str) -> None:
    with pytest.raises(ValueError, match="one word") as caught:
        Glovebox("http://box.test", token)
    shown = "".join(traceback.format_exception(None, caught.value, None)) + repr(caught.value)
    assert "gb_sec" not in shown


@pytest.mark.parametrize("token", ["", " \n"])
def test_an_empty_token_never_becomes_another(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOVEBOX_TOKEN", "of_somebody_else")
    with pytest.raises(ValueError, match="empty"):
        Glovebox("http://box.test", token)


def test_no_repr_shows_the_token() -> None:
    with Glovebox("http://box.test", "gb_12_ab") as client:
        shown = f"{client!r} {client._target!r} {client._http.headers!r}"
    assert "gb_12" not in shown


@pytest.mark.parametrize("url", ["box.test:7070", "ftp://box.test", "unix:relative.sock"])
def test_an_address_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        Target.of(url, None, True)


def test_certificates_are_read_at_once(tmp_path: Path) -> None:
    with pytest.raises((OSError, ssl.SSLError)):
        Target.of("https://box.test", None, tmp_path / "none.pem")


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"name": "over the socket"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass

    def address_string(self) -> str:
        return "unix"


@pytest.fixture
def sock(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "box.sock"
    with socketserver.UnixStreamServer(str(path), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def test_a_unix_socket(sock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy of the environment never sees the token.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for url in (f"unix:{sock}", f"unix://{sock}"):
        with Glovebox(url, "t") as client:
            assert client.whoami().name == "over the socket"
            assert repr(client) == f"Glovebox('unix:{sock}')"
