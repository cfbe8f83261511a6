"""An agent without a model: it writes a program, runs it, mends what fails, tries a change without
consequences, and applies it when a person agrees. All of it through the protocol."""

import anyio
from speaker import Json, connected, order, report

BROKEN = '''\
import csv, sys

def total(path):
    with open(path) as rows:
        return sum(row["price"] * int(row["count"]) for row in csv.DictReader(rows))

print(total(sys.argv[1]))
'''


def text(result: Json) -> str:
    return "\n".join(it.get("text", "") for it in result["content"] if it["type"] == "text")


async def main() -> None:
    wanted = order()
    asked: list[str] = []
    answers: list[Json] = [{"decision": "deny", "reason": "keep a copy"}, {"decision": "allow"}]

    def person(message: str) -> Json:
        asked.append(message)
        return answers.pop(0)

    async with connected(wanted["place"], wanted["mode"], person) as it:
        await it.tools()
        await it.done("file_write", path="total.py", content=BROKEN)
        await it.done("file_write", path="prices.csv", content="name,price,count\ntea,3,4\nrum,15,2\n")

        first = await it.call("run_command", command=["python3", "total.py", "prices.csv"])
        assert first["isError"] is True, first
        assert "TypeError" in first["structuredContent"]["stderr"], first
        await it.done("file_edit", path="total.py", old='row["price"]', new='int(row["price"])')
        second = await it.done("run_command", command=["python3", "total.py", "prices.csv"])
        assert second["stdout"] == "42\n", second

        # A change that others will see: first without consequences.
        change = "sed -i s/price/price_eur/ prices.csv && touch migrated"
        simulated = await it.done("simulate", script=change)
        assert simulated["status"] == "succeeded", simulated
        assert simulated["effects"]["total"] > 0, simulated
        before = await it.done("file_read", path="prices.csv")
        assert before["content"].startswith("name,price,count\n"), before
        effects = await it.done("effects", exec_id=simulated["exec_id"])
        assert "prices.csv" in str(effects) and "migrated" in str(effects), effects
        assert not asked, asked

        refused = await it.call("apply", exec_id=simulated["exec_id"])
        assert refused["isError"] is True and "keep a copy" in text(refused), refused
        before = await it.done("file_read", path="prices.csv")
        assert before["content"].startswith("name,price,count\n"), before

        # It listens, and asks again.
        settled = await it.done("discard", exec_id=simulated["exec_id"])
        assert settled["status"] == "discarded", settled
        simulated = await it.done("simulate", script=f"cp prices.csv prices.old && {change}")
        applied = await it.done("apply", exec_id=simulated["exec_id"])
        assert applied["status"] == "applied", applied
        assert len(asked) == 2 and all("prices.csv" in it for it in asked), asked
        after = await it.done("file_read", path="prices.csv")
        assert after["content"].startswith("name,price_eur,count\n"), after
        # A simulation is settled once.
        again = await it.call("apply", exec_id=simulated["exec_id"])
        assert again["isError"] is True, again

        old = await it.done("file_read", path="prices.old")
        assert old["content"].startswith("name,price,count\n"), old
        report({"version": it.version, "asked": asked, "applied": applied})


anyio.run(main)
