# Generated from async_execs.py by clients/python/generate.py: do not edit.
"""What was run, for code that waits: its record, its output and its effects."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Optional, Union

from glovebox import calls, effect_calls
from glovebox.decode import Text
from glovebox.errors import ApiError, ConnectionFailed, GloveboxError
from glovebox.events import Event
from glovebox.records import (
    Artifacts,
    Changes,
    Effect,
    EffectPage,
    Exec,
    NetworkPage,
    Observation,
    Settled,
    TaskResult,
)
from glovebox.stream import Follow

if TYPE_CHECKING:
    from glovebox.client import Glovebox


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
        id_prefix: Optional[str] = None,
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
                    id_prefix=id_prefix,
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

    def network(
        self, exec_id: str, *, after: int = 0, wait: float = 0.0
    ) -> NetworkPage:
        """What its programs did to get out, from a place in the log on: each attempt with its
        decision. Waits up to `wait` seconds for something new while it runs."""
        return self._client._send(calls.network(exec_id, after, wait))

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
        return self._client._download(calls.get_artifact(exec_id, path), to)

    def observation(self, exec_id: str) -> Observation:
        """What an agent is told about it."""
        return self._client._send(calls.observation(exec_id))

    def changes(self, exec_id: str) -> Changes:
        """What an exec with `writes="held"` would change in its workspace as it is now.

            exec = gb.run_shell("sed -i s/80/8080/ main.py", project_id="demo", writes="held")
            for it in gb.execs.changes(exec.exec_id).texts:
                print(it.unified)
        """
        return self._client._send(calls.exec_changes(exec_id))

    def keep(self, exec_id: str) -> Settled:
        """Carries them into the workspace, all of them or none: what has changed there since is a
        `Conflict` that names it."""
        return self._client._send(calls.keep_changes(exec_id))

    def discard(self, exec_id: str) -> Settled:
        """The workspace stays as it is."""
        return self._client._send(calls.discard_changes(exec_id))

    def effects(self, exec_id: str, *, after: int = 0) -> EffectPage:
        """What an exec with `mode="simulate"` would have done, or one with `mode="transactional"`
        did, a page from a place in the log on: `after` is `next` of the page before.

            exec = gb.run_shell("make deploy", project_id="demo", mode="simulate")
            for it in gb.execs.effects(exec.exec_id).effects:
                print(it.type, it.target, it.failure_reason or "")
        """
        return self._client._send(effect_calls.effects(exec_id, after))

    def all_effects(self, exec_id: str) -> Iterator[Effect]:
        """The same as far as it is known now, the first seen first. Pages are fetched as they are
        needed."""
        after = 0
        while True:
            page = self.effects(exec_id, after=after)
            for effect in page.effects:
                yield effect
            # A log only grows: a place that does not is its end, for now.
            if page.complete or page.next <= after:
                return
            after = page.next

    def result(self, exec_id: str) -> TaskResult:
        """The record as workflow engines want it: success, data and metadata."""
        return self._client._send(effect_calls.result(exec_id))

    def apply(self, exec_id: str) -> Settled:
        """Makes a simulation true: keeps exactly the files that it wrote, all of them or none. What
        has changed there since is a `Conflict` that names it, what a gate blocks is `Held`, and
        what people would have to be asked about is `Forbidden` to an agent.

            exec = gb.run_shell("sed -i s/80/8080/ main.py", project_id="demo", mode="simulate")
            if exec.ok:
                gb.execs.apply(exec.exec_id)
        """
        return self._client._send(effect_calls.apply_exec(exec_id))

    def rerun(self, exec_id: str, *, wait: bool = True) -> Exec:
        """Does a simulation for real, and returns the new record when it has ended, or as soon as
        it is taken on if you do not `wait`. Policy decides
        and people are asked as for any exec; the first request that the simulation did not show is
        not let out, and `traffic.strayed` names it then. What it writes is kept if it succeeds and
        the gates agree.

            done = gb.execs.rerun(exec.exec_id)
            assert done.preview.exec_id == exec.exec_id
        """
        exec = self._client._send(effect_calls.rerun_exec(exec_id, wait))
        self._client._started.began(exec)
        return exec if exec.ended or not wait else self.wait(exec.exec_id)

    def _follow(self, follow: Follow) -> Iterator[Event]:
        while not follow.done:
            lost: Optional[GloveboxError] = None
            call = calls.events(follow.exec_id, follow.after, follow.open())
            try:
                with self._client._open(call) as response:
                    if not response.is_success:
                        raise self._client._refused(response)
                    for piece in response.iter_bytes():
                        for event in follow.feed(piece):
                            yield event
                        if follow.enough():
                            break
            except (ApiError, ConnectionFailed) as error:
                lost = error
            if not follow.done:
                time.sleep(follow.lost(lost))
