"""What the specification asks of clients, asked of `harebell.client`: its core, octet by octet.

Everything that the client writes goes through the harness's reader, which holds it to the rules of
framing as it does the broker.
"""

from __future__ import annotations

import pytest

from harebell.base.message import Message, Properties
from harebell.client.errors import AuthenticationFailed, ProtocolMismatch
from harebell.client.protocol.life import ConnectionPhase
from harebell.client.protocol.v09.core import CoreConnection
from harebell.client.url import URL
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.conformance.frames import BODY, METHOD, PROTOCOL_HEADER, Frame, Reader, frame
from tests.conformance.raw import encoded

NOW = 100.0
FRAME_MAX = 4_096


class Broker:
    """The other side of one client: a script of frames."""

    def __init__(self, url: str = "amqp://") -> None:
        self.client = CoreConnection(URL.parse(url), NOW)
        self.reader = Reader()
        self.header = self.client.take_output()

    def send(self, *methods: m.Method, channel: int = 1) -> None:
        self.client.receive(b"".join(encoded(method, channel) for method in methods), NOW)

    def frames(self) -> list[Frame]:
        """What the client has written since."""
        self.reader.data += self.client.take_output()
        found = []
        while (one := self.reader.next()) is not None:
            found.append(one)
        assert not self.reader.data
        return found

    def methods(self) -> list[m.Method]:
        return [AMQP_0_9_1.decode(one.payload) for one in self.frames() if one.kind == METHOD]

    def start(self, mechanisms: bytes = b"PLAIN AMQPLAIN", **version: int) -> list[m.Method]:
        self.send(m.ConnectionStart(mechanisms=mechanisms, locales=b"de_DE en_US", **version))
        return self.methods()

    def open(self) -> Broker:
        """Up to an open connection with channel 1 open."""
        self.start()
        self.send(m.ConnectionTune(2_047, FRAME_MAX, 0))
        self.reader.frame_max = FRAME_MAX
        self.send(m.ConnectionOpenOk())
        self.channel = self.client.open_channel(1, confirms=False)
        self.send(m.ChannelOpenOk())
        self.frames()
        assert self.client.state is ConnectionPhase.OPEN
        return self


@pytest.mark.rule("0-9-1#027")
def test_a_client_begins_with_the_protocol_header_and_waits() -> None:
    assert Broker().header == PROTOCOL_HEADER


@pytest.mark.rule("0-9-1r#003")
@pytest.mark.parametrize(("major", "minor"), [(0, 10), (8, 0), (1, 0), (0, 8), (9, 1)])
def test_a_client_that_cannot_use_the_announced_version_ends_in_silence(
    major: int, minor: int
) -> None:
    broker = Broker()
    assert broker.start(version_major=major, version_minor=minor) == []
    assert broker.client.finished
    with pytest.raises(ProtocolMismatch, match=f"answered in AMQP {major}-{minor}"):
        broker.client.opened.value()


@pytest.mark.rule("0-9-1r#006")
def test_a_client_says_who_it_is() -> None:
    (start_ok,) = Broker().start()
    assert isinstance(start_ok, m.ConnectionStartOk)
    for key in ("product", "version", "platform", "copyright", "information"):
        assert start_ok.client_properties[key], key


@pytest.mark.rule("0-9-1r#007", "0-9-1r#008", "0-9-1r#010")
@pytest.mark.parametrize(
    ("offered", "taken"),
    [
        (b"PLAIN", "PLAIN"),
        (b"AMQPLAIN", "AMQPLAIN"),
        (b"AMQPLAIN PLAIN", "PLAIN"),
        (b"EXTERNAL SCRAM-SHA-256 AMQPLAIN", "AMQPLAIN"),
        (b"PLAINER AMQPLAIN-2 PLAIN", "PLAIN"),
    ],
)
def test_a_client_takes_mechanism_and_locale_from_what_was_offered(
    offered: bytes, taken: str
) -> None:
    (start_ok,) = Broker().start(offered)
    assert isinstance(start_ok, m.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.locale) == (taken, "en_US")


@pytest.mark.rule("0-9-1r#007")
@pytest.mark.parametrize("offered", [b"", b"EXTERNAL", b"plain", b"PLAINER"])
def test_a_client_does_not_name_a_mechanism_that_was_not_offered(offered: bytes) -> None:
    broker = Broker()
    assert broker.start(offered) == []
    with pytest.raises(AuthenticationFailed, match="offers the SASL mechanisms"):
        broker.client.opened.value()


