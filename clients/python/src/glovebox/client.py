# Generated from async_client.py by clients/python/generate.py: do not edit.
"""The client, for code that waits."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

import httpx

from glovebox import approval_calls, calls, network_calls, request
from glovebox.approvals import Approvals, Grants
from glovebox.audit import Audit
from glovebox.execs import Execs
from glovebox.secrets import Secrets
from glovebox.sessions import Sessions
from glovebox.skills import Skills
from glovebox.snapshots import Snapshots
from glovebox.webhooks import Webhooks
from glovebox.workspaces import Workspaces
from glovebox.call import Answer, Call, Page
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
    Backend,
    Exec,
    Explanation,
    Health,
    NewToken,
    Pool,
    Pruned,
    Recreated,
    Replayed,
    Retrieved,
    Sandbox,
    SandboxExplanation,
    ServerSettings,
    Token,
    ToolAnswer,
)
from glovebox.request import Options, SandboxOptions
from glovebox.retry import Patience
from glovebox.started import Started
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
        self.snapshots = Snapshots(self)
        self.sandboxes = Sandboxes(self)
        self.sessions = Sessions(self)
        self.approvals = Approvals(self)
        self.grants = Grants(self)
        self.secrets = Secrets(self)
        self.webhooks = Webhooks(self)
        self.skills = Skills(self)
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

    def check_tools(
        self, names: Iterable[str], *, agent_id: Optional[str] = None
    ) -> list[ToolAnswer]:
        """Which of these tools exist for the caller, or for an agent of its own."""
        return self._send(calls.check_tools(names, agent_id))

    def replay_policy(self, config: str, *, limit: Optional[int] = None) -> Replayed:
        """Which of the newest records another configuration would decide otherwise, without
        running anything: for the operator."""
        return self._send(approval_calls.replay_policy(config, limit))

    def retrieve(
        self,
        url: str,
        *,
        method: Optional[str] = None,
        max_bytes: Optional[int] = None,
        max_text_bytes: Optional[int] = None,
        timeout: Optional[float] = None,
        task_ref: Optional[Mapping[str, str]] = None,
    ) -> Retrieved:
        """Reads a page of the web as text, safely; `error_code` says why there is none.

            page = gb.retrieve("https://example.com/")
        """
        return self._send(
            network_calls.retrieve(url, method, max_bytes, max_text_bytes, timeout, task_ref)
        )

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

    def pool(self) -> Pool:
        """The sandboxes that stand ready: for the operator."""
        return self._send(calls.pool())

    def backends(self) -> list[Backend]:
        """Every way to run something on the server's host, with what each guarantees: for the
        operator."""
        return self._send(calls.backends())

    def openapi(self) -> Mapping[str, Any]:
        return self._send(calls.openapi())

    def _run(self, body: Mapping[str, Any]) -> Exec:
        exec = self._create(body, wait=True)
        # The server waits for some minutes at most.
        return exec if exec.ended else self.execs.wait(exec.exec_id)

    def _create(self, body: Mapping[str, Any], *, wait: bool) -> Exec:
        exec = self._begun(body["client_id"], calls.create_exec(body, wait=wait))
        self._started.saw(exec)
        return exec

    def _begun(self, client_id: str, call: Call[T]) -> T:
        """What the server says to a call that begins something. Also if the answer never comes, it
        is ended when the client is closed."""
        self._started.begin(client_id)
        try:
            return self._send(call)
        except ApiError as error:
            if error.status < 500:
                self._started.forget(client_id)
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
                if not (response.is_success or answer.status in call.also):
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

    def _download(self, call: Call[bytes], to: Union[str, os.PathLike[str]]) -> int:
        failures = 0
        while True:
            try:
                with Download(to) as file:
                    with self._open(call) as response:
                        if not response.is_success:
                            raise self._refused(response)
                        for piece in response.iter_bytes():
                            file.write(piece)
                    return file.keep()
            except (ApiError, ConnectionFailed) as error:
                failures += 1
                pause = self._patience.pause(failures, error)
                if pause is None:
                    raise
            time.sleep(pause)

    def _refused(self, response: httpx.Response) -> ApiError:
        response.read()
        return Answer(response.status_code, response.headers, response.content).error()

    def _pages(
        self, page: Callable[[Optional[str]], Page[T]]
    ) -> Iterator[T]:
        cursor: Optional[str] = None
        seen: set[str] = set()
        while True:
            found = page(cursor)
            for item in found.items:
                yield item
            cursor = found.next
            if cursor is None:
                return
            if cursor in seen:
                raise UnexpectedAnswer(f"the server goes round in circles at cursor `{cursor}`")
            seen.add(cursor)


class Sandboxes:
    """Sandboxes that outlive an exec. Every method takes the sandbox's id or its name."""

    def __init__(self, client: Glovebox) -> None:
        self._client = client

    def create(self, lifetime: str, **options: Unpack[SandboxOptions]) -> Sandbox:
        """Makes one for the life of a `session` or an `agent`, or a `shared` one, and returns when
        it stands. One that is there already is a `Conflict`."""
        return self._client._send(calls.create_sandbox(lifetime, options))

    def list(
        self,
        *,
        lifetime: Optional[str] = None,
        agent_id: Optional[str] = None,
        session_id: Optional[str] = None,
        state: Optional[str] = None,
    ) -> Iterator[Sandbox]:
        """The last used first."""
        return self._client._pages(
            lambda cursor: self._client._send(
                calls.list_sandboxes(
                    lifetime=lifetime, agent_id=agent_id, session_id=session_id, state=state
                )
            )
        )

    def get(self, sandbox_id: str) -> Sandbox:
        return self._client._send(calls.get_sandbox(sandbox_id))

    def remove(self, sandbox_id: str) -> Sandbox:
        """Ends it with everything that only it had; its workspace stays."""
        return self._client._send(calls.remove_sandbox(sandbox_id))

    def recreate(self, sandbox_id: str) -> Sandbox:
        """Takes it down; it is built from today's configuration when it is next used."""
        return self._client._send(calls.recreate_sandbox(sandbox_id))

    def recreate_many(
        self,
        *,
        everything: bool = False,
        mismatched: bool = False,
        agent_id: Optional[str] = None,
        session_id: Optional[str] = None,
    ) -> Recreated:
        """The same for all of the space, for those that policy would make otherwise now, or for
        those of an agent or a session. One that fails does not stop the rest."""
        which = request.selection(everything, mismatched, agent_id, session_id)
        return self._client._send(calls.recreate_sandboxes(which))

    def prune(self) -> Pruned:
        """Removes what nobody used for too long, of every space: for the operator."""
        return self._client._send(calls.prune_sandboxes())

    def explain(
        self, lifetime: str, **options: Unpack[SandboxOptions]
    ) -> SandboxExplanation:
        """Which sandbox `create` would make, or find, without making one."""
        return self._client._send(calls.explain_sandbox(lifetime, options))


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
        conversation_id: Optional[str] = None,
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
                    "conversation_id": conversation_id,
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
