"""What is generated is what the scripts make of its sources, and what they make is right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional

import pytest

import generate
from generate_records import Records, Words

WHOLE = pytest.mark.skipif(
    not generate.API.exists() and os.environ.get("CI") != "true",
    reason="NOT CHECKED against the API: there is no openapi.json above this directory",
)


@WHOLE
def test_nothing_that_is_generated_is_stale_or_was_edited() -> None:
    changed = sorted(path.name for path in generate.stale(generate.outputs()))
    assert changed == [], "run `python3 clients/python/generate.py`"


@WHOLE
def test_what_says_that_it_is_generated_is() -> None:
    says = {
        path
        for path in generate.SOURCE.glob("*.py")
        if path.read_text().startswith("# Generated from ")
    }
    assert says == set(generate.outputs())
    assert {"client.py", "execs.py", "records.py"} <= {path.name for path in says}


def test_what_has_no_other_form_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "async_it.py"
    source.write_text("import asyncio\n\nasync def both() -> None:\n    await asyncio.gather()\n")
    with pytest.raises(SystemExit, match=r"async_it.py:4: .* asyncio\.gather\(\)"):
        generate.waiting(source)


def made(
    tmp_path: Path, schemas: dict[str, Any], words: str = "", order: Optional[list[str]] = None
) -> str:
    """The records of an API whose one answer is a `Thing`."""
    path = tmp_path / "records.in.py"
    path.write_text(f'"""Words."""\n\nclass Thing:\n    """Any."""\n{words}')
    thing = {"schema": {"$ref": "#/components/schemas/Thing"}}
    answer = {"responses": {"200": {"content": {"application/json": thing}}}}
    api = {"paths": {"/": {"get": answer}}, "components": {"schemas": {**TOLD, **schemas}}}
    return Records(api, Words.read(path), {"Thing": order or []}).text()


TOLD = {"Simulation": {"type": "object"}}
REF = {"$ref": "#/components/schemas/Other"}
OTHER = {"type": "object", "properties": {"of": {"type": "integer"}}}
MOMENT = {"type": "string", "format": "date-time"}
STRINGS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "required", "line"),
    [
        ({"type": "string"}, True, 'it: str = ""'),
        ({"type": "string"}, False, "it: Optional[str] = None"),
        ({"type": ["string", "null"]}, True, "it: Optional[str] = None"),
        ({"type": "integer"}, False, "it: int = 0"),
        ({"type": ["integer", "null"]}, False, "it: Optional[int] = None"),
        (MOMENT, True, "it: Optional[datetime] = decode.moment()"),
        (STRINGS, False, "it: list[str] = decode.values(list)"),
        ({**STRINGS, "type": ["array", "null"]}, False, "it: Optional[list[str]] = None"),
        ({"type": "object"}, False, "it: Mapping[str, Any] = decode.values(dict)"),
        ({}, True, "it: Any = None"),
        (REF, True, "it: Other = decode.one(Other)"),
        (REF, False, "it: Optional[Other] = decode.maybe(Other)"),
        ({"oneOf": [REF, {"type": "null"}]}, True, "it: Optional[Other] = decode.maybe(Other)"),
        ({"type": "array", "items": REF}, True, "it: list[Other] = decode.many(Other)"),
    ],
)
def test_a_field_follows_from_its_schema(
    tmp_path: Path, schema: Any, required: bool, line: str
) -> None:
    thing = {"type": "object", "properties": {"it": schema}, "required": ["it"] * required}
    assert f"\n    {line}\n" in made(tmp_path, {"Thing": thing, "Other": OTHER})


THING = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in ("aWay", "from", "new", "old")},
    "required": ["old", "new"],
}


def test_fields_stay_in_their_order_and_new_ones_come_last(tmp_path: Path) -> None:
    words = '    SAID = {"moved_from": "from"}\n    old = "The `null` one."\n'
    text = made(tmp_path, {"Thing": THING}, words, ["gone", "moved_from", "old"])
    names = [line.strip().partition(":")[0] for line in text.splitlines() if ": int" in line]
    assert names == ["moved_from", "old", "new", "a_way"]
    assert '"moved_from": "from",\n        "a_way": "aWay",\n' in text
    assert "    #: The `None` one.\n    old: int = 0\n" in text


@pytest.mark.parametrize("words", ["", '    SAID = {"moved_from": "from"}\n    gone = "It."\n'])
def test_names_that_cannot_be_are_refused(tmp_path: Path, words: str) -> None:
    with pytest.raises(SystemExit, match="`Thing` cannot have (from|gone)$"):
        made(tmp_path, {"Thing": THING}, words)


def test_words_about_no_answer_are_refused(tmp_path: Path) -> None:
    words = '    SAID = {"moved_from": "from"}\n\nclass Nothing: ...\n'
    with pytest.raises(SystemExit, match="no answer has Nothing"):
        made(tmp_path, {"Thing": THING, "Nothing": OTHER}, words)


def test_what_consists_of_itself_is_refused(tmp_path: Path) -> None:
    thing = {"type": "object", "properties": {"it": {"$ref": "#/components/schemas/Thing"}}}
    with pytest.raises(SystemExit, match="Thing consists of itself"):
        made(tmp_path, {"Thing": thing})
