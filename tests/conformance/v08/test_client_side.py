"""What 0-8 asks of a client, shown with `harebell.client` and a broker that the test plays."""

from __future__ import annotations

import pytest

from harebell.client.errors import ConnectionFailed, ProtocolMismatch
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.methods_older import ConnectionRedirect
from tests.conformance.raw import encoded
from tests.conformance.test_client_side import NOW, Broker

OFFERED = b"AMQPLAIN PLAIN"


class Broker8(Broker):
    """The other side of a client of 0-8."""

    def __init__(self) -> None:
        super().__init__("amqp+0-8://")

    def say(self, method: m.Method) -> list[m.Method]:
        """Send a method on channel 0; what the client says to it."""
        self.client.receive(encoded(method, 0, AMQP_0_8), NOW)
        return [AMQP_0_8.decode(one.payload) for one in self.frames()]

    def introduce(self, major: int = 8, minor: int = 0) -> list[m.Method]:
        """connection.start."""
        return self.say(m.ConnectionStart(major, minor, {}, OFFERED, b"en_US"))


def test_a_client_of_0_8_says_so_in_its_first_octets() -> None:
    assert Broker8().header == b"AMQP\x01\x01\x08\x00"


@pytest.mark.rule("0-8#008")
@pytest.mark.parametrize(("major", "minor"), [(0, 9), (0, 10), (1, 0), (9, 1)])
def test_a_client_that_cannot_work_with_the_announced_version_ends_in_silence(
    major: int, minor: int
) -> None:
    broker = Broker8()
    assert broker.introduce(major, minor) == []
    assert broker.client.finished
    with pytest.raises(ProtocolMismatch, match=f"answered in AMQP {major}-{minor}"):
        broker.client.opened.value()


@pytest.mark.rule("0-8#011")
def test_a_client_takes_the_first_of_its_mechanisms_that_was_offered() -> None:
    (start_ok,) = Broker8().introduce()
    assert isinstance(start_ok, m.ConnectionStartOk)
    assert start_ok.mechanism == "PLAIN"


@pytest.mark.departs("0-8#021")
def test_a_client_that_is_sent_elsewhere_says_where() -> None:
    broker = Broker8()
    broker.introduce()
    broker.say(m.ConnectionTune(0, 4_096, 0))
    broker.say(ConnectionRedirect("other:5672", "third:5672"))
    assert broker.client.finished
    with pytest.raises(ConnectionFailed, match="sends its clients to other:5672: connect there"):
        broker.client.opened.value()
