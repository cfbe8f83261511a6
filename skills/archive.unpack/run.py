"""Unpacks an archive of the workspace into a new directory, whole or not at all."""

import json
import os
import shutil
import tarfile
import zipfile

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


LISTED_MAX = 1000
PIECE = 1 << 16


def refuse(name, why):
    raise SystemExit(f"`{name}` {why}; nothing was unpacked")


def place(top, name):
    parts = name.replace("\\", "/").split("/")
    if name.startswith("/") or ".." in parts or "\0" in name:
        refuse(name, "leads out of the directory")
    parts = [part for part in parts if part not in ("", ".")]
    return os.path.join(top, *parts) if parts else None


def tar_members(archive):
    for member in archive:
        if member.isdir():
            yield member.name, None
        elif member.isreg():
            yield member.name, archive.extractfile(member)
        else:
            refuse(member.name, "is a link or a device")


def zip_members(archive):
    for member in archive.infolist():
        kind = (member.external_attr >> 16) & 0o170000
        if kind not in (0, 0o040000, 0o100000):
            refuse(member.filename, "is a link or a device")
        yield member.filename, None if member.is_dir() else archive.open(member)


def unpack(members, top, wish):
    files, total = [], 0
    for number, (name, source) in enumerate(members, 1):
        if number > wish["max_files"]:
            refuse(name, "is one file too many")
        path = place(top, name)
        if path is None:
            continue
        if source is None:
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with source, open(path, "xb") as file:
            while piece := source.read(PIECE):
                total += len(piece)
                if total > wish["max_bytes"]:
                    refuse(name, "makes it larger than it may be")
                file.write(piece)
        files.append(os.path.relpath(path, top))
    return {"files": files[:LISTED_MAX], "count": len(files), "bytes": total}


def main():
    wish = given()
    archive, into = below(wish["archive"]), below(wish["into"])
    if os.path.lexists(into):
        name = wish["into"]
        raise SystemExit(f"`{name}` is there already")
    if not os.path.isfile(archive):
        name = wish["archive"]
        raise SystemExit(f"there is no `{name}` in the workspace")
    fresh = f"{into}.unpacking"
    os.makedirs(fresh)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                output = unpack(zip_members(opened), fresh, wish)
        else:
            with tarfile.open(archive) as opened:
                output = unpack(tar_members(opened), fresh, wish)
        os.rename(fresh, into)
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, RuntimeError) as error:
        raise SystemExit(f"it cannot be unpacked: {error}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    answer(output)


main()
