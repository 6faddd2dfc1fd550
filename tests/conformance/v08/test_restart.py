"""What 0-8 peers declared and published outlives the broker, however that ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.sites import SocketWire
from tests.conformance.v08.peer import Peer8, Peer9
from tests.running import RunningBroker


class _Place:
    """The broker of one life."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker

    def open(self, kind: type[Peer8]) -> Peer8:
        """A peer with channel 1 open."""
        return kind(self, SocketWire(self.broker.port)).open()  # type: ignore[arg-type]


@pytest.mark.rule("0-8#063", "0-8#073", "0-8#089")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_durable_things_and_persistent_messages_come_back(
    tmp_path: Path, end: signal.Signals
) -> None:
    flags = ("--data-dir", str(tmp_path))
    broker = RunningBroker(*flags)
    try:
        peer = _Place(broker).open(Peer8)
        peer.ask(m.ExchangeDeclare("x", "direct", durable=True))
        peer.queue("q", durable=True)
        peer.queue("gone")
        peer.ask(m.QueueBind("q", "x", "k"))
        peer.ask(m.TxSelect())
        peer.publish("x", "k", b"kept", BasicProperties(delivery_mode=2))
        # In 0-8 it is the commit that says that a message is safe.
        peer.ask(m.TxCommit())
        broker.stop(end)
        peer.wire.drop()
        broker.remove()
        broker = RunningBroker(*flags)
        again = _Place(broker).open(Peer9)
        assert again.get("q").body == b"kept"
        again.publish("x", "k", b"bound")
        assert again.get("q").body == b"bound"
        again.send(m.QueueDeclare("gone", passive=True))
        again.expect(m.ChannelClose, reply_code=404)
        again.wire.drop()
    finally:
        broker.process.kill()
        broker.process.wait()
        broker.remove()
