"""Every call of the API: what is sent, and how the answer is read. Both clients send these, so that
they cannot differ in what they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Optional, Union

from glovebox import request
from glovebox.call import (
    Answer,
    Call,
    FileContent,
    Page,
    as_bytes,
    as_file,
    as_json,
    as_text,
    changing,
    getting,
    nothing,
    of,
    page_of,
    query,
    segment,
    segments,
    some_path,
)
from glovebox.decode import Text
from glovebox.records import (
    Artifacts,
    Backend,
    Changes,
    Collected,
    Copied,
    Diff,
    Exec,
    Explanation,
    FileInfo,
    Forked,
    Glob,
    Health,
    Listing,
    NetworkPage,
    NewToken,
    Observation,
    Pool,
    Pruned,
    Recreated,
    Replaced,
    Reset,
    Restored,
    RolledBack,
    Sandbox,
    SandboxExplanation,
    Search,
    Seeded,
    ServerSettings,
    Settled,
    Snapshot,
    SnapshotVerification,
    TakenSnapshot,
    Token,
    ToolAnswer,
    ToolsAnswer,
    Undone,
    Unpacked,
    Workspace,
)
from glovebox.request import Options, SandboxOptions, SearchOptions

# The server answers a waiting call after ten minutes at the latest; then the client asks again.
_WAIT = 630.0
# A sandbox is taken down after the exec in it has ended, or not at all; many, one after another.
_TAKE_DOWN = 90.0
# Whoever looks at many files stops by itself after some seconds; a whole workspace has no such end.
_LOOK = 90.0
_HAUL = 630.0


# Execs


def create_exec(body: Mapping[str, Any], *, wait: bool) -> Call[Exec]:
    timeout = _WAIT if wait else 30.0
    sent = {**body, "wait": wait}
    return changing("POST", "/v1/execs", of(Exec), json_body=sent, timeout=timeout)


def list_execs(**filters: object) -> Call[Page[Exec]]:
    return getting("/v1/execs", page_of(Exec), **filters)


def get_exec(exec_id: str) -> Call[Exec]:
    return getting(f"/v1/execs/{segment(exec_id)}", of(Exec))


def cancel_exec(exec_id: str) -> Call[Exec]:
    return changing("POST", f"/v1/execs/{segment(exec_id)}/cancel", of(Exec))


def output(
    exec_id: str, stream: str, offset: Optional[int], limit: Optional[int]
) -> Call[bytes]:
    path = f"/v1/execs/{segment(exec_id)}/{stream}"
    return getting(path, as_bytes, offset=offset, limit=limit)


def list_artifacts(exec_id: str) -> Call[Artifacts]:
    return getting(f"/v1/execs/{segment(exec_id)}/artifacts", of(Artifacts))


def get_artifact(exec_id: str, path: Text) -> Call[bytes]:
    return getting(f"/v1/execs/{segment(exec_id)}/artifacts/{segments(path)}", as_bytes)


def events(exec_id: str, after: int, silence: float) -> Call[None]:
    call = getting(f"/v1/execs/{segment(exec_id)}/events", nothing, after=after)
    return replace(call, timeout=silence)


def network(exec_id: str, after: int, wait: float) -> Call[NetworkPage]:
    path = f"/v1/execs/{segment(exec_id)}/network"
    waiting = max(0, round(wait * 1000))
    call = getting(path, of(NetworkPage), after=after, wait_ms=waiting)
    return replace(call, timeout=wait + 30.0)


def observation(exec_id: str) -> Call[Observation]:
    return getting(f"/sandbox/execs/{segment(exec_id)}/observation", of(Observation))


def explain(program: Mapping[str, Any], options: Options) -> Call[Explanation]:
    body = request.body(program, options)
    if "client_id" not in options:
        del body["client_id"]
    return changing("POST", "/v1/policy/explain", of(Explanation), json_body=body)


def check_tools(names: Iterable[str], agent_id: Optional[str]) -> Call[list[ToolAnswer]]:
    body: dict[str, Any] = {"tools": list(names)}
    if agent_id is not None:
        body["task_ref"] = {"agent_id": agent_id}
    read = of(ToolsAnswer)
    return changing("POST", "/v1/tools/check", lambda it: read(it).answers, json_body=body)


def exec_changes(exec_id: str) -> Call[Changes]:
    return replace(getting(f"/v1/execs/{segment(exec_id)}/changes", of(Changes)), timeout=_HAUL)


def keep_changes(exec_id: str) -> Call[Settled]:
    path = f"/v1/execs/{segment(exec_id)}/keep"
    return changing("POST", path, of(Settled), timeout=_HAUL)


def discard_changes(exec_id: str) -> Call[Settled]:
    path = f"/v1/execs/{segment(exec_id)}/discard"
    return changing("POST", path, of(Settled), timeout=_HAUL)


# Workspaces


def _workspace(project_id: str, what: str = "") -> str:
    return f"/v1/workspaces/{segment(project_id)}{what}"


def _file(project_id: str, path: Text) -> str:
    return _workspace(project_id, f"/files/{segments(path)}" if path else "/files")


def list_workspaces(**filters: object) -> Call[Page[Workspace]]:
    return getting("/v1/workspaces", page_of(Workspace), **filters)


def get_workspace(project_id: str) -> Call[Workspace]:
    return getting(_workspace(project_id), of(Workspace))


def delete_workspace(project_id: str) -> Call[None]:
    return changing("DELETE", _workspace(project_id), nothing)


def seed_workspace(project_id: str) -> Call[Seeded]:
    return changing("POST", _workspace(project_id, "/seed"), of(Seeded), timeout=_HAUL)


def reset_workspace(project_id: str, **what: bool) -> Call[Reset]:
    path = _workspace(project_id, "/reset")
    return changing("POST", path, of(Reset), json_body=what, timeout=_HAUL)


def list_files(
    project_id: str, path: Text, depth: int, limit: Optional[int], after: Optional[str]
) -> Call[Listing]:
    wanted = {"depth": depth if depth != 1 else None, "limit": limit, "after": after}
    return getting(_file(project_id, path), of(Listing), **wanted)


def page_of_files(
    project_id: str, path: Text, depth: int, limit: Optional[int], after: Optional[str]
) -> Call[Page[FileInfo]]:
    call = list_files(project_id, path, depth, limit, after)

    def read(answer: Answer) -> Page[FileInfo]:
        listing = call.read(answer)
        return Page(listing.entries, listing.next)

    return Call(call.method, call.path, read, call.params)


def stat_file(project_id: str, path: Text) -> Call[FileInfo]:
    return getting(_file(project_id, path), of(FileInfo), stat=True)


def read_file(
    project_id: str, path: Text, offset: Optional[int], limit: Optional[int]
) -> Call[bytes]:
    part = request.part(offset, limit)
    call = getting(_file(project_id, some_path(path)), as_file)
    if part is None:
        return call

    def read(answer: Answer) -> bytes:
        if answer.status == 416:
            return b""  # It begins behind the end.
        # HTTP lets a server answer with the whole.
        return answer.content if answer.status == 206 else as_file(answer)[part.slice]

    return replace(call, read=read, headers={"Range": part.header}, also=frozenset({416}))


def fetch_file(project_id: str, path: Text, known: Optional[str]) -> Call[Optional[FileContent]]:
    def read(answer: Answer) -> Optional[FileContent]:
        if answer.status == 304:
            return None
        # A proxy that changed how the bytes are packed says so with a `W/`.
        etag = answer.headers.get("etag", "").removeprefix("W/").strip('"')
        return FileContent(as_file(answer), etag)

    call = getting(_file(project_id, some_path(path)), read)
    if known is None:
        return call
    return replace(call, headers={"If-None-Match": f'"{known}"'}, also=frozenset({304}))


def write_file(
    project_id: str,
    path: Text,
    content: Union[str, bytes],
    etag: Optional[str],
    new: bool,
    mode: Union[int, str, None],
) -> Call[FileInfo]:
    call = changing(
        "PUT",
        _file(project_id, some_path(path)),
        of(FileInfo),
        content=content.encode() if isinstance(content, str) else content,
        content_type="application/octet-stream",
        headers=request.expected(etag, new),
    )
    given = request.mode(mode)
    return call if given is None else replace(call, params={"mode": given})


def delete_file(project_id: str, path: Text, recursive: bool) -> Call[None]:
    call = changing("DELETE", _file(project_id, some_path(path)), nothing)
    return replace(call, params={"recursive": query(recursive)})


def make_directory(project_id: str, path: Text, parents: bool) -> Call[FileInfo]:
    body = {"path": request.path(path), "parents": parents}
    return changing("POST", _workspace(project_id, "/mkdir"), of(FileInfo), json_body=body)


def _from_to(source: Text, to: Text, overwrite: bool, parents: bool) -> Mapping[str, Any]:
    ends = {"from": request.path(source), "to": request.path(to)}
    return {**ends, "overwrite": overwrite, "parents": parents}


def move_file(
    project_id: str, source: Text, to: Text, overwrite: bool, parents: bool
) -> Call[FileInfo]:
    body = _from_to(source, to, overwrite, parents)
    return changing("POST", _workspace(project_id, "/move"), of(FileInfo), json_body=body)


def copy_file(
    project_id: str, source: Text, to: Text, overwrite: bool, parents: bool
) -> Call[Copied]:
    body, path = _from_to(source, to, overwrite, parents), _workspace(project_id, "/copy")
    return changing("POST", path, of(Copied), json_body=body, timeout=_HAUL)


def replace_in_file(
    project_id: str, path: Text, old: str, new: str, every: bool, etag: Optional[str]
) -> Call[Replaced]:
    body = {"path": request.path(path), "old": old, "new": new, "all": every}
    if etag is not None:
        body["etag"] = etag
    return changing("POST", _workspace(project_id, "/replace"), of(Replaced), json_body=body)


def search_files(project_id: str, pattern: str, options: SearchOptions) -> Call[Search]:
    body, path = request.search(pattern, options), _workspace(project_id, "/search")
    return changing("POST", path, of(Search), json_body=body, timeout=_LOOK)


def glob_files(
    project_id: str, pattern: str, under: Text, hidden: bool, limit: Optional[int]
) -> Call[Glob]:
    body, path = request.glob(pattern, under, hidden, limit), _workspace(project_id, "/glob")
    return changing("POST", path, of(Glob), json_body=body, timeout=_LOOK)


def watch(
    project_id: str, after: Optional[int], seconds: Optional[int], silence: float
) -> Call[None]:
    path = _workspace(project_id, "/watch")
    return replace(getting(path, nothing, after=after, seconds=seconds), timeout=silence)


def download_archive(project_id: str, path: Text, format: str) -> Call[bytes]:
    place, under = _workspace(project_id, "/archive"), request.query_path(path)
    return replace(getting(place, as_bytes, format=format, path=under), timeout=_HAUL)


def upload_archive(project_id: str, content: bytes, path: Text) -> Call[Unpacked]:
    call = changing(
        "PUT",
        _workspace(project_id, "/archive"),
        of(Unpacked),
        content=content,
        content_type="application/octet-stream",
        timeout=_HAUL,
    )
    under = request.query_path(path)
    return call if under is None else replace(call, params={"path": under})


# Snapshots


def _snapshot(project_id: str, snapshot_id: str, what: str = "") -> str:
    return _workspace(project_id, f"/snapshots/{segment(snapshot_id)}{what}")


def take_snapshot(
    project_id: str, label: Optional[str], note: Optional[str], live: bool
) -> Call[TakenSnapshot]:
    given = {"label": label, "note": note, "live": live}
    body = {key: value for key, value in given.items() if value is not None}
    path = _workspace(project_id, "/snapshots")
    return changing("POST", path, of(TakenSnapshot), json_body=body, timeout=_HAUL)


def list_snapshots(project_id: str, limit: int) -> Call[Page[Snapshot]]:
    return getting(_workspace(project_id, "/snapshots"), page_of(Snapshot), limit=limit)


def get_snapshot(project_id: str, snapshot_id: str) -> Call[Snapshot]:
    return getting(_snapshot(project_id, snapshot_id), of(Snapshot))


def remove_snapshot(project_id: str, snapshot_id: str) -> Call[None]:
    return changing("DELETE", _snapshot(project_id, snapshot_id), nothing)


def restore_snapshot(project_id: str, snapshot_id: str, before: bool) -> Call[Restored]:
    path = _snapshot(project_id, snapshot_id, "/restore")
    call = changing("POST", path, of(Restored), timeout=_HAUL)
    return replace(call, params=_keeping(before))


def diff_workspace(
    project_id: str,
    before: Optional[str],
    after: Optional[str],
    limit: Optional[int],
    text: bool,
) -> Call[Diff]:
    sides = {"from": before, "to": after, "limit": limit, "text": text}
    return replace(getting(_workspace(project_id, "/diff"), of(Diff), **sides), timeout=_HAUL)


def _keeping(before: bool) -> Mapping[str, str]:
    return {} if before else {"snapshot_before": query(before)}


def undo_exec(project_id: str, exec_id: Optional[str], before: bool) -> Call[Undone]:
    body = {} if exec_id is None else {"exec_id": exec_id}
    path = _workspace(project_id, "/undo")
    call = changing("POST", path, of(Undone), json_body=body, timeout=_HAUL)
    return replace(call, params=_keeping(before))


def roll_back_workspace(
    project_id: str, snapshot_id: Optional[str], before: bool
) -> Call[RolledBack]:
    body = {} if snapshot_id is None else {"snapshot_id": snapshot_id}
    path = _workspace(project_id, "/rollback")
    call = changing("POST", path, of(RolledBack), json_body=body, timeout=_HAUL)
    return replace(call, params=_keeping(before))


def fork_workspace(project_id: str, into: str, snapshot_id: Optional[str]) -> Call[Forked]:
    given = {} if snapshot_id is None else {"snapshot_id": snapshot_id}
    body, path = {"into": into, **given}, _workspace(project_id, "/fork")
    return changing("POST", path, of(Forked), json_body=body, timeout=_HAUL)


def collect_snapshots() -> Call[Collected]:
    return changing("POST", "/v1/snapshots/collect", of(Collected), timeout=_HAUL)


def verify_snapshots() -> Call[SnapshotVerification]:
    call = getting("/v1/snapshots/verify", of(SnapshotVerification))
    return replace(call, timeout=_HAUL)


# Sandboxes


def create_sandbox(lifetime: str, options: SandboxOptions) -> Call[Sandbox]:
    body = request.sandbox(lifetime, options)
    return changing("POST", "/v1/sandboxes", of(Sandbox), json_body=body, timeout=_WAIT)


def list_sandboxes(**filters: object) -> Call[Page[Sandbox]]:
    return getting("/v1/sandboxes", page_of(Sandbox), **filters)


def get_sandbox(sandbox_id: str) -> Call[Sandbox]:
    return getting(f"/v1/sandboxes/{segment(sandbox_id)}", of(Sandbox))


def remove_sandbox(sandbox_id: str) -> Call[Sandbox]:
    path = f"/v1/sandboxes/{segment(sandbox_id)}"
    return changing("DELETE", path, of(Sandbox), timeout=_TAKE_DOWN)


def recreate_sandbox(sandbox_id: str) -> Call[Sandbox]:
    path = f"/v1/sandboxes/{segment(sandbox_id)}/recreate"
    return changing("POST", path, of(Sandbox), timeout=_TAKE_DOWN)


def recreate_sandboxes(which: Mapping[str, Any]) -> Call[Recreated]:
    path = "/v1/sandboxes/recreate"
    return changing("POST", path, of(Recreated), json_body=which, timeout=_WAIT)


def prune_sandboxes() -> Call[Pruned]:
    return changing("POST", "/v1/sandboxes/prune", of(Pruned), timeout=_WAIT)


def explain_sandbox(lifetime: str, options: SandboxOptions) -> Call[SandboxExplanation]:
    body = request.sandbox(lifetime, options)
    return changing("POST", "/v1/sandboxes/explain", of(SandboxExplanation), json_body=body)


# The server


def get_settings() -> Call[ServerSettings]:
    return getting("/v1/settings", of(ServerSettings))


def change_settings(change: Mapping[str, Any], version: Optional[int]) -> Call[ServerSettings]:
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    read = of(ServerSettings)
    return changing("PATCH", "/v1/settings", read, json_body=change, headers=headers)


def create_token(token: Mapping[str, object]) -> Call[NewToken]:
    given = {key: value for key, value in token.items() if value is not None}
    return changing("POST", "/v1/tokens", of(NewToken), json_body=given)


def list_tokens(**filters: object) -> Call[Page[Token]]:
    return getting("/v1/tokens", page_of(Token), **filters)


def get_token(token_id: str) -> Call[Token]:
    return getting(f"/v1/tokens/{segment(token_id)}", of(Token))


def revoke_token(token_id: str) -> Call[Token]:
    return changing("DELETE", f"/v1/tokens/{segment(token_id)}", of(Token))


def whoami() -> Call[Token]:
    return getting("/v1/whoami", of(Token))


def alive() -> Call[None]:
    return getting("/healthz", nothing)


def ready() -> Call[None]:
    return getting("/readyz", nothing)


def health(probe: bool) -> Call[Health]:
    return getting("/sandbox/health", of(Health), probe=probe or None)


def metrics() -> Call[str]:
    return getting("/metrics", as_text)


def pool() -> Call[Pool]:
    return getting("/v1/pool", of(Pool))


def backends() -> Call[list[Backend]]:
    page = page_of(Backend)
    return replace(getting("/v1/backends", lambda answer: page(answer).items), timeout=_TAKE_DOWN)


def openapi() -> Call[Mapping[str, Any]]:
    return getting("/openapi.json", as_json)
