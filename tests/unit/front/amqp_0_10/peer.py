"""A peer of AMQP 0-10 in memory: controls and commands in, controls and commands out.

peer = SessionPeer(World())
peer.open().attach()
assert peer.ask(QueueDeclare("q"), sync=True) == [SessionCompleted(((0, 0),))]
"""

from __future__ import annotations

from harebell.wire import HEADER_0_10
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Composite
from tests.conformance.v010.raw import CONTROL, HEAD, octets_of
from tests.unit.front.amqp_0_9_1.world import World

START_OK = k.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US")


class SessionPeer:
    """One peer.

    Attributes:
        connection: of the broker.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._octets = world.connect()

    @property
    def connection(self):  # type: ignore[no-untyped-def]
        """The connection of the broker, with its own type."""
        return self._octets.connection

    def give(self, data: bytes) -> list[Composite]:
        """Send bytes; return what comes back."""
        self._octets.give(data)
        return self.taken()

    def ask(self, *values: Composite, channel: int = 1, sync: bool = False) -> list[Composite]:
        """Send controls and commands; return what comes back."""
        return self.give(b"".join(octets_of(value, channel, sync) for value in values))

    def taken(self) -> list[Composite]:
        """Return the controls, and the commands without their contents, that were written."""
        data = self.connection.take_output(self.world.now)
        values: list[Composite] = []
        while data:
            size, kind = int.from_bytes(data[2:4]), data[1]
            if kind == CONTROL:
                values.append(AMQP_0_10.decode_control(data[HEAD:size]))
            elif kind == CONTROL + 1:
                values.append(AMQP_0_10.decode_command(data[HEAD:size])[1])
            data = data[size:]
        return values

    def open(self) -> SessionPeer:
        """Everything up to connection.open-ok."""
        self._octets.give(HEADER_0_10)
        echo = self.connection.take_output(self.world.now)
        assert echo.startswith(HEADER_0_10)
        self.ask(START_OK, channel=0)
        opened = self.ask(k.ConnectionTuneOk(0, 65535, 0), k.ConnectionOpen("/"), channel=0)
        assert opened == [k.ConnectionOpenOk()]
        return self

    def attach(self, name: bytes = b"s", channel: int = 1, timeout: int = 0) -> SessionPeer:
        """Attach a new session, both sides at command 0."""
        answers = self.ask(k.SessionAttach(name), channel=channel)
        assert answers == [k.SessionAttached(name), k.SessionCommandPoint(0, 0)]
        self.ask(k.SessionCommandPoint(0, 0), channel=channel)
        if timeout:
            answers = self.ask(k.SessionRequestTimeout(timeout), channel=channel)
            assert answers == [k.SessionTimeout(timeout)]
        return self
