"""The client for code on asyncio. Method by method the same as the other one."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
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


class AsyncGlovebox:
    """A connection to a server. Use it in a `with`, or call `close()`: that cancels the execs which
    this client began and which still run. One client may be used by many threads."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        verify: Verify = True,
        patience: Patience = Patience(),
        transport: Optional[httpx.AsyncBaseTransport] = None,
    ) -> None:
        self._target = Target.of(url, token, verify)
        self._patience = patience
        self._started = Started()
        if transport is None:
            transport = httpx.AsyncHTTPTransport(
                verify=self._target.verify,
                uds=self._target.socket,
                socket_options=self._target.socket_options,
            )
        # Neither proxies nor a `.netrc` of the environment: the token goes to the server alone.
        self._http = httpx.AsyncClient(
            base_url=self._target.url,
            headers=headers(self._target.token),
            transport=transport,
            trust_env=False,
        )
        self.execs = AsyncExecs(self)
        self.workspaces = AsyncWorkspaces(self)
        self.audit = AsyncAudit(self)
        self.settings = AsyncSettings(self)
        self.tokens = AsyncTokens(self)

    def __repr__(self) -> str:
        return f"AsyncGlovebox({str(self._target)!r})"

    async def __aenter__(self) -> AsyncGlovebox:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            await self.close()
        except CleanupFailed as failed:
            # What went wrong in the block says more; this must not take its place.
            if error is None:
                raise
            warnings.warn(str(failed), ResourceWarning, stacklevel=2)

    async def close(self) -> None:
        """Cancels what this client began and what still runs, and closes its connections.
        Whatever could not be canceled is named by `CleanupFailed`."""
        failures: dict[str, GloveboxError] = {}
        patience = Patience(retries=min(2, self._patience.retries), longest=2.0)
        for name in self._started.take():
            try:
                await self._send(calls.cancel_exec(name), patience)
            except NotFound:
                pass  # The server never heard of it.
            except GloveboxError as error:
                failures[name] = error
        await self._http.aclose()
        if failures:
            raise CleanupFailed(failures)

    def detach(self, exec: Union[Exec, str]) -> None:
        """Leaves this exec alone when the client is closed."""
        self._started.drop(exec.exec_id if isinstance(exec, Exec) else exec)

    async def run(self, *argv: str, **options: Unpack[Options]) -> Exec:
        """Runs a command and returns its record when it has ended, however it ended."""
        return await self._run(request.body(request.argv(argv), options))

    async def run_python(self, code: str, **options: Unpack[Options]) -> Exec:
        return await self._run(request.body(request.python(code), options))

    async def run_shell(self, script: str, **options: Unpack[Options]) -> Exec:
        return await self._run(request.body(request.shell(script), options))

    async def start(self, *argv: str, **options: Unpack[Options]) -> Exec:
        """Begins a command and returns as soon as the server has taken it on."""
        return await self._create(request.body(request.argv(argv), options), wait=False)

    async def start_python(self, code: str, **options: Unpack[Options]) -> Exec:
        return await self._create(request.body(request.python(code), options), wait=False)

    async def start_shell(self, script: str, **options: Unpack[Options]) -> Exec:
        return await self._create(request.body(request.shell(script), options), wait=False)

    async def explain(self, *argv: str, **options: Unpack[Options]) -> Explanation:
        """What policy says about a command, without running it."""
        return await self._send(calls.explain(request.argv(argv), options))

    async def whoami(self) -> Token:
        return await self._send(calls.whoami())

    async def alive(self) -> bool:
        """The server answers."""
        try:
            await self._send(calls.alive(), Patience(retries=0))
        except (ConnectionFailed, Unavailable):
            return False
        return True

    async def ready(self) -> bool:
        """The server takes work."""
        try:
            await self._send(calls.ready(), Patience(retries=0))
        except (ConnectionFailed, Unavailable):
            return False
        return True

    async def health(self, *, probe: bool = False) -> Health:
        """What the server can enforce; with `probe` it tries it."""
        return await self._send(calls.health(probe))

    async def metrics(self) -> str:
        return await self._send(calls.metrics())

    async def openapi(self) -> Mapping[str, Any]:
        return await self._send(calls.openapi())

    async def _run(self, body: Mapping[str, Any]) -> Exec:
        exec = await self._create(body, wait=True)
        # The server waits for some minutes at most.
        return exec if exec.ended else await self.execs.wait(exec.exec_id)

    async def _create(self, body: Mapping[str, Any], *, wait: bool) -> Exec:
        name: str = body["client_id"]
        self._started.begin(name)
        try:
            return await self._seen(calls.create_exec(body, wait=wait))
        except ApiError as error:
            if error.status < 500:
                self._started.forget(name)
            raise

    async def _seen(self, call: Call[Exec]) -> Exec:
        exec = await self._send(call)
        self._started.saw(exec)
        return exec

    async def _send(self, call: Call[T], patience: Optional[Patience] = None) -> T:
        patience = patience or self._patience
        failures = 0
        while True:
            try:
                async with self._open(call) as response:
                    await response.aread()
                    answer = Answer(response.status_code, response.headers, response.content)
                if not response.is_success:
                    raise answer.error()
                return call.read(answer)
            except (ApiError, ConnectionFailed) as error:
                failures += 1
                pause = patience.pause(failures, error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def _open(self, call: Call[Any]) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream(
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

    async def _refused(self, response: httpx.Response) -> ApiError:
        await response.aread()
        return Answer(response.status_code, response.headers, response.content).error()

    async def _pages(
        self, page: Callable[[Optional[str]], Awaitable[Page[T]]]
    ) -> AsyncIterator[T]:
        cursor: Optional[str] = None
        seen: set[str] = set()
        while True:
            found = await page(cursor)
            for item in found.items:
                yield item
            cursor = found.next
            if cursor is None:
                return
            if cursor in seen:
                raise UnexpectedAnswer(f"the server goes round in circles at cursor `{cursor}`")
            seen.add(cursor)


class AsyncExecs:
    """What was run, is running, or waits for its turn. Every method takes the exec's id or the
    `client_id` that it was given."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    async def get(self, exec_id: str) -> Exec:
        return await self._client._seen(calls.get_exec(exec_id))

    def list(
        self,
        *,
        task_id: Optional[str] = None,
        status: Optional[str] = None,
        conversation_id: Optional[str] = None,
        project_id: Optional[str] = None,
        page_size: Optional[int] = None,
    ) -> AsyncIterator[Exec]:
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

    async def wait(self, exec_id: str, *, timeout: Optional[float] = None) -> Exec:
        """The record when it has ended. After about `timeout` seconds `WaitTimeout` is raised, and
        the exec goes on."""
        exec = await self.get(exec_id)
        if exec.ended:
            return exec
        async for _ in self._follow(Follow(exec.exec_id, 0, self._client._patience, timeout)):
            pass
        return await self.get(exec.exec_id)

    async def cancel(self, exec_id: str) -> Exec:
        """Asks it to stop. Returns the record as it is then, which may still be `running`."""
        return await self._client._seen(calls.cancel_exec(exec_id))

    def events(self, exec_id: str, *, after: int = 0) -> AsyncIterator[Event]:
        """What happens to it, as it happens, from the event after number `after` to the last one.
        A connection that is cut is made again, and nothing comes twice or is left out."""
        return self._follow(Follow(exec_id, after, self._client._patience))

    async def stdout(
        self, exec_id: str, *, offset: Optional[int] = None, limit: Optional[int] = None
    ) -> bytes:
        """All that was kept of it."""
        return await self._client._send(calls.output(exec_id, "stdout", offset, limit))

    async def stderr(
        self, exec_id: str, *, offset: Optional[int] = None, limit: Optional[int] = None
    ) -> bytes:
        return await self._client._send(calls.output(exec_id, "stderr", offset, limit))

    async def artifacts(self, exec_id: str) -> Artifacts:
        return await self._client._send(calls.list_artifacts(exec_id))

    async def artifact(self, exec_id: str, path: Text) -> bytes:
        return await self._client._send(calls.get_artifact(exec_id, path))

    async def download(
        self, exec_id: str, path: Text, to: Union[str, os.PathLike[str]]
    ) -> int:
        """Writes an artifact to a file, which is there whole or not at all. Returns its size."""
        call = calls.get_artifact(exec_id, path)
        failures = 0
        while True:
            try:
                with Download(to) as file:
                    async with self._client._open(call) as response:
                        if not response.is_success:
                            raise await self._client._refused(response)
                        async for piece in response.aiter_bytes():
                            file.write(piece)
                    return file.keep()
            except (ApiError, ConnectionFailed) as error:
                failures += 1
                pause = self._client._patience.pause(failures, error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def observation(self, exec_id: str) -> Observation:
        """What an agent is told about it."""
        return await self._client._send(calls.observation(exec_id))

    async def _follow(self, follow: Follow) -> AsyncIterator[Event]:
        while not follow.done:
            lost: Optional[GloveboxError] = None
            call = calls.events(follow.exec_id, follow.after, follow.open())
            try:
                async with self._client._open(call) as response:
                    if not response.is_success:
                        raise await self._client._refused(response)
                    async for piece in response.aiter_bytes():
                        for event in follow.feed(piece):
                            yield event
                        if follow.enough():
                            break
            except (ApiError, ConnectionFailed) as error:
                lost = error
            if not follow.done:
                await asyncio.sleep(follow.lost(lost))


class AsyncWorkspaces:
    """Files that stay from one exec to the next."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    def list(self, *, page_size: Optional[int] = None) -> AsyncIterator[Workspace]:
        """By name, without their sizes."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_workspaces(limit=page_size, cursor=cursor)
            )
        )

    async def get(self, project_id: str) -> Workspace:
        return await self._client._send(calls.get_workspace(project_id))

    async def delete(self, project_id: str) -> None:
        return await self._client._send(calls.delete_workspace(project_id))

    async def files(self, project_id: str, path: Text = "") -> Listing:
        """What is in a directory."""
        return await self._client._send(calls.list_files(project_id, path))

    async def read(self, project_id: str, path: Text) -> bytes:
        return await self._client._send(calls.read_file(project_id, path))

    async def write(self, project_id: str, path: Text, content: Union[str, bytes]) -> None:
        return await self._client._send(calls.write_file(project_id, path, content))

    async def remove(self, project_id: str, path: Text) -> None:
        return await self._client._send(calls.delete_file(project_id, path))


class AsyncAudit:
    """The ledger."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    def list(
        self, *, page_size: Optional[int] = None, **filters: Unpack[AuditFilters]
    ) -> AsyncIterator[AuditEntry]:
        """The newest first."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.query_audit(**filters, limit=page_size, cursor=cursor)
            )
        )

    async def verify(self) -> Verification:
        return await self._client._send(calls.verify_audit())

    async def export(self, *, format: str = "jsonl") -> bytes:
        """`jsonl` or `ocsf`."""
        return await self._client._send(calls.export_audit(format))

    async def checkpoint(self) -> Checkpoint:
        return await self._client._send(calls.audit_checkpoint())


class AsyncSettings:
    """What an operator may change while the server runs."""

    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    async def get(self) -> ServerSettings:
        return await self._client._send(calls.get_settings())

    async def change(
        self, change: Mapping[str, Any], *, version: Optional[int] = None
    ) -> ServerSettings:
        """A JSON merge patch. With `version` it is a `Conflict` if somebody was faster."""
        return await self._client._send(calls.change_settings(change, version))


class AsyncTokens:
    def __init__(self, client: AsyncGlovebox) -> None:
        self._client = client

    async def create(
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
        return await self._client._send(
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
    ) -> AsyncIterator[Token]:
        """The newest first; also those that were revoked or have expired, if you want."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_tokens(
                    space_id=space_id, all=include_unusable or None, limit=page_size, cursor=cursor
                )
            )
        )

    async def get(self, token_id: str) -> Token:
        return await self._client._send(calls.get_token(token_id))

    async def revoke(self, token_id: str) -> Token:
        return await self._client._send(calls.revoke_token(token_id))
