"""The execs that a client began and of which it does not know that they ended."""

from __future__ import annotations

import threading
from typing import Union

from glovebox.records import Exec, SessionInfo


class Started:
    """By client id, since that is known before the server has heard of the exec; by its own id
    where the server chose that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}

    def begin(self, client_id: str) -> None:
        with self._lock:
            self._names[client_id] = client_id

    def forget(self, client_id: str) -> None:
        with self._lock:
            self._names.pop(client_id, None)

    def began(self, exec: Exec) -> None:
        """One that the server named: it has no client id."""
        if not exec.ended:
            self.begin(exec.exec_id)

    def saw(self, exec: Union[Exec, SessionInfo]) -> None:
        """A record of an exec or a session, whoever began it."""
        with self._lock:
            for name in (exec.client_id, exec.exec_id):
                if name is None or name not in self._names:
                    continue
                if exec.ended:
                    del self._names[name]
                else:
                    self._names[name] = exec.exec_id

    def take(self) -> list[str]:
        """All of them, by the best name that is known, and none from now on."""
        with self._lock:
            names, self._names = list(self._names.values()), {}
        return names

    def drop(self, name: str) -> None:
        """By exec id or client id."""
        with self._lock:
            self._names = {
                client: known
                for client, known in self._names.items()
                if name not in (client, known)
            }
