"""Every tool at least once, for real: what each answers fits what it says of itself."""

import anyio
from speaker import Json, Speaker, connected, order, report


async def files(it: Speaker) -> None:
    await it.done("file_write", path="logo.bin", content="AAEC/w==", encoding="base64")
    await it.done("file_mkdir", path="src/deep")
    await it.done("file_write", path="src/deep/a.py", content="answer = 42\n")
    read = await it.done("file_read", path="logo.bin")
    assert (read["content"], read["encoding"]) == ("AAEC/w==", "base64"), read
    await it.done("file_edit", path="src/deep/a.py", old="42", new="6 * 7")
    found = await it.done("file_find", glob="**/*.py")
    assert found["paths"] == ["src/deep/a.py"], found
    matches = await it.done("file_search", pattern="an.*r", regex=True, context=1)
    assert matches["matches"][0]["line"] == 1, matches
    listed = await it.done("file_list", depth=3)
    assert any(entry["path"].endswith("deep/a.py") for entry in listed["entries"]), listed
    await it.done("file_move", **{"from": "src/deep/a.py", "to": "b.py"})
    await it.done("file_remove", path="src", recursive=True)
    listed = await it.done("file_list")
    assert {"b.py", "logo.bin"} == {entry["path"] for entry in listed["entries"]}, listed


async def execs(it: Speaker) -> None:
    begun = await it.done("run_code", language="javascript", code="console.log(6 * 7)", background=True)
    ended = await it.done("exec_status", exec_id=begun["exec_id"])
    assert (ended["status"], ended["stdout"]) == ("succeeded", "42\n"), ended
    part = await it.done("exec_output", exec_id=begun["exec_id"], offset=1)
    assert part["content"] == "2\n", part
    sleeps = await it.done("run_command", command=["sleep", "600"], background=True)
    now = await it.done("exec_status", exec_id=sleeps["exec_id"], wait=False)
    assert now["status"] in ("queued", "running"), now
    stopped = await it.done("exec_cancel", exec_id=sleeps["exec_id"])
    assert stopped["status"] == "canceled", stopped
    late = await it.call("run_command", command=["sleep", "600"], timeout="1s")
    assert late["structuredContent"]["status"] == "timed_out", late
    explained = await it.done("policy_explain", command=["ls"])
    assert explained["decision"] == "allow", explained


async def sessions(it: Speaker) -> None:
    begun = await it.done("session_start", command=["python3", "-q", "-i"], terminal=True, rows=30)
    name = begun["session_id"]
    assert begun["state"] == "running" and ">>>" in begun["stdout"]["text"], begun
    said = await it.done("session_send", session_id=name, submit="total = 6 * 7", wait_ms=20000)
    assert said["waiting_for_input"], said
    said = await it.done("session_send", session_id=name, submit="print(total)", wait_ms=20000)
    assert "\n42\n" in said["stdout"]["text"], said
    again = await it.done(
        "session_output", session_id=name, stdout_offset=said["stdout"]["offset"]
    )
    assert again["stdout"]["text"] == said["stdout"]["text"], again
    seen = await it.done("session_resize", session_id=name, columns=100, rows=40)
    assert seen["state"] == "running", seen
    seen = await it.done("session_output", session_id=name, screen=True)
    assert (seen["screen"]["columns"], seen["screen"]["rows"]) == (100, 40), seen
    assert "42" in seen["screen"]["lines"], seen
    listed = await it.done("session_list")
    assert [item["session_id"] for item in listed["items"]] == [name], listed
    running = await it.call("session_remove", session_id=name)
    assert running["isError"] is True and "session_signal" in str(running), running
    # It may have ended, and not well, when the answer comes.
    await it.call("session_send", session_id=name, submit="exit(3)", wait_ms=0)
    ended = await it.call("session_output", session_id=name, stdout_offset=10**9, wait_ms=20000)
    ended = ended["structuredContent"]
    assert (ended["state"], ended["exit_code"]) == ("exited", 3), ended
    late = await it.call("session_send", session_id=name, submit="1")
    assert late["isError"] is True and "exited with 3" in str(late), late
    await it.done("session_remove", session_id=name)
    piped = await it.done("session_start", command=["cat"])
    said = await it.done("session_send", session_id=piped["session_id"], text="over a pipe\n")
    assert said["stdout"]["text"] == "over a pipe\n", said
    killed = await it.done("session_signal", session_id=piped["session_id"], kill=True)
    assert killed["state"] == "killed" and "exit_code" not in killed, killed


