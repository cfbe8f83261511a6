"""A connection that tests can cut."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit


class Cutter:
    """Passes bytes on to the server, and cuts a connection when `limit` bytes of the answer went
    by, as often as `cuts` says."""

    def __init__(self, url: str, *, limit: int, cuts: int) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "", parts.port or 80)
        self._limit = limit
        self.left = cuts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._open: list[socket.socket] = []
        self._threads[0].start()

    def __enter__(self) -> Cutter:
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that sits in accept() is not woken by close() alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._open:
            _end(end)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            self._open += [near, far]
            for arguments in ((near, far, False), (far, near, True)):
                thread = threading.Thread(target=self._pass_on, args=arguments)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, to: socket.socket, answers: bool) -> None:
        passed = 0
        try:
            while piece := source.recv(512):
                passed += len(piece)
                if answers and passed > self._limit and self.left > 0:
                    self.left -= 1
                    break
                to.sendall(piece)
        except OSError:
            pass
        _end(source)
        _end(to)


def _end(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
