"""What a program did, or would have done, as the server tells it: one entry for each thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Optional, Union

from glovebox.decode import Text, many, maybe, maybe_text, moment, record, text, texts, values


@dataclass(frozen=True)
class FileFacts:
    """One side of a change of a file."""

    #: `file`, `directory`, `symlink` and so on.
    kind: str = ""
    size: int = 0
    #: A number, such as `0o644`.
    mode: int = 0
    #: BLAKE3 of a file's bytes, unless there are too many.
    digest: Optional[str] = None
    #: BLAKE3 of the extended attributes that are carried over, if there are any.
    attributes: Optional[str] = None
    #: The text of a link.
    target: Optional[Text] = maybe_text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class FileWrite:
    """Of a `filesystem_write`."""

    SAID: ClassVar[Mapping[str, str]] = {"moved_from": "from"}

    #: `created`, `modified`, `replaced` by something of another kind, `removed`, `renamed`,
    #: `touched`, or `attempted`: it was refused, so nobody knows what would have come of it.
    operation: str = ""
    #: Relative to the workspace; absolute for what lies outside it.
    path: Text = text()
    #: Where something that was renamed stood before.
    moved_from: Optional[Text] = maybe_text()
    before: Optional[FileFacts] = maybe(FileFacts)
    after: Optional[FileFacts] = maybe(FileFacts)
    #: Of text: unified hunks. Not in an exec's record, which more may read than files.
    diff: Optional[str] = None
    #: The system call, of an attempt.
    call: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class FileRead:
    """Of a `filesystem_read`."""

    #: Relative to the workspace; absolute for what lies outside it.
    path: Text = text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class NetworkRequest:
    """Of a `network_request`."""

    #: `direct`, `connect`, `socks`, `proxied` or `dns`.
    approach: str = ""
    #: `dns`, `udp`, `tcp`, `tls`, `http` or `https`.
    spoken: str = ""
    #: The name that was asked for, or the address where there was none.
    host: str = ""
    port: int = 0
    #: What policy says to it: `OK`, or why not.
    code: str = ""
    method: Optional[str] = None
    #: Without its query.
    path: Optional[str] = None
    #: Its beginning, with `[secret …]` in the place of values that are secrets or look like one.
    query: Optional[str] = None
    #: BLAKE3 of the whole query as it was; none of a request without one.
    query_digest: Optional[str] = None
    #: The names of the headers that a rerun is held to, sorted.
    header_names: list[str] = values(list)
    #: BLAKE3 of those headers with their values.
    headers_digest: Optional[str] = None
    #: Bytes of the body that would have been sent.
    body_bytes: int = 0
    #: BLAKE3 of that body.
    body_digest: Optional[str] = None
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class ProcessSpawn:
    """Of a `process_spawn`."""

    #: Inside the sandbox.
    pid: int = 0
    parent: int = 0
    program: Text = text()
    argv: list[Text] = texts()
    #: There were more arguments, or longer ones, than are kept.
    argv_truncated: bool = False
    cwd: Optional[Text] = maybe_text()
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Reported:
    """Of a `state_mutation` or an `external_api_call`: what a tool said of itself."""

    #: What it acts on: a table, a queue, an endpoint.
    target: str = ""
    #: What it does there.
    action: str = ""
    data: Any = None
    extra: Mapping[str, Any] = values(dict)


#: What a newer server tells of stays as it came.
Details = Union[FileWrite, FileRead, NetworkRequest, ProcessSpawn, Reported, Mapping[str, Any]]

_DETAILS: Mapping[str, Any] = {
    "filesystem_write": FileWrite,
    "filesystem_read": FileRead,
    "network_request": NetworkRequest,
    "process_spawn": ProcessSpawn,
    "state_mutation": Reported,
    "external_api_call": Reported,
}


@dataclass(frozen=True)
class Effect:
    """One thing that a program did, or would have done, in the order in which it was seen."""

    #: Counts within the exec, from 1.
    seq: int = 0
    at: Optional[datetime] = moment()
    #: `filesystem_write`, `filesystem_read`, `network_request`, `process_spawn`, or, told by a tool
    #: itself, `state_mutation` or `external_api_call`.
    type: str = ""
    details: Details = values(dict)
    #: Whether policy lets it happen when it is run for real.
    would_succeed: bool = False
    #: Why not, and the way out.
    failure_reason: Optional[str] = None
    #: Told while the program ran; the last word is told at its end.
    provisional: bool = False
    #: What the program was told instead of what would have come of it.
    simulated_result: Any = None
    extra: Mapping[str, Any] = values(dict)

    def __post_init__(self) -> None:
        # What `details` are is known only here, where their type is.
        kind = _DETAILS.get(self.type)
        if kind is not None and not isinstance(self.details, kind):
            object.__setattr__(self, "details", record(kind, self.details))

    @property
    def target(self) -> Text:
        """What it acts on, for people: a path, `host:port`, a program, or what the tool says."""
        if isinstance(self.details, (FileWrite, FileRead)):
            return self.details.path
        if isinstance(self.details, NetworkRequest):
            return f"{self.details.host}:{self.details.port}"
        if isinstance(self.details, ProcessSpawn):
            return self.details.program
        return self.details.target if isinstance(self.details, Reported) else ""


@dataclass(frozen=True)
class EffectCount:
    """How many effects there were, and how many are not told."""

    total: int = 0
    #: Those that policy would not let happen.
    violations: int = 0
    #: Seen, counted and not kept.
    dropped: int = 0
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class EffectPage:
    """A part of an exec's effects."""

    effects: list[Effect] = many(Effect)
    #: The place after these.
    next: int = 0
    #: The exec has ended, and nothing comes after these.
    complete: bool = False
    extra: Mapping[str, Any] = values(dict)


@dataclass(frozen=True)
class Preview:
    """What ties a simulation to what is done after it."""

    #: The simulation: itself, or the one that is carried out.
    exec_id: str = ""
    #: SHA-256 over its program and its effects.
    digest: str = ""
    extra: Mapping[str, Any] = values(dict)
