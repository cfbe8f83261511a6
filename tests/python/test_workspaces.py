"""Files, snapshots and changes that wait, with both clients against a server that runs."""

from __future__ import annotations

import asyncio
import io
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Callable

import pytest

from glovebox import (
    AsyncGlovebox,
    Conflict,
    Forbidden,
    Glovebox,
    InvalidArgument,
    NotFound,
    Patience,
)
from wire import Cutter


def test_parts_of_a_file(agent: Glovebox) -> None:
    files = agent.workspaces
    files.write("p", "f", b"0123456789")
    files.write("p", "empty", b"")
    assert files.read("p", "f", offset=2, limit=3) == b"234"
    assert files.read("p", "f", offset=8, limit=100) == b"89"
    assert files.read("p", "f", offset=-4) == b"6789"
    assert files.read("p", "f", offset=-100) == b"0123456789"
    assert files.read("p", "f", offset=10) == b"" == files.read("p", "empty", offset=0)
    files.mkdir("p", "d")
    with pytest.raises(InvalidArgument, match="directory"):
        files.read("p", "d")


def test_only_one_of_two_writers_is_the_first(agent: Glovebox) -> None:
    files = agent.workspaces
    made = files.write("p", "f", "1", new=True, mode=0o640)
    assert made.mode == "0640" and made.extra == {}
    with pytest.raises(Conflict):
        files.write("p", "f", "2", new=True)
    seen = files.fetch("p", "f")
    assert seen and (seen.data, seen.etag) == (b"1", made.etag)
    assert files.fetch("p", "f", known=seen.etag) is None
    second = files.write("p", "f", "2", etag=seen.etag)
    with pytest.raises(Conflict):
        files.write("p", "f", "3", etag=seen.etag)
    with pytest.raises(Conflict):
        files.replace("p", "f", "2", "3", etag=seen.etag)
    assert files.read("p", "f") == b"2" and files.stat("p", "f").mode == "0640"
    again = files.fetch("p", "f", known=seen.etag)
    assert again and again.etag == second.etag
    with pytest.raises(Conflict):
        files.write("p", "never", "x", etag=seen.etag)


def test_names_are_bytes(agent: Glovebox) -> None:
    files = agent.workspaces
    name = b"\xff caf\xc3\xa9?%#"
    files.write("p", name, b"x")
    files.move("p", name, b"d/" + name)
    files.copy("p", b"d/" + name, "ordinary")
    assert [it.path for it in files.walk("p", page_size=1)] == ["d", b"d/" + name, "ordinary"]
    assert files.stat("p", b"d/" + name).name == name
    assert [it.path for it in files.glob("p", "d/*").paths] == [b"d/" + name]
    assert [it.path for it in files.search("p", "x").matches] == [b"d/" + name, "ordinary"]
    files.remove("p", b"d/" + name)
    assert [it.path for it in files.walk("p")] == ["d", "ordinary"]


def test_a_link_that_leads_out_is_seen_and_not_followed(agent: Glovebox) -> None:
    agent.run("ln", "-s", "/etc/hostname", "out", project_id="p").check()
    agent.run("mkfifo", "pipe", project_id="p").check()
    info = agent.workspaces.stat("p", "out")
    assert (info.type, info.target) == ("symlink", "/etc/hostname")
    assert agent.workspaces.stat("p", "pipe").type == "other"
    for name in ("out", "pipe"):
        with pytest.raises((Conflict, InvalidArgument)):
            agent.workspaces.read("p", name)


