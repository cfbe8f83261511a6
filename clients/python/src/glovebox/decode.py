"""From JSON to dataclasses. What a newer server adds is kept in `extra` and is never an error."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, TypeVar, Union

from glovebox.errors import UnexpectedAnswer

#: Text of the system, such as an argument or a path: bytes where it is not UTF-8.
Text = Union[str, bytes]

_Record = TypeVar("_Record")
_READ = "read"


def one(kind: type[_Record]) -> _Record:
    """A field that holds one record, or one with nothing in it."""
    field: _Record = dataclasses.field(
        default_factory=kind, metadata={_READ: lambda value: record(kind, value)}
    )
    return field


def maybe(kind: type[_Record]) -> _Record | None:
    """A field that holds one record or null."""
    field: _Record | None = dataclasses.field(
        default=None, metadata={_READ: lambda value: record(kind, value)}
    )
    return field


def many(kind: type[_Record]) -> list[_Record]:
    """A field that holds a list of records."""
    field: list[_Record] = dataclasses.field(
        default_factory=list,
        metadata={_READ: lambda value: [record(kind, item) for item in value]},
    )
    return field


def values(default: Callable[[], Any]) -> Any:
    """A field that holds a plain list or object."""
    return dataclasses.field(default_factory=default)


def moment() -> datetime | None:
    """A field that holds a time or null."""
    field: datetime | None = dataclasses.field(default=None, metadata={_READ: _moment})
    return field


def text() -> Text:
    """A field that holds text of the system."""
    field: Text = dataclasses.field(default="", metadata={_READ: _text})
    return field


def maybe_text() -> Text | None:
    """A field that holds such text or null."""
    field: Text | None = dataclasses.field(default=None, metadata={_READ: _text})
    return field


def texts() -> list[Text]:
    """A field that holds a list of such text."""
    field: list[Text] = dataclasses.field(
        default_factory=list, metadata={_READ: lambda value: [_text(item) for item in value]}
    )
    return field


def content(text: str, encoding: str) -> bytes:
    """Bytes as the server tells them: as text where they are some."""
    if encoding == "utf-8":
        return text.encode()
    try:
        if encoding == "base64":
            return base64.b64decode(text, validate=True)
    except ValueError:
        pass
    raise UnexpectedAnswer(f"cannot read {_shown(text)} as `{encoding}`")


def said(kind: type, name: str) -> str:
    """What the server calls a field: its own name, unless the record has another in `SAID`, because
    that is a word of Python or of another style."""
    others: Mapping[str, str] = getattr(kind, "SAID", {})
    return others.get(name, name)


def record(kind: type[_Record], data: Any) -> _Record:
    """Reads one record. A field that the server left out, or sent as null, has its default."""
    if not isinstance(data, Mapping):
        raise UnexpectedAnswer(f"expected a JSON object for `{kind.__name__}`, got {_shown(data)}")
    fields = {said(kind, it.name): it for it in dataclasses.fields(kind)}  # type: ignore[arg-type]
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in data.items():
        field = fields.get(name)
        if field is None or name == "extra":
            extra[name] = value
        elif value is not None:
            try:
                known[field.name] = field.metadata.get(_READ, _same)(value)
            except (AttributeError, TypeError, ValueError) as error:
                where = f"`{name}` of `{kind.__name__}`"
                raise UnexpectedAnswer(f"cannot read {where}: {_shown(value)}") from error
    make: Callable[..., _Record] = kind
    return make(**known, extra=extra)


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> Text:
    if isinstance(value, str):
        return value
    return bytes.fromhex(value["hex"])


_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def _moment(value: str) -> datetime:
    # `datetime.fromisoformat` reads neither `Z` nor nanoseconds before Python 3.11.
    parts = _MOMENT.fullmatch(value)
    if parts is None:
        raise ValueError(value)
    seconds, fraction, sign, hours, minutes = parts.groups()
    shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return datetime.fromisoformat(seconds).replace(
        microsecond=int((fraction or "0").ljust(6, "0")[:6]),
        tzinfo=timezone(-shift if sign == "-" else shift),
    )


def _shown(value: Any) -> str:
    return f"`{repr(value)[:80]}`"
