"""What is said about files, and what is understood."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from glovebox import Conflict, ConnectionFailed, DiskFull, InvalidArgument, PayloadTooLarge
from conftest import Pieces, Server, refusal, sent

DEMO = "/v1/workspaces/demo"
INFO = {
    "path": "src/a.py",
    "name": "a.py",
    "type": "file",
    "size": 3,
    "mode": "0644",
    "modified_at": "2026-11-16T08:23:28.034085329Z",
    "etag": "ab12",
}


def test_a_file_is_described(client: Any, server: Server) -> None:
    server.on("GET", f"{DEMO}/files/src/a.py", httpx.Response(200, json=INFO))
    info = client.workspaces.stat("demo", "src/a.py")
    assert (info.path, info.type, info.size, info.mode, info.etag) == (
        "src/a.py",
        "file",
        3,
        "0644",
        "ab12",
    )
    assert info.modified_at.microsecond == 34085 and info.target is None and info.extra == {}
    link = {**INFO, "type": "symlink", "target": {"hex": "61ff"}, "path": {"hex": "ff"}}
    server.on("GET", f"{DEMO}/files", httpx.Response(200, json=link))
    found = client.workspaces.stat("demo")
    assert (found.path, found.target) == (b"\xff", b"a\xff")
    assert [dict(it.url.params) for it in server.seen] == [{"stat": "true"}] * 2


def test_a_walk_goes_over_all_pages(client: Any, server: Server) -> None:
    page = {"entries": [INFO], "truncated": True, "next": "aa", "unread": 1}
    last = {"entries": [{**INFO, "path": "z"}], "truncated": False, "next": None}
    server.on(
        "GET", f"{DEMO}/files/src", httpx.Response(200, json=page), httpx.Response(200, json=last)
    )
    assert [it.path for it in client.workspaces.walk("demo", "src", page_size=1)] == [
        "src/a.py",
        "z",
    ]
    assert [dict(it.url.params) for it in server.seen] == [
        {"depth": "100", "limit": "1"},
        {"depth": "100", "limit": "1", "after": "aa"},
    ]
    server.on("GET", f"{DEMO}/files/src", httpx.Response(200, json=page))
    listing = client.workspaces.files("demo", "src")
    assert (listing.next, listing.unread, listing.truncated) == ("aa", 1, True)
    assert dict(server.seen[-1].url.params) == {}


@pytest.mark.parametrize(
    ("wanted", "header", "read"),
    [
        ({}, None, b"0123456789"),
        ({"offset": 2, "limit": 3}, "bytes=2-4", b"234"),
        ({"offset": 8}, "bytes=8-", b"89"),
        ({"limit": 1}, "bytes=0-0", b"0"),
        ({"offset": -4}, "bytes=-4", b"6789"),
    ],
)
def test_a_part_of_a_file(
    client: Any, server: Server, wanted: Any, header: Any, read: bytes
) -> None:
    path = f"{DEMO}/files/f"
    # The second one answers with the whole, as HTTP lets it.
    server.on(
        "GET",
        path,
        httpx.Response(206 if header else 200, content=read),
        httpx.Response(200, content=b"0123456789"),
    )
    assert client.workspaces.read("demo", "f", **wanted) == read
    assert client.workspaces.read("demo", "f", **wanted) == read
    assert server.seen[0].headers.get("range") == header


def test_behind_the_end_is_nothing(client: Any, server: Server) -> None:
    server.on("GET", f"{DEMO}/files/f", refusal(416, "invalid_argument"))
    assert client.workspaces.read("demo", "f", offset=0) == b""
    # Who did not ask for a part is not told of one.
    with pytest.raises(InvalidArgument):
        client.workspaces.read("demo", "f")


def test_what_cannot_be_meant_is_told_before_anything_is_sent(client: Any, server: Server) -> None:
    files = client.workspaces
    for wrong in ({"limit": 0}, {"limit": -1}, {"offset": -2, "limit": 1}):
        with pytest.raises(ValueError):
            files.read("demo", "f", **wrong)
    with pytest.raises(TypeError, match="give one"):
        files.write("demo", "f", "x", etag="a", new=True)
    for ask in (files.read, files.fetch, files.remove):
        with pytest.raises(ValueError, match="the path is empty"):
            ask("demo", "")
    with pytest.raises(ValueError, match="no text"):
        files.download("demo", "x", path=b"\xff")
    with pytest.raises(TypeError, match="`include` is a list"):
        files.search("demo", "x", include="*.py")
    with pytest.raises(TypeError, match="unknown options: regexp"):
        files.search("demo", "x", regexp=True)
    with pytest.raises(FileNotFoundError):
        files.upload("demo", "/nonexistent/tree")
    assert server.seen == []


def test_a_directory_is_no_file(client: Any, server: Server) -> None:
    server.on("GET", f"{DEMO}/files/d", httpx.Response(200, json={"entries": []}))
    for ask in (client.workspaces.read, client.workspaces.fetch):
        with pytest.raises(InvalidArgument, match="is a directory"):
            ask("demo", "d")
    with pytest.raises(InvalidArgument, match="is a directory"):
        client.workspaces.read("demo", "d", offset=1)
    # JSON in a file is a file.
    server.on("GET", f"{DEMO}/files/d", httpx.Response(200, json={}, headers={"etag": '"a"'}))
    assert client.workspaces.read("demo", "d") == b"{}"


def test_a_file_comes_with_its_mark(client: Any, server: Server) -> None:
    path = f"{DEMO}/files/f"
    whole = httpx.Response(200, content=b"x\xff", headers={"etag": '"ab12"'})
    server.on("GET", path, whole, httpx.Response(304, headers={"etag": '"ab12"'}))
    seen = client.workspaces.fetch("demo", "f")
    assert (seen.data, seen.text, seen.etag) == (b"x\xff", "x\ufffd", "ab12")
    assert client.workspaces.fetch("demo", "f", known="ab12") is None
    assert [it.headers.get("if-none-match") for it in server.seen] == [None, '"ab12"']


def test_a_write_says_what_it_expects(client: Any, server: Server) -> None:
    path = f"{DEMO}/files/src/a.py"
    server.on("PUT", path, httpx.Response(200, json=INFO))
    write = client.workspaces.write
    assert write("demo", "src/a.py", "é").etag == "ab12"
    write("demo", "src/a.py", b"x", etag="old", mode=0o7)
    write("demo", "src/a.py", b"x", new=True, mode="0755")
    said = [(it.headers.get("if-match"), it.headers.get("if-none-match")) for it in server.seen]
    assert said == [(None, None), ('"old"', None), (None, "*")]
    assert [dict(it.url.params) for it in server.seen] == [{}, {"mode": "007"}, {"mode": "0755"}]
    assert server.seen[0].content == "é".encode()
    server.on("PUT", path, refusal(412, "conflict"))
    with pytest.raises(Conflict) as caught:
        write("demo", "src/a.py", b"x", etag="old")
    assert caught.value.status == 412
    server.on("PUT", path, refusal(507, "disk_full"))
    with pytest.raises(DiskFull):
        write("demo", "src/a.py", b"x")


def test_a_write_whose_answer_was_lost_is_the_same_write(client: Any, server: Server) -> None:
    def cut(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("cut")

    server.on("PUT", f"{DEMO}/files/f", cut, httpx.Response(200, json=INFO))
    client.workspaces.write("demo", "f", b"x", etag="old")
    keys = {it.headers["idempotency-key"] for it in server.seen}
    assert len(server.seen) == 2 and len(keys) == 1


def test_files_are_arranged(client: Any, server: Server) -> None:
    for what in ("mkdir", "move"):
        server.on("POST", f"{DEMO}/{what}", httpx.Response(200, json=INFO))
    copied = {"path": "b", "files": 2, "bytes": 9, "skipped": 1}
    server.on("POST", f"{DEMO}/copy", httpx.Response(200, json=copied))
    replaced = {"times": 1, "file": INFO}
    server.on("POST", f"{DEMO}/replace", httpx.Response(200, json=replaced))
    files = client.workspaces
    assert files.mkdir("demo", "d", parents=False).type == "file"
    files.move("demo", b"\xff", b"plain", overwrite=True)
    assert (files.copy("demo", "a", "b").files, files.copy("demo", "a", "b").skipped) == (2, 1)
    assert files.replace("demo", "f", "a", "b", all=True).file.etag == "ab12"
    assert [sent(it) for it in server.seen[:2] + server.seen[-1:]] == [
        {"path": "d", "parents": False},
        {"from": {"hex": "ff"}, "to": "plain", "overwrite": True, "parents": True},
        {"path": "f", "old": "a", "new": "b", "all": True},
    ]


def test_files_are_found(client: Any, server: Server) -> None:
    match = {"path": "a", "line": 2, "column": 1, "text": {"hex": "ff78"}}
    match["after"] = [{"line": 3, "text": "y"}]
    found = {"matches": [match], "files": 1, "binary": 2, "truncated": True}
    server.on("POST", f"{DEMO}/search", httpx.Response(200, json=found))
    search = client.workspaces.search("demo", "x", path="d", include=("*.py",), context=1)
    assert (search.files, search.binary, search.truncated) == (1, 2, True)
    (one,) = search.matches
    assert (one.path, one.line, one.column, one.text) == ("a", 2, 1, b"\xffx")
    assert (one.before, [(it.line, it.text) for it in one.after]) == ([], [(3, "y")])
    paths = {"paths": [{"path": "a", "type": "directory"}]}
    server.on("POST", f"{DEMO}/glob", httpx.Response(200, json=paths))
    (path,) = client.workspaces.glob("demo", "**").paths
    assert (path.path, path.type) == ("a", "directory")
    assert [sent(it) for it in server.seen] == [
        {"pattern": "x", "context": 1, "include": ["*.py"], "path": "d"},
        {"pattern": "**", "hidden": False},
    ]


def test_an_archive_is_there_whole_or_not_at_all(
    client: Any, server: Server, tmp_path: Path
) -> None:
    path = f"{DEMO}/archive"
    cut = httpx.RemoteProtocolError("cut")
    server.on(
        "GET",
        path,
        lambda _: httpx.Response(200, stream=Pieces(b"half", cut=cut)),
        lambda _: httpx.Response(200, stream=Pieces(b"the ", b"whole")),
    )
    to = tmp_path / "a.tar"
    assert client.workspaces.download("demo", to, path="d") == 9
    assert to.read_bytes() == b"the whole"
    assert dict(server.seen[0].url.params) == {"format": "tar", "path": "d"}
    server.on("GET", path, lambda _: httpx.Response(200, stream=Pieces(b"half", cut=cut)))
    with pytest.raises(ConnectionFailed):
        client.workspaces.download("demo", to)
    assert to.read_bytes() == b"the whole" and list(tmp_path.iterdir()) == [to]


def test_a_directory_of_this_machine_is_packed(
    client: Any, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "run").write_text("#!/bin/sh\n")
    (tmp_path / "d" / "run").chmod(0o750)
    (tmp_path / "link").symlink_to("/etc/passwd")
    done = {"entries": 3, "files": 1, "bytes": 10}
    server.on("PUT", f"{DEMO}/archive", httpx.Response(200, json=done))
    assert client.workspaces.upload("demo", tmp_path, path="to").files == 1
    with tarfile.open(fileobj=io.BytesIO(server.seen[0].content)) as tar:
        found = {it.name: it for it in tar.getmembers()}
    assert sorted(found) == ["d", "d/run", "link"]
    # A link is packed as one: what it points at here is not sent.
    assert found["link"].issym() and found["link"].linkname == "/etc/passwd"
    assert found["d/run"].mode & 0o777 == 0o750
    assert {(it.uid, it.gid, it.uname, it.gname) for it in found.values()} == {(0, 0, "", "")}
    assert dict(server.seen[0].url.params) == {"path": "to"}


def test_an_archive_is_sent_as_it_is(client: Any, server: Server, tmp_path: Path) -> None:
    server.on("PUT", f"{DEMO}/archive", httpx.Response(200, json={}))
    (tmp_path / "a.zip").write_bytes(b"PK")
    client.workspaces.upload("demo", os.fspath(tmp_path / "a.zip"))
    client.workspaces.upload("demo", b"tar")
    assert [it.content for it in server.seen] == [b"PK", b"tar"]
    assert [dict(it.url.params) for it in server.seen] == [{}, {}]
    server.on("PUT", f"{DEMO}/archive", refusal(413, "payload_too_large"))
    with pytest.raises(PayloadTooLarge):
        client.workspaces.upload("demo", b"tar")


def test_a_workspace_is_measured_seeded_and_reset(client: Any, server: Server) -> None:
    body = {"project_id": "demo", "bytes": 1, "max_bytes": 9, "waiting": ["e_1"], "snapshots": 2}
    server.on("GET", DEMO, httpx.Response(200, json=body))
    found = client.workspaces.get("demo")
    assert (found.max_bytes, found.max_files, found.waiting, found.snapshots) == (
        9,
        None,
        ["e_1"],
        2,
    )
    skipped = [{"path": "s", "why": "a socket"}]
    seeded = {"made": 2, "kept": 1, "skipped": skipped}
    server.on("POST", f"{DEMO}/seed", httpx.Response(200, json=seeded))
    assert client.workspaces.seed("demo").skipped[0].why == "a socket"
    reset = {"seeded": seeded, "artifacts_removed": 3}
    server.on("POST", f"{DEMO}/reset", httpx.Response(200, json=reset))
    done = client.workspaces.reset("demo", artifacts=True)
    assert (done.seeded.made, done.artifacts_removed) == (2, 3)
    assert sent(server.seen[-1]) == {"inputs": False, "artifacts": True}
