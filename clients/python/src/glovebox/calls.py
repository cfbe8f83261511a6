"""Every call of the API: what is sent, and how the answer is read. Both clients send these, so that
they cannot differ in what they say."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Generic, Optional, TypeVar, Union
from urllib.parse import quote

from glovebox import decode, errors, request
from glovebox.decode import Text
from glovebox.errors import UnexpectedAnswer
from glovebox.records import (
    Artifacts,
    AuditEntry,
    Checkpoint,
    Exec,
    Explanation,
    Health,
    Listing,
    NewToken,
    Observation,
    Page,
    ServerSettings,
    Token,
    Verification,
    Workspace,
)
from glovebox.request import Options

T = TypeVar("T")

# The server answers a waiting call after ten minutes at the latest; then the client asks again.
_WAIT = 630.0


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
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[Answer], T]
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Optional[bytes] = None
    #: Seconds until the first byte of the answer.
    timeout: float = 30.0


def _get(path: str, read: Callable[[Answer], T], **params: object) -> Call[T]:
    given = {key: _query(value) for key, value in params.items() if value is not None}
    return Call("GET", path, read, given)


def _change(
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


def _query(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _name(value: Text) -> str:
    """One segment of a path."""
    if value in ("", ".", "..", b"", b".", b".."):
        raise ValueError(f"`{value!r}` names nothing")
    return quote(value, safe="")


def _names(path: Text) -> str:
    parts = path.split("/") if isinstance(path, str) else path.split(b"/")
    return "/".join(_name(part) for part in parts)


def _of(kind: type[T]) -> Callable[[Answer], T]:
    return lambda answer: decode.record(kind, answer.json())


def _page_of(kind: type[T]) -> Callable[[Answer], Page[T]]:
    def read(answer: Answer) -> Page[T]:
        body = answer.json()
        if not isinstance(body, dict) or not isinstance(body.get("items"), list):
            raise UnexpectedAnswer("expected a page with `items`")
        extra = {key: value for key, value in body.items() if key not in ("items", "next")}
        items = [decode.record(kind, item) for item in body["items"]]
        return Page(items, body.get("next"), extra)

    return read


def _json(answer: Answer) -> Any:
    return answer.json()


def _bytes(answer: Answer) -> bytes:
    return answer.content


def _text(answer: Answer) -> str:
    return answer.content.decode("utf-8", "replace")


def _nothing(answer: Answer) -> None:
    del answer


# Execs


def create_exec(body: Mapping[str, Any], *, wait: bool) -> Call[Exec]:
    timeout = _WAIT if wait else 30.0
    sent = {**body, "wait": wait}
    return _change("POST", "/v1/execs", _of(Exec), json_body=sent, timeout=timeout)


def list_execs(**filters: object) -> Call[Page[Exec]]:
    return _get("/v1/execs", _page_of(Exec), **filters)


def get_exec(exec_id: str) -> Call[Exec]:
    return _get(f"/v1/execs/{_name(exec_id)}", _of(Exec))


def cancel_exec(exec_id: str) -> Call[Exec]:
    return _change("POST", f"/v1/execs/{_name(exec_id)}/cancel", _of(Exec))


def output(
    exec_id: str, stream: str, offset: Optional[int], limit: Optional[int]
) -> Call[bytes]:
    path = f"/v1/execs/{_name(exec_id)}/{stream}"
    return _get(path, _bytes, offset=offset, limit=limit)


def list_artifacts(exec_id: str) -> Call[Artifacts]:
    return _get(f"/v1/execs/{_name(exec_id)}/artifacts", _of(Artifacts))


def get_artifact(exec_id: str, path: Text) -> Call[bytes]:
    return _get(f"/v1/execs/{_name(exec_id)}/artifacts/{_names(path)}", _bytes)


def events(exec_id: str, after: int, silence: float) -> Call[None]:
    call = _get(f"/v1/execs/{_name(exec_id)}/events", _nothing, after=after)
    return replace(call, timeout=silence)


def observation(exec_id: str) -> Call[Observation]:
    return _get(f"/sandbox/execs/{_name(exec_id)}/observation", _of(Observation))


def explain(program: Mapping[str, Any], options: Options) -> Call[Explanation]:
    body = request.body(program, options)
    if "client_id" not in options:
        del body["client_id"]
    return _change("POST", "/v1/policy/explain", _of(Explanation), json_body=body)


# Workspaces


def list_workspaces(**filters: object) -> Call[Page[Workspace]]:
    return _get("/v1/workspaces", _page_of(Workspace), **filters)


def get_workspace(project_id: str) -> Call[Workspace]:
    return _get(f"/v1/workspaces/{_name(project_id)}", _of(Workspace))


def delete_workspace(project_id: str) -> Call[None]:
    return _change("DELETE", f"/v1/workspaces/{_name(project_id)}", _nothing)


def _file(project_id: str, path: Text) -> str:
    return f"/v1/workspaces/{_name(project_id)}/files/{_names(path)}"


def list_files(project_id: str, path: Text) -> Call[Listing]:
    root = f"/v1/workspaces/{_name(project_id)}/files"
    return _get(_file(project_id, path) if path else root, _of(Listing))


def read_file(project_id: str, path: Text) -> Call[bytes]:
    return _get(_file(project_id, path), _bytes)


def write_file(project_id: str, path: Text, content: Union[str, bytes]) -> Call[None]:
    sent = content.encode() if isinstance(content, str) else content
    kind = "application/octet-stream"
    return _change("PUT", _file(project_id, path), _nothing, content=sent, content_type=kind)


def delete_file(project_id: str, path: Text) -> Call[None]:
    return _change("DELETE", _file(project_id, path), _nothing)


# The ledger


def query_audit(**filters: object) -> Call[Page[AuditEntry]]:
    return _get("/v1/audit", _page_of(AuditEntry), **filters)


def verify_audit() -> Call[Verification]:
    return _get("/v1/audit/verify", _of(Verification))


def export_audit(format: str) -> Call[bytes]:
    return _get("/v1/audit/export", _bytes, format=format)


def audit_checkpoint() -> Call[Checkpoint]:
    return _get("/v1/audit/checkpoint", _of(Checkpoint))


# The server


def get_settings() -> Call[ServerSettings]:
    return _get("/v1/settings", _of(ServerSettings))


def change_settings(change: Mapping[str, Any], version: Optional[int]) -> Call[ServerSettings]:
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    read = _of(ServerSettings)
    return _change("PATCH", "/v1/settings", read, json_body=change, headers=headers)


def create_token(token: Mapping[str, object]) -> Call[NewToken]:
    given = {key: value for key, value in token.items() if value is not None}
    return _change("POST", "/v1/tokens", _of(NewToken), json_body=given)


def list_tokens(**filters: object) -> Call[Page[Token]]:
    return _get("/v1/tokens", _page_of(Token), **filters)


def get_token(token_id: str) -> Call[Token]:
    return _get(f"/v1/tokens/{_name(token_id)}", _of(Token))


def revoke_token(token_id: str) -> Call[Token]:
    return _change("DELETE", f"/v1/tokens/{_name(token_id)}", _of(Token))


def whoami() -> Call[Token]:
    return _get("/v1/whoami", _of(Token))


def alive() -> Call[None]:
    return _get("/healthz", _nothing)


def ready() -> Call[None]:
    return _get("/readyz", _nothing)


def health(probe: bool) -> Call[Health]:
    return _get("/sandbox/health", _of(Health), probe=probe or None)


def metrics() -> Call[str]:
    return _get("/metrics", _text)


def openapi() -> Call[Mapping[str, Any]]:
    return _get("/openapi.json", _json)
