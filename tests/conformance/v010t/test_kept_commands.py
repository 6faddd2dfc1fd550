"""What transitional 0-10 makes durable is there after a restart, and after a kill."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from harebell.wire.v09.content import BasicProperties
from tests.conformance.sites import Site, SocketWire
from tests.conformance.v010t.peer import Peer
from tests.running import RunningBroker

PERSISTENT = BasicProperties(delivery_mode=2)


def opened(broker: RunningBroker) -> Peer:
    """An open connection to a broker."""
    site: Site = broker  # type: ignore[assignment]
    return Peer(site, SocketWire(broker.port)).open()


def ended(broker: RunningBroker, number: signal.Signals) -> None:
    """Stop a broker, and remove what is not its data."""
    broker.stop(number)
    broker.remove()


@pytest.mark.rule("0-10t#071", "0-10t#080", "0-10t#107")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_completed_commands_outlive_the_broker(tmp_path: Path, how: signal.Signals):
    flags = ("--data-dir", str(tmp_path / "data"))
    broker = RunningBroker(*flags)
    peer = opened(broker)
    peer.run(m.ExchangeDeclare("e", "topic", durable=True, alternate_exchange="amq.fanout"))
    peer.queue("kept", durable=True, alternate_exchange="amq.direct")
    peer.queue("lost")
    peer.send(m.QueueBind("kept", "e", "a.*"))
    for number in range(5):
        peer.publish("e", "a.b", b"%d" % number, PERSISTENT)
    peer.settle()
    peer.run(m.BasicAck(peer.get("kept").method.delivery_tag))
    peer.drop()
    ended(broker, how)
    broker = RunningBroker(*flags)
    try:
        peer = opened(broker)
        assert peer.ask(s.ExchangeQuery("e")).type == "topic"
        peer.send(m.ExchangeDeclare("e", "topic", alternate_exchange="amq.fanout"))
        peer.queue("kept", alternate_exchange="amq.direct")
        peer.publish("e", "a.c", b"new", PERSISTENT)
        peer.settle()
        bodies = [peer.get("kept", no_ack=True).body for _ in range(5)]
        assert bodies == [b"1", b"2", b"3", b"4", b"new"]
        peer.send(m.QueueDeclare("lost", passive=True))
        peer.expect_channel_close(404, "queue.declare")
        peer.close()
    finally:
        ended(broker, signal.SIGTERM)


def test_a_committed_transaction_outlives_the_broker_and_another_does_not(tmp_path: Path):
    flags = ("--data-dir", str(tmp_path / "data"))
    broker = RunningBroker(*flags)
    peer = opened(broker)
    peer.queue("one", durable=True)
    peer.queue("two", durable=True)
    peer.run(m.TxSelect())
    for queue in ("one", "two"):
        peer.publish("", queue, b"committed", PERSISTENT)
    peer.run(m.TxCommit())
    peer.publish("", "one", b"not committed", PERSISTENT)
    peer.settle()
    peer.drop()
    ended(broker, signal.SIGKILL)
    broker = RunningBroker(*flags)
    try:
        peer = opened(broker)
        for queue in ("one", "two"):
            assert peer.get(queue, no_ack=True).body == b"committed"
            peer.send(m.BasicGet(queue))
            peer.expect(m.BasicGetEmpty)
        peer.close()
    finally:
        ended(broker, signal.SIGTERM)
