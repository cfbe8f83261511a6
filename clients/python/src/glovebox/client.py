"""The client for code that waits."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

import httpx

from glovebox import calls, request
from glovebox.calls import Answer, Call
from glovebox.decode import Text
from glovebox.download import Download
from glovebox.errors import (
    ApiError,
    CleanupFailed,
    ConnectionFailed,
    GloveboxError,
    NotFound,
    Unavailable,
    UnexpectedAnswer,
)
from glovebox.records import (
    Artifacts,
    AuditEntry,
    Checkpoint,
    Event,
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
from glovebox.request import AuditFilters, Options
from glovebox.retry import Patience
from glovebox.started import Started
from glovebox.stream import Follow
from glovebox.target import Target, Verify
from glovebox.wire import headers, passing, timeouts

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Glovebox:
    """A connection to a server. Use it in a `with`, or call `close()`: that cancels the execs which
    this client began and which still run. One client may be used by many threads."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        verify: Verify = True,
        patience: Patience = Patience(),
        transport: Optional[httpx.BaseTransport] = None,
    ) -> None:
        self._target = Target.of(url, token, verify)
        self._patience = patience
        self._started = Started()
        if transport is None:
            transport = httpx.HTTPTransport(
                verify=self._target.verify,
                uds=self._target.socket,
                socket_options=self._target.socket_options,
            )
        # Neither proxies nor a `.netrc` of the environment: the token goes to the server alone.
        self._http = httpx.Client(
            base_url=self._target.url,
            headers=headers(self._target.token),
            transport=transport,
            trust_env=False,
        )
        self.execs = Execs(self)
        self.workspaces = Workspaces(self)
        self.audit = Audit(self)
        self.settings = Settings(self)
        self.tokens = Tokens(self)

    def __repr__(self) -> str:
        return f"Glovebox({str(self._target)!r})"

    def __enter__(self) -> Glovebox:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.close()
        except CleanupFailed as failed:
            # What went wrong in the block says more; this must not take its place.
            if error is None:
                raise
            warnings.warn(str(failed), ResourceWarning, stacklevel=2)

    def close(self) -> None:
        """Cancels what this client began and what still runs, and closes its connections.
        Whatever could not be canceled is named by `CleanupFailed`."""
        failures: dict[str, GloveboxError] = {}
        patience = Patience(retries=min(2, self._patience.retries), longest=2.0)
        for name in self._started.take():
            try:
                self._send(calls.cancel_exec(name), patience)
            except NotFound:
                pass  # The server never heard of it.
            except GloveboxError as error:
                failures[name] = error
        self._http.close()
        if failures:
            raise CleanupFailed(failures)

    def detach(self, exec: Union[Exec, str]) -> None:
        """Leaves this exec alone when the client is closed."""
        self._started.drop(exec.exec_id if isinstance(exec, Exec) else exec)

    def run(self, *argv: str, **options: Unpack[Options]) -> Exec:
        """Runs a command and returns its record when it has ended, however it ended."""
        return self._run(request.body(request.argv(argv), options))

    def run_python(self, code: str, **options: Unpack[Options]) -> Exec:
        return self._run(request.body(request.python(code), options))

    def run_shell(self, script: str, **options: Unpack[Options]) -> Exec:
        return self._run(request.body(request.shell(script), options))

    def start(self, *argv: str, **options: Unpack[Options]) -> Exec:
        """Begins a command and returns as soon as the server has taken it on."""
        return self._create(request.body(request.argv(argv), options), wait=False)

    def start_python(self, code: str, **options: Unpack[Options]) -> Exec:
        return self._create(request.body(request.python(code), options), wait=False)

    def start_shell(self, script: str, **options: Unpack[Options]) -> Exec:
        return self._create(request.body(request.shell(script), options), wait=False)

    def explain(self, *argv: str, **options: Unpack[Options]) -> Explanation:
        """What policy says about a command, without running it."""
        return self._send(calls.explain(request.argv(argv), options))

    def whoami(self) -> Token:
        return self._send(calls.whoami())

    def alive(self) -> bool:
        """The server answers."""
        try:
            self._send(calls.alive(), Patience(retries=0))
        except (ConnectionFailed, Unavailable):
            return False
        return True

    def ready(self) -> bool:
        """The server takes work."""
        try:
            self._send(calls.ready(), Patience(retries=0))
        except (ConnectionFailed, Unavailable):
            return False
        return True

    def health(self, *, probe: bool = False) -> Health:
        """What the server can enforce; with `probe` it tries it."""
        return self._send(calls.health(probe))

    def metrics(self) -> str:
        return self._send(calls.metrics())

    def openapi(self) -> Mapping[str, Any]:
        return self._send(calls.openapi())

    def _run(self, body: Mapping[str, Any]) -> Exec:
        exec = self._create(body, wait=True)
        # The server waits for some minutes at most.
        return exec if exec.ended else self.execs.wait(exec.exec_id)

    def _create(self, body: Mapping[str, Any], *, wait: bool) -> Exec:
        name: str = body["client_id"]
        self._started.begin(name)
        try:
            return self._seen(calls.create_exec(body, wait=wait))
        except ApiError as error:
            if error.status < 500:
                self._started.forget(name)
            raise

    def _seen(self, call: Call[Exec]) -> Exec:
        exec = self._send(call)
        self._started.saw(exec)
        return exec

    def _send(self, call: Call[T], patience: Optional[Patience] = None) -> T:
        patience = patience or self._patience
        failures = 0
        while True:
            try:
                with self._open(call) as response:
                    response.read()
                    answer = Answer(response.status_code, response.headers, response.content)
                if not response.is_success:
                    raise answer.error()
                return call.read(answer)
            except (ApiError, ConnectionFailed) as error:
                failures += 1
                pause = patience.pause(failures, error)
                if pause is None:
                    raise
            time.sleep(pause)

    @contextmanager
    def _open(self, call: Call[Any]) -> Iterator[httpx.Response]:
        try:
            with self._http.stream(
                call.method,
                call.path,
                params=call.params,
                headers=call.headers,
                content=call.content,
                timeout=timeouts(call.timeout),
            ) as response:
                yield response
        except httpx.RequestError as error:
            raise ConnectionFailed(
                f"{call.method} {call.path} at {self._target!r}: {error}", passing=passing(error)
            ) from error

    def _refused(self, response: httpx.Response) -> ApiError:
        response.read()
        return Answer(response.status_code, response.headers, response.content).error()

    def _pages(self, page: Callable[[Optional[str]], Page[T]]) -> Iterator[T]:
        cursor: Optional[str] = None
        seen: set[str] = set()
        while True:
            found = page(cursor)
            yield from found.items
            cursor = found.next
            if cursor is None:
                return
            if cursor in seen:
                raise UnexpectedAnswer(f"the server goes round in circles at cursor `{cursor}`")
            seen.add(cursor)