async def at_once(it: Speaker) -> None:
    """Answers find their way back, whatever comes first."""
    got: dict[int, str] = {}

    async def one(number: int) -> None:
        code = f"import time; time.sleep({(7 - number) / 20}); print({number})"
        done = await it.done("run_code", language="python", code=code)
        got[number] = done["stdout"]

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(one, number)
    assert got == {number: f"{number}\n" for number in range(8)}, got


async def simulations(it: Speaker) -> None:
    simulated = await it.done("simulate", language="python", code="open('new.txt', 'w').write('x')")
    effects = await it.done("effects", exec_id=simulated["exec_id"])
    assert "new.txt" in str(effects["effects"]), effects
    await it.done("apply", exec_id=simulated["exec_id"])
    assert (await it.done("file_read", path="new.txt"))["content"] == "x"
    dropped = await it.done("simulate", command=["rm", "new.txt"])
    await it.done("discard", exec_id=dropped["exec_id"])
    assert (await it.done("file_read", path="new.txt"))["content"] == "x"


async def snapshots(it: Speaker) -> None:
    taken = await it.done("snapshot_take", label="before")
    await it.done("file_write", path="new.txt", content="changed")
    listed = await it.done("snapshot_list")
    assert taken["snapshot_id"] in [item["snapshot_id"] for item in listed["items"]], listed
    differs = await it.done("snapshot_diff", **{"from": taken["snapshot_id"]})
    assert differs["changed"] == 1 and "new.txt" in str(differs["changes"]), differs
    await it.done("snapshot_restore", snapshot_id=taken["snapshot_id"])
    assert (await it.done("file_read", path="new.txt"))["content"] == "x"
    # Whether there is something to go back to is policy's to say; it is answered either way.
    await it.done("run_command", command=["rm", "new.txt"])
    undone = await it.call("undo")
    if not undone.get("isError"):
        assert (await it.done("file_read", path="new.txt"))["content"] == "x"


async def sandboxes(it: Speaker) -> None:
    made = await it.done("sandbox_create", lifetime="session", owner="tests", project="apart")
    listed = await it.done("sandbox_list")
    assert made["name"] in [item["name"] for item in listed["items"]], listed
    ran = await it.done(
        "run_command", command=["echo", "kept"], sandbox=made["name"], project="apart"
    )
    assert ran["stdout"] == "kept\n", ran
    await it.done("sandbox_remove", sandbox=made["sandbox_id"])
    listed = await it.done("sandbox_list")
    assert made["name"] not in [item["name"] for item in listed["items"]], listed


async def skills(it: Speaker, tools: list[Json]) -> None:
    names = [tool["name"] for tool in tools if tool["name"].startswith("skill.")]
    assert "skill.shell.run" in names and "skill.python.run" in names, names
    ran = await it.done("skill.python.run", code="print(6 * 7)")
    assert ran["stdout"] == "42\n", ran
    wrong = await it.call("skill.python.run", nothing=1)
    assert wrong["isError"] is True, wrong


async def main() -> None:
    wanted = order()
    async with connected(wanted["place"], wanted["mode"]) as it:
        tools = await it.tools()
        await files(it)
        await execs(it)
        await sessions(it)
        await at_once(it)
        await simulations(it)
        await snapshots(it)
        await sandboxes(it)
        await skills(it, tools)
        approvals = await it.done("approval_list")
        assert approvals["items"] == [], approvals
        # Nothing out there can be reached from a test; it is said what was refused.
        fetched = await it.call("fetch", url="http://127.0.0.1:9/")
        assert fetched["isError"] is True, fetched
        missing = await it.call("approval_status", approval_id="apr_nothing")
        assert missing["isError"] is True, missing
        report({"called": sorted(it.called), "tools": [tool["name"] for tool in tools]})


anyio.run(main)
