"""A relay between a client and a broker, for tests of what a broken network does.

Everything passes until the test says otherwise: it cuts all connections, lets nothing pass for a
while, keeps what the broker says from its clients, or cuts a connection as soon as the broker has
answered a certain request. The broker may as well be a database, with a broker as its client.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.ports import free_port

_OCTETS = 65_536
_LOOK_SECONDS = 0.005
_HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


class Relay:
    """Listens on a port of its own.

    Args:
        port: of the broker, on loopback.

    Attributes:
        port: where clients connect to.
        made: how many connections there were.
        target: the port that new connections go to.
        silent: whether nothing passes, in no direction; it is kept, as by a network that is down.
        late: seconds that each piece of what the broker says takes, one after the other.
        beats: how many heartbeats clients have sent.
        cut_at: octets of a request whose answer is lost together with its connection; once.
        watched: octets of a request that is looked for.
        seen: how many pieces of what clients say have these octets.
        lose: octets of a request that never arrives, although its connection stays; once.
        instead: octets of what the broker says, and what clients hear in their place.
    """

    def __init__(self, port: int) -> None:
        self.made = self.beats = 0
        self.silent = False
        self.late = 0.0
        self.cut_at = b""
        self.watched = b""
        self.seen = 0
        self.lose = b""
        self.instead = (b"", b"")
        self.target = port
        self._open: list[socket.socket] = []
        self._deaf: set[socket.socket] = set()
        self._lock = threading.Lock()
        # Nobody else may listen there when the relay is closed and its clients still try.
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def deafen(self) -> None:
        """Let the clients hear nothing of the broker any more; new connections are heard."""
        with self._lock:
            self._deaf.update(self._open)

    def cut(self) -> None:
        """Break all connections; new ones are let through."""
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()
            # Not before: what a deaf client must not hear may be on its way at this very moment.
            self._deaf.clear()

    def close(self) -> None:
        """Break all connections, and let no new ones through."""
        # Without this accept() would go on in its thread.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _start(self, run: object, *arguments: object) -> None:
        threading.Thread(target=run, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self._lock:
                self.made += 1
                self._open += [client, broker]
            ending = threading.Event()
            self._start(self._pass_up, client, broker, ending)
            self._start(self._pass_down, client, broker, ending)

    def _read(self, end: socket.socket) -> bytes:
        """What one end says, as soon as anything passes."""
        data = end.recv(_OCTETS)
        while self.silent and end.fileno() >= 0:
            time.sleep(_LOOK_SECONDS)
        return data

    def _pass_up(
        self, client: socket.socket, broker: socket.socket, ending: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := self._read(client):
                self.beats += data.count(_HEARTBEAT)
                self.seen += bool(self.watched) and self.watched in data
                if self.cut_at and self.cut_at in data:
                    self.cut_at = b""
                    ending.set()
                if self.lose and self.lose in data:
                    self.lose = b""
                    continue
                broker.sendall(data)
        _end(client, broker)

    def _pass_down(
        self, client: socket.socket, broker: socket.socket, ending: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := self._read(broker):
                if ending.is_set():
                    break
                time.sleep(self.late)
                if self.instead[0]:
                    data = data.replace(*self.instead)
                if client not in self._deaf:
                    client.sendall(data)
        _end(client, broker)


def _end(*ends: socket.socket) -> None:
    for one in ends:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(port: int) -> Iterator[Relay]:
    """A relay to a port that ends with the test."""
    made = Relay(port)
    try:
        yield made
    finally:
        made.close()