def test_trees_go_and_come_back(agent: Glovebox, tmp_path: Path) -> None:
    (tmp_path / "in" / "d").mkdir(parents=True)
    (tmp_path / "in" / "d" / "run").write_text("echo ran\n")
    (tmp_path / "in" / "d" / "run").chmod(0o755)
    (tmp_path / "in" / "link").symlink_to("d/run")
    done = agent.workspaces.upload("p", tmp_path / "in", path="to/here")
    assert (done.entries, done.files, done.bytes) == (3, 1, 9)
    assert agent.run("sh", "to/here/link", project_id="p").stdout == "ran\n"
    for format in ("tar", "tar.gz"):
        to = tmp_path / format
        assert agent.workspaces.download("p", to, path="to", format=format) == to.stat().st_size
        with tarfile.open(to) as tar:
            assert sorted(tar.getnames()) == ["here", "here/d", "here/d/run", "here/link"]
    agent.workspaces.download("p", tmp_path / "zip", format="zip")
    assert "to/here/d/run" in zipfile.ZipFile(tmp_path / "zip").namelist()
    agent.workspaces.upload("again", tmp_path / "tar.gz")
    assert agent.workspaces.read("again", "here/d/run") == b"echo ran\n"
    with pytest.raises(NotFound):
        agent.workspaces.download("nowhere", tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_an_archive_with_a_way_out_changes_nothing(agent: Glovebox) -> None:
    agent.workspaces.write("p", "here", "1")
    for name, link in (("../out", None), ("/abs", None), ("l", "../../out")):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            good = tarfile.TarInfo("good")
            tar.addfile(good)
            entry = tarfile.TarInfo(name)
            if link is not None:
                entry.type, entry.linkname = tarfile.SYMTYPE, link
            tar.addfile(entry)
        with pytest.raises(Conflict) as caught:
            agent.workspaces.upload("p", packed.getvalue())
        assert name in str(caught.value)
    assert [it.path for it in agent.workspaces.walk("p")] == ["here"]


def test_a_watch_over_connections_that_are_cut_misses_nothing(
    agent: Glovebox, url: str, space: str, new_token: Callable[[str, str], str]
) -> None:
    names = [f"file-{number:02}" for number in range(40)]
    agent.workspaces.write("p", "before", "")
    ready = threading.Event()

    def work() -> None:
        ready.wait(300)
        for name in names:
            agent.workspaces.write("p", name, "x")

    writer = threading.Thread(target=work)
    writer.start()
    told = []
    patience = Patience(first=0.02)
    with Cutter(url, limit=1500, cuts=4) as cutter:
        with Glovebox(cutter.url, new_token("agent", space), patience=patience) as client:
            kinds = set()
            for event in client.workspaces.watch("p", seconds=600):
                kinds.add(event.kind)
                ready.set()
                if event.path in names:
                    told.append(event.path)
                if event.path == names[-1]:
                    break
        assert cutter.left < 4, "nothing was cut"
    writer.join()
    assert told == names and "overflow" not in kinds


def test_a_watch_ends_with_its_time_and_with_its_workspace(agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "")
    assert [it.kind for it in agent.workspaces.watch("p", seconds=1)] == ["ready"]
    kinds = []
    for event in agent.workspaces.watch("p", seconds=60):
        if event.kind == "ready":
            agent.workspaces.delete("p")
        kinds.append(event.kind)
    assert kinds[0] == "ready" and kinds[-1] == "end"
    with pytest.raises(NotFound):
        next(agent.workspaces.watch("p"))


def test_changes_wait_for_a_decision(agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "one\n")
    exec = agent.run_shell("echo two > f; echo > new; rm -rf none", project_id="p", writes="held")
    assert exec.ok and exec.writes == "held" and exec.extra == {}
    assert exec.changes and (exec.changes.created, exec.changes.modified) == (1, 1)
    assert agent.workspaces.get("p").waiting == [exec.exec_id]
    seen = agent.execs.changes(exec.exec_id)
    assert {it.path: it.what for it in seen.changes} == {"f": "modified", "new": "created"}
    assert "-one" in {it.path: it.unified for it in seen.texts}["f"]
    assert seen.extra == {} and seen.changes[0].extra == {}
    agent.workspaces.write("p", "f", "three\n")
    with pytest.raises(Conflict, match="f"):
        agent.execs.keep(exec.exec_id)
    assert agent.execs.discard(exec.exec_id).exec_id == exec.exec_id
    with pytest.raises(NotFound):
        agent.execs.changes(exec.exec_id)
    assert [it.path for it in agent.workspaces.walk("p")] == ["f"]
    kept = agent.run_shell("echo four > f", project_id="p", writes="held")
    assert agent.execs.keep(kept.exec_id).count.modified == 1
    assert agent.workspaces.read("p", "f") == b"four\n"
    agent.run_shell("echo five > f", project_id="p", writes="if_ok").check()
    agent.run_shell("echo six > f; exit 1", project_id="p", writes="if_ok")
    assert agent.workspaces.read("p", "f") == b"five\n"


def test_a_workspace_goes_back(agent: Glovebox) -> None:
    agent.workspaces.write("p", "f", "one\n")
    first = agent.snapshots.take("p", label="first", note="n")
    assert first.extra == {} and first.snapshot.extra == {} and first.snapshot.counts.files == 1
    assert agent.snapshots.get("p", first.snapshot_id) == first.snapshot
    exec = agent.run_shell("echo two > f; mkdir d; echo > d/g", project_id="p").check()
    assert exec.snapshot_before
    diff = agent.snapshots.diff("p", first.snapshot_id)
    assert [(it.path, it.change) for it in diff.changes] == [
        ("d", "added"),
        ("d/g", "added"),
        ("f", "modified"),
    ]
    assert "+two" in diff.changes[-1].text.unified and diff.extra == {}
    assert agent.snapshots.diff("p", first.snapshot_id, text=False, limit=1).truncated
    undone = agent.snapshots.undo("p", exec_id=exec.exec_id)
    assert undone.exec_id == exec.exec_id and undone.extra == {}
    assert [it.path for it in agent.workspaces.walk("p")] == ["f"]
    assert undone.before is not None
    agent.snapshots.restore("p", undone.before)
    assert agent.workspaces.read("p", "f") == b"two\n"
    forked = agent.snapshots.fork("p", "q", snapshot_id=first.snapshot_id)
    assert forked.project_id == "q" and agent.workspaces.read("q", "f") == b"one\n"
    with pytest.raises(Conflict):
        agent.snapshots.fork("p", "q")
    agent.snapshots.remove("p", first.snapshot_id)
    with pytest.raises(NotFound):
        agent.snapshots.restore("p", first.snapshot_id)
    assert first.snapshot_id not in [it.snapshot_id for it in agent.snapshots.list("p")]
    agent.workspaces.reset("p")
    assert list(agent.workspaces.walk("p")) == []


def test_the_stores_are_the_operators(admin: Glovebox, agent: Glovebox, space: str) -> None:
    agent.workspaces.write("p", "f", "x")
    agent.snapshots.take("p")
    verified = admin.snapshots.verify()
    assert verified.sound and space in [it.space_id for it in verified.spaces]
    assert space in [it.space_id for it in admin.snapshots.collect().spaces]
    for refused in (agent.snapshots.verify, agent.snapshots.collect):
        with pytest.raises(Forbidden):
            refused()


def test_another_space_is_not_there(
    agent: Glovebox, url: str, new_token: Callable[[str, str], str]
) -> None:
    agent.workspaces.write("p", "f", "x")
    taken = agent.snapshots.take("p").snapshot_id
    held = agent.run("touch", "g", project_id="p", writes="held").exec_id
    with Glovebox(url, new_token("agent", "elsewhere")) as stranger:
        for ask in (
            lambda: stranger.workspaces.read("p", "f"),
            lambda: stranger.workspaces.stat("p"),
            lambda: stranger.workspaces.copy("p", "f", "g"),
            lambda: stranger.workspaces.search("p", "x"),
            lambda: next(stranger.workspaces.watch("p")),
            lambda: stranger.snapshots.diff("p", taken),
            lambda: stranger.snapshots.restore("p", taken),
            lambda: stranger.snapshots.fork("p", "mine", snapshot_id=taken),
            lambda: stranger.execs.changes(held),
            lambda: stranger.execs.keep(held),
            lambda: stranger.execs.discard(held),
        ):
            with pytest.raises(NotFound):
                ask()
    agent.execs.discard(held)


def test_the_async_client_does_the_same(
    url: str, space: str, new_token: Callable[[str, str], str], tmp_path: Path
) -> None:
    token = new_token("agent", space)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text("one\n")

    async def main() -> None:
        async with AsyncGlovebox(url, token) as client:
            assert (await client.workspaces.upload("p", tmp_path / "in")).files == 1
            taken = await client.snapshots.take("p")
            seen = []
            async for event in client.workspaces.watch("p", seconds=60):
                if event.kind == "ready":
                    await client.workspaces.write("p", "g", "x")
                seen.append(event.kind)
                if event.path == "g":
                    break
            assert seen[0] == "ready" and len(seen) > 1
            diff = await client.snapshots.diff("p", taken.snapshot_id)
            assert [it.path for it in diff.changes] == ["g"]
            assert [it.path async for it in client.workspaces.walk("p")] == ["f", "g"]
            exec = await client.run("rm", "f", project_id="p", writes="held")
            await client.execs.keep(exec.exec_id)
            assert await client.workspaces.download("p", tmp_path / "out.tar") > 0
            listed = [it.snapshot_id async for it in client.snapshots.list("p")]
            assert taken.snapshot_id in listed

    asyncio.run(main())
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.getnames() == ["g"]
