"""Takes values out of JSON."""

import json
import os

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


def steps(query):
    return query.split(".") if query else []


def take(value, path):
    if not path:
        yield value
        return
    key, rest = path[0], path[1:]
    if key == "*":
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        for item in inner:
            yield from take(item, rest)
    elif isinstance(value, dict) and key in value:
        yield from take(value[key], rest)
    elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        yield from take(value[int(key)], rest)


def main():
    wish = given()
    if "path" in wish:
        try:
            with open(below(wish["path"]), encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            raise SystemExit(f"it cannot be read: {error}")
    else:
        data = wish["data"]
    values, truncated = [], False
    for value in take(data, steps(wish["query"])):
        if len(values) == wish["max_values"]:
            truncated = True
            break
        values.append(value)
    answer({"values": values, "truncated": truncated})


main()