class Execs:
    """What was run, is running, or waits for its turn. Every method takes the exec's id or the
    `client_id` that it was given."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def get(self, exec_id: str) -> Exec:
        return self._client._seen(calls.get_exec(exec_id))

    def list(
        self,
        *,
        task_id: Optional[str] = None,
        status: Optional[str] = None,
        conversation_id: Optional[str] = None,
        project_id: Optional[str] = None,
        page_size: Optional[int] = None,
    ) -> Iterator[Exec]:
        """The newest first. Pages are fetched as they are needed."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_execs(
                    task_id=task_id,
                    status=status,
                    conversation_id=conversation_id,
                    project_id=project_id,
                    limit=page_size,
                    cursor=cursor,
                )
            )
        )

    def wait(self, exec_id: str, *, timeout: Optional[float] = None) -> Exec:
        """The record when it has ended. After about `timeout` seconds `WaitTimeout` is raised, and
        the exec goes on."""
        exec = self.get(exec_id)
        if exec.ended:
            return exec
        for _ in self._follow(Follow(exec.exec_id, 0, self._client._patience, timeout)):
            pass
        return self.get(exec.exec_id)

    def cancel(self, exec_id: str) -> Exec:
        """Asks it to stop. Returns the record as it is then, which may still be `running`."""
        return self._client._seen(calls.cancel_exec(exec_id))

    def events(self, exec_id: str, *, after: int = 0) -> Iterator[Event]:
        """What happens to it, as it happens, from the event after number `after` to the last one.
        A connection that is cut is made again, and nothing comes twice or is left out."""
        return self._follow(Follow(exec_id, after, self._client._patience))

    def stdout(
        self, exec_id: str, *, offset: Optional[int] = None, limit: Optional[int] = None
    ) -> bytes:
        """All that was kept of it."""
        return self._client._send(calls.output(exec_id, "stdout", offset, limit))

    def stderr(
        self, exec_id: str, *, offset: Optional[int] = None, limit: Optional[int] = None
    ) -> bytes:
        return self._client._send(calls.output(exec_id, "stderr", offset, limit))

    def artifacts(self, exec_id: str) -> Artifacts:
        return self._client._send(calls.list_artifacts(exec_id))

    def artifact(self, exec_id: str, path: Text) -> bytes:
        return self._client._send(calls.get_artifact(exec_id, path))

    def download(
        self, exec_id: str, path: Text, to: Union[str, os.PathLike[str]]
    ) -> int:
        """Writes an artifact to a file, which is there whole or not at all. Returns its size."""
        call = calls.get_artifact(exec_id, path)
        failures = 0
        while True:
            try:
                with Download(to) as file:
                    with self._client._open(call) as response:
                        if not response.is_success:
                            raise self._client._refused(response)
                        for piece in response.iter_bytes():
                            file.write(piece)
                    return file.keep()
            except (ApiError, ConnectionFailed) as error:
                failures += 1
                pause = self._client._patience.pause(failures, error)
                if pause is None:
                    raise
            time.sleep(pause)

    def observation(self, exec_id: str) -> Observation:
        """What an agent is told about it."""
        return self._client._send(calls.observation(exec_id))

    def _follow(self, follow: Follow) -> Iterator[Event]:
        while not follow.done:
            lost: Optional[GloveboxError] = None
            call = calls.events(follow.exec_id, follow.after, follow.open())
            try:
                with self._client._open(call) as response:
                    if not response.is_success:
                        raise self._client._refused(response)
                    for piece in response.iter_bytes():
                        yield from follow.feed(piece)
                        if follow.enough():
                            break
            except (ApiError, ConnectionFailed) as error:
                lost = error
            if not follow.done:
                time.sleep(follow.lost(lost))


