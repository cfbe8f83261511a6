"""Shows what changed in a git repository of the workspace."""

import json
import os
import subprocess

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


# A repository may say which programs git starts; none of them is wanted here.
GIT = ["git", "--no-pager", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
PLAIN = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"]


def git(where, words):
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(GIT + ["-C", where] + words, env=environment, capture_output=True)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise SystemExit(f"git says: {said}")
    return done.stdout


def count(text):
    return None if text == b"-" else int(text)


def main():
    wish = given()
    where = below(wish["path"])
    words = ["--cached"] if wish["staged"] else []
    words += ["--end-of-options"]
    words += [wish[key] for key in ("base", "target") if wish.get(key)]
    words += ["--"] + wish["files"]
    changed = []
    parts = git(where, PLAIN + ["--numstat", "--no-renames", "-z"] + words).split(b"\0")
    for part in filter(None, parts):
        added, removed, path = part.split(b"\t", 2)
        path = path.decode("utf-8", "replace")
        changed.append({"path": path, "added": count(added), "removed": count(removed)})
    context = wish["context"]
    text = git(where, PLAIN + [f"-U{context}"] + words)
    most = wish["max_bytes"]
    answer({
        "diff": text[:most].decode("utf-8", "replace"),
        "files": changed,
        "truncated": len(text) > most,
    })


main()
