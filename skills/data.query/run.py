"""Runs one SQL statement on a SQLite database of the workspace."""

import base64
import json
import os
import sqlite3
import urllib.parse

ROOT = os.environ.get("GLOVEBOX_WORK", "/workspace/work")
ARTIFACTS = os.environ.get("GLOVEBOX_ARTIFACTS", "/workspace/artifacts")


def given():
    with open(os.environ["GLOVEBOX_SKILL_INPUT"], encoding="utf-8") as file:
        return json.load(file)


def answer(output):
    with open(os.path.join(ARTIFACTS, "output.json"), "w", encoding="utf-8") as file:
        json.dump(output, file, ensure_ascii=False)


def below(path):
    """The path in the workspace, wherever its links lead, or an end with a reason."""
    root = os.path.realpath(ROOT)
    whole = os.path.realpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root + os.sep):
        raise SystemExit(f"`{path}` leads out of the workspace")
    return whole


def plain(value):
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    return value


def allowed(action, *_):
    # Another file would be another database than the one that was named.
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def main():
    wish = given()
    path = below(wish["database"])
    if not wish["write"] and not os.path.isfile(path):
        name = wish["database"]
        raise SystemExit(f"there is no database `{name}` in the workspace")
    mode = "rwc" if wish["write"] else "ro"
    address = f"file:{urllib.parse.quote(path)}?mode={mode}"
    try:
        database = sqlite3.connect(address, uri=True)
        database.set_authorizer(allowed)
        if not wish["write"]:
            database.execute("PRAGMA query_only = ON")
        with database:
            cursor = database.execute(wish["sql"], wish["params"])
            rows = cursor.fetchmany(wish["max_rows"])
            truncated = cursor.fetchone() is not None
            columns = [it[0] for it in cursor.description or []]
            changed = max(cursor.rowcount, 0)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise SystemExit(f"the database says: {error}")
    rows = [[plain(value) for value in row] for row in rows]
    answer({"columns": columns, "rows": rows, "truncated": truncated, "changed": changed})


main()