class Workspaces:
    """Files that stay from one exec to the next."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def list(self, *, page_size: Optional[int] = None) -> Iterator[Workspace]:
        """By name, without their sizes."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_workspaces(limit=page_size, cursor=cursor)
            )
        )

    def get(self, project_id: str) -> Workspace:
        return self._client._send(calls.get_workspace(project_id))

    def delete(self, project_id: str) -> None:
        return self._client._send(calls.delete_workspace(project_id))

    def files(self, project_id: str, path: Text = "") -> Listing:
        """What is in a directory."""
        return self._client._send(calls.list_files(project_id, path))

    def read(self, project_id: str, path: Text) -> bytes:
        return self._client._send(calls.read_file(project_id, path))

    def write(self, project_id: str, path: Text, content: Union[str, bytes]) -> None:
        return self._client._send(calls.write_file(project_id, path, content))

    def remove(self, project_id: str, path: Text) -> None:
        return self._client._send(calls.delete_file(project_id, path))


class Audit:
    """The ledger."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def list(
        self, *, page_size: Optional[int] = None, **filters: Unpack[AuditFilters]
    ) -> Iterator[AuditEntry]:
        """The newest first."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.query_audit(**filters, limit=page_size, cursor=cursor)
            )
        )

    def verify(self) -> Verification:
        return self._client._send(calls.verify_audit())

    def export(self, *, format: str = "jsonl") -> bytes:
        """`jsonl` or `ocsf`."""
        return self._client._send(calls.export_audit(format))

    def checkpoint(self) -> Checkpoint:
        return self._client._send(calls.audit_checkpoint())


class Settings:
    """What an operator may change while the server runs."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def get(self) -> ServerSettings:
        return self._client._send(calls.get_settings())

    def change(
        self, change: Mapping[str, Any], *, version: Optional[int] = None
    ) -> ServerSettings:
        """A JSON merge patch. With `version` it is a `Conflict` if somebody was faster."""
        return self._client._send(calls.change_settings(change, version))


class Tokens:
    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def create(
        self,
        name: str,
        role: str,
        *,
        space_id: Optional[str] = None,
        scopes: Optional[Sequence[str]] = None,
        user_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        expires_at: Optional[str] = None,
    ) -> NewToken:
        return self._client._send(
            calls.create_token(
                {
                    "name": name,
                    "role": role,
                    "space_id": space_id,
                    "scopes": scopes,
                    "user_id": user_id,
                    "agent_id": agent_id,
                    "expires_at": expires_at,
                }
            )
        )

    def list(
        self,
        *,
        space_id: Optional[str] = None,
        include_unusable: bool = False,
        page_size: Optional[int] = None,
    ) -> Iterator[Token]:
        """The newest first; also those that were revoked or have expired, if you want."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_tokens(
                    space_id=space_id, all=include_unusable or None, limit=page_size, cursor=cursor
                )
            )
        )

    def get(self, token_id: str) -> Token:
        return self._client._send(calls.get_token(token_id))

    def revoke(self, token_id: str) -> Token:
        return self._client._send(calls.revoke_token(token_id))
