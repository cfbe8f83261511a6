"""One call of the API: what is sent, and how the answer is read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Generic, Optional, TypeVar
from urllib.parse import quote

from glovebox import decode, errors
from glovebox.decode import Text
from glovebox.errors import UnexpectedAnswer

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError as error:
            shown = self.content[:80].decode("utf-8", "replace")
            raise UnexpectedAnswer(f"expected JSON, got `{shown}`") from error

    def error(self) -> errors.ApiError:
        try:
            body = self.json()
        except UnexpectedAnswer:
            body = None
        return errors.from_answer(self.status, self.headers, body)


@dataclass(frozen=True)
class Page(Generic[T]):
    items: list[T]
    #: Pass it as `cursor` for what follows; None on the last page.
    next: Optional[str] = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FileContent:
    """The bytes of a file, and the mark of the very file that they are from."""

    data: bytes = b""
    etag: str = ""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[Answer], T]
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Optional[bytes] = None
    #: Seconds until the first byte of the answer.
    timeout: float = 30.0
    #: Statuses beside those of success that are an answer.
    also: frozenset[int] = frozenset()


def getting(path: str, read: Callable[[Answer], T], /, **params: object) -> Call[T]:
    given = {key: query(value) for key, value in params.items() if value is not None}
    return Call("GET", path, read, given)


def changing(
    method: str,
    path: str,
    read: Callable[[Answer], T],
    *,
    json_body: Any = None,
    content: Optional[bytes] = None,
    content_type: str = "application/json",
    headers: Optional[Mapping[str, str]] = None,
    timeout: float = 30.0,
) -> Call[T]:
    """The key is made here, once: a call that is repeated is the same call."""
    if json_body is not None:
        content = json.dumps(json_body).encode()
    all_headers = {"Idempotency-Key": uuid.uuid4().hex, **(headers or {})}
    if content is not None:
        all_headers["Content-Type"] = content_type
    return Call(method, path, read, headers=all_headers, content=content, timeout=timeout)


def query(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def segment(value: Text) -> str:
    """One segment of a path."""
    if value in ("", ".", "..", b"", b".", b".."):
        raise ValueError(f"`{value!r}` names nothing")
    return quote(value, safe="")


def segments(path: Text) -> str:
    parts = path.split("/") if isinstance(path, str) else path.split(b"/")
    return "/".join(segment(part) for part in parts)


def some_path(path: Text) -> Text:
    """Of a file: the workspace itself is none."""
    if not path:
        raise ValueError("the path is empty: name a file, such as `src/main.py`")
    return path


def of(kind: type[T]) -> Callable[[Answer], T]:
    return lambda answer: decode.record(kind, answer.json())


def page_of(kind: type[T]) -> Callable[[Answer], Page[T]]:
    def read(answer: Answer) -> Page[T]:
        body = answer.json()
        if not isinstance(body, dict) or not isinstance(body.get("items"), list):
            raise UnexpectedAnswer("expected a page with `items`")
        extra = {key: value for key, value in body.items() if key not in ("items", "next")}
        items = [decode.record(kind, item) for item in body["items"]]
        return Page(items, body.get("next"), extra)

    return read


def as_json(answer: Answer) -> Any:
    return answer.json()


def as_bytes(answer: Answer) -> bytes:
    return answer.content


def as_file(answer: Answer) -> bytes:
    """A directory is answered with its entries, and only a file has a mark."""
    if "etag" not in answer.headers and _is_json(answer):
        message, hint = "it is a directory", "`workspaces.files` lists it"
        report = {"code": "invalid_argument", "message": message, "hints": [hint]}
        raise errors.InvalidArgument(400, report)
    return answer.content


def _is_json(answer: Answer) -> bool:
    return answer.headers.get("content-type", "").startswith("application/json")


def as_text(answer: Answer) -> str:
    return answer.content.decode("utf-8", "replace")


def nothing(answer: Answer) -> None:
    del answer
