"""Finds lines in the files of the workspace."""

import fnmatch
import json
import os
import re

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


LINE_MAX = 1000


def files(top):
    if os.path.isfile(top):
        yield top
        return
    for place, directories, names in os.walk(top):
        directories[:] = sorted(it for it in directories if it != ".git")
        for name in sorted(names):
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def main():
    wish = given()
    pattern = re.escape(wish["pattern"]) if wish["plain"] else wish["pattern"]
    try:
        pattern = re.compile(pattern, re.IGNORECASE if wish["ignore_case"] else 0)
    except re.error as error:
        raise SystemExit(f"`pattern` is not a regular expression: {error}")
    top = below(wish["path"])
    if not os.path.exists(top):
        path = wish["path"]
        raise SystemExit(f"there is no `{path}` in the workspace")
    root = os.path.realpath(ROOT)
    matches, searched, truncated = [], 0, False
    for path in files(top):
        if not fnmatch.fnmatch(os.path.basename(path), wish["glob"]):
            continue
        with open(path, "rb") as file:
            if b"\0" in file.read(8192):
                continue
        searched += 1
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\n")
                if not pattern.search(line):
                    continue
                if len(matches) == wish["max_matches"]:
                    truncated = True
                    break
                shown = os.path.relpath(path, root)
                matches.append({"path": shown, "line": number, "text": line[:LINE_MAX]})
        if truncated:
            break
    answer({"matches": matches, "files_searched": searched, "truncated": truncated})


main()