@pytest.mark.rule("0-9-1#009")
@pytest.mark.parametrize(
    ("offer", "taken"),
    [
        (m.ConnectionTune(10, 8_192, 30), m.ConnectionTuneOk(10, 8_192, 30)),
        (m.ConnectionTune(65_535, 4_096, 0), m.ConnectionTuneOk(65_535, 4_096, 0)),
        (m.ConnectionTune(5, 1_000_000, 7), m.ConnectionTuneOk(5, 131_072, 7)),
    ],
)
def test_a_client_settles_within_the_offer(
    offer: m.ConnectionTune, taken: m.ConnectionTuneOk
) -> None:
    broker = Broker()
    broker.start()
    broker.send(offer)
    tune_ok, _ = broker.methods()
    assert tune_ok == taken


@pytest.mark.rule("0-9-1#026")
def test_a_client_waits_for_its_replies_without_standing_still() -> None:
    broker = Broker().open()
    other = broker.client.open_channel(2)
    assert [one.channel for one in broker.frames()] == [2]
    assert not other.done
    # A reply for somebody else in between does no harm.
    broker.send(m.ConnectionBlocked("low on memory"))
    assert not other.done
    broker.send(m.ChannelOpenOk(), channel=2)
    assert other.done


@pytest.mark.rule("0-9-1#012", "0-9-1#011")
def test_a_client_answers_the_close_of_a_connection() -> None:
    broker = Broker().open()
    broker.send(m.ConnectionClose(320, "CONNECTION_FORCED - bye"))
    assert broker.methods() == [m.ConnectionCloseOk()]
    assert broker.client.finished


@pytest.mark.rule("0-9-1#012", "0-9-1#011")
def test_a_client_answers_the_close_of_a_channel() -> None:
    broker = Broker().open()
    broker.send(m.ChannelClose(404, "NOT_FOUND - nothing", 60, 40))
    (answer,) = broker.frames()
    assert answer == Frame(METHOD, 1, AMQP_0_9_1.encode(m.ChannelCloseOk()))
    assert broker.client.state is ConnectionPhase.OPEN


@pytest.mark.rule("0-9-1r#018")
def test_a_client_that_closed_ignores_all_but_the_handshake() -> None:
    broker = Broker().open()
    broker.client.close(NOW)
    assert [type(method) for method in broker.methods()] == [m.ConnectionClose]
    broker.send(m.ChannelClose(404, "NOT_FOUND - nothing", 60, 40), m.BasicCancel("t"))
    broker.send(m.ConnectionUnblocked(), m.ConnectionOpenOk())
    broker.client.receive(frame(BODY, 1, b"stray"), NOW)
    assert broker.frames() == []
    assert not broker.client.finished
    broker.send(m.ConnectionCloseOk())
    assert broker.client.finished


@pytest.mark.rule("0-9-1r#019")
def test_a_client_that_closed_still_answers_a_close() -> None:
    broker = Broker().open()
    broker.client.close(NOW)
    broker.frames()
    broker.send(m.ConnectionClose(320, "CONNECTION_FORCED - bye"))
    assert broker.methods() == [m.ConnectionCloseOk()]


@pytest.mark.rule("0-9-1#010", "0-9-1#044", "0-9-1#046", "0-9-1#038")
@pytest.mark.parametrize("size", [0, 1, FRAME_MAX - 8, FRAME_MAX - 7, 20_000])
def test_a_client_cuts_bodies_to_the_agreed_size(size: int) -> None:
    broker = Broker().open()
    channel = broker.client.channels[1]
    assert channel.publish_one(Message("", "q", Properties(b"\0\0"), b"x" * size), 0).done
    method, header, *bodies = broker.frames()
    assert AMQP_0_9_1.decode(method.payload) == m.BasicPublish("", "q")
    assert header.payload == b"\0\x3c\0\0" + size.to_bytes(8) + b"\0\0"
    assert {one.channel for one in (method, header, *bodies)} == {1}
    limit = FRAME_MAX - 8
    assert [len(one.payload) for one in bodies] == [
        min(limit, size - at) for at in range(0, size, limit)
    ]
