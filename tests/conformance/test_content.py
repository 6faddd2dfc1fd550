"""Contents: cut in every way, wrong in every way, and carried through unchanged (4.2.6)."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator

import pytest

from harebell.base.limits import BODY_HARD_MAX_BYTES
from harebell.front.limits import MESSAGE_MAX_BYTES
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, encode_properties
from tests.conformance.frames import BODY, HEADER, METHOD, body, content_header, frame
from tests.conformance.raw import Peer, encoded, publish_octets
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]
PUBLISH = encoded(m.BasicPublish(routing_key="q"))

# --- every way to cut a body ----------------------------------------------------------------------


def cuts(text: bytes) -> Iterator[list[bytes]]:
    """All ways to cut a text into pieces."""
    for marks in itertools.product((False, True), repeat=len(text) - 1):
        pieces, start = [], 0
        for at, cut in enumerate(marks, start=1):
            if cut:
                pieces.append(text[start:at])
                start = at
        yield [*pieces, text[start:]]


@pytest.mark.rule("0-9-1#010", "0-9-1#048", "0-9-1#013")
@pytest.mark.parametrize("pieces", [*cuts(b"hello")], ids=lambda pieces: b"|".join(pieces).decode())
def test_a_body_may_come_in_any_pieces_and_is_one_body(peer: Peer, pieces: list[bytes]) -> None:
    peer.queue("q")
    octets = b"".join(map(body, pieces))
    peer.send_bytes(PUBLISH, content_header(5), octets)
    for octets_alone in (PUBLISH, content_header(5), *map(body, pieces)):
        peer.send_bytes(octets_alone)
    assert [peer.get("q").body, peer.get("q").body] == [b"hello", b"hello"]


@pytest.mark.rule("0-9-1#010")
def test_empty_body_frames_between_others_change_nothing(peer: Peer) -> None:
    peer.queue("q")
    peer.send_bytes(PUBLISH, content_header(4), body(b""), body(b"ab"), body(b""), body(b"cd"))
    assert peer.get("q").body == b"abcd"


@pytest.mark.parametrize("together", [True, False])
def test_a_body_of_no_octets_has_no_body_frame(peer: Peer, together: bool) -> None:
    peer.queue("q")
    if together:
        peer.send_bytes(PUBLISH, content_header(0))
    else:
        peer.send_bytes(PUBLISH).send_bytes(content_header(0))
    found = peer.get("q")
    assert (found.body, found.pieces) == (b"", ())


def test_contents_of_several_channels_may_be_interleaved(peer: Peer) -> None:
    peer.ask(m.ChannelOpen(), 2)
    for name in ("one", "two"):
        peer.queue(name)
    first = encoded(m.BasicPublish(routing_key="one"), 1)
    second = encoded(m.BasicPublish(routing_key="two"), 2)
    peer.send_bytes(first, second)
    peer.send_bytes(content_header(4, channel=2), content_header(2, channel=1))
    peer.send_bytes(body(b"tw", 2), body(b"on", 1), body(b"o!", 2))
    assert (peer.get("one").body, peer.get("two").body) == (b"on", b"two!")


def test_other_channels_work_while_a_content_is_under_way(peer: Peer) -> None:
    peer.ask(m.ChannelOpen(), 2)
    peer.queue("q")
    peer.send_bytes(PUBLISH, content_header(4), body(b"fi"))
    peer.publish("", "q", b"second", channel=2)
    assert peer.count("q", 2) == 1
    peer.send_bytes(body(b"rs"))
    assert peer.get("q", channel=2).body == b"second"
    assert peer.get("q").body == b"firs"


def test_a_channel_closed_in_the_middle_of_a_content_forgets_it(peer: Peer) -> None:
    peer.queue("q")
    peer.ask(m.ChannelOpen(), 2)
    # Channel 2 is closed by the broker while channel 1 is in the middle of a content.
    peer.send_bytes(PUBLISH, content_header(4), body(b"fi"))
    peer.send(m.BasicGet(queue="none"), channel=2)
    peer.expect(m.ChannelClose, 2, reply_code=404)
    peer.send_bytes(encoded(m.BasicPublish(routing_key="q"), 2), content_header(9, channel=2),
                    body(b"ignored", 2))  # fmt: skip
    peer.send(m.ChannelCloseOk(), channel=2)
    peer.send_bytes(body(b"ne"))
    assert peer.get("q").body == b"fine"
    # Whole contents are still taken at once.
    peer.publish("", "q", b"next")
    assert peer.get("q").body == b"next"


# --- every way to be wrong ------------------------------------------------------------------------

NO_HEADER = (
    "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"
)
NO_METHOD = "UNEXPECTED_FRAME - expected method frame, got non method frame instead"


@pytest.mark.rule("0-9-1#043")
def test_a_header_without_a_method_is_unexpected(peer: Peer) -> None:
    peer.send_bytes(content_header(1))
    peer.expect_connection_close(505, NO_METHOD)


@pytest.mark.rule("0-9-1#043")
@pytest.mark.parametrize("whole", [True, False])
def test_a_body_without_a_method_is_unexpected(peer: Peer, whole: bool) -> None:
    if whole:
        peer.queue("q")
        peer.publish("", "q", b"fine")
    peer.send_bytes(body(b"stray"))
    peer.expect_connection_close(505, NO_METHOD)


@pytest.mark.rule("0-9-1#043")
def test_a_body_in_place_of_the_header_is_unexpected(peer: Peer) -> None:
    peer.send_bytes(PUBLISH, body(b"early"))
    peer.expect_connection_close(505, NO_HEADER, "basic.publish")


@pytest.mark.rule("0-9-1#043")
def test_a_second_header_in_place_of_a_body_is_unexpected(peer: Peer) -> None:
    peer.send_bytes(PUBLISH, content_header(5), content_header(5))
    text = "expected content body, got non content body frame instead"
    peer.expect_connection_close(505, f"UNEXPECTED_FRAME - {text}", "basic.publish")


@pytest.mark.rule("0-9-1#043")
@pytest.mark.departs("0-9-1#045")
@pytest.mark.parametrize(("class_id", "weight"), [(50, 0), (0, 0), (61, 0), (60, 1), (60, 65_535)])
def test_a_header_of_another_class_or_with_a_weight_is_unexpected(
    peer: Peer, class_id: int, weight: int
) -> None:
    peer.send_bytes(PUBLISH, content_header(1, class_id=class_id, weight=weight), body(b"x"))
    wrong = f"class {class_id} with weight {weight}" if weight else f"class {class_id}"
    text = f"UNEXPECTED_FRAME - expected content header for class 60, got one for {wrong} instead"
    peer.expect_connection_close(505, text, "basic.publish")


@pytest.mark.parametrize("announced", [0, 1, 4])
def test_a_body_longer_than_announced_is_a_frame_error(peer: Peer, announced: int) -> None:
    peer.queue("q")
    peer.send_bytes(PUBLISH, content_header(announced), body(b"12345"))
    if announced == 0:
        # The content was whole already; the body that follows is a stray one.
        peer.expect_connection_close(505, NO_METHOD)
        return
    text = "FRAME_ERROR - content body frame exceeds remaining content size"
    peer.expect_connection_close(501, text, "basic.publish")


@pytest.mark.rule("0-9-1#043")
@pytest.mark.parametrize(
    "properties",
    [
        b"",
        b"\0",
        b"\0\1",
        b"\0\2",
        b"\0\0\0",
        b"\x80\0",
        b"\x80\0\x05abc",
        b"\x20\0\0\0\0\x09",
        b"\x20\0\0\0\0\x04\x01k?\0",
        b"\x20\0\0\0\0\x03\x01kt",
        b"\x10\0",
        b"\0\x40\0\0\0",
        b"\x80\0\x01a!",
    ],
    ids=lambda octets: octets.hex(),
)
@pytest.mark.parametrize("together", [True, False])
def test_properties_that_cannot_be_read_are_refused(
    peer: Peer, properties: bytes, together: bool
) -> None:
    peer.queue("q")
    pieces = (PUBLISH, content_header(1, properties), body(b"x"))
    for piece in (b"".join(pieces),) if together else pieces:
        peer.send_bytes(piece)
    close = peer.expect(m.ConnectionClose, reply_code=505)
    assert close.class_id == 60
    peer.opened = False
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()


@pytest.mark.departs("0-9-1#047")
@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_a_content_frame_on_channel_0_is_unexpected(peer: Peer, kind: int) -> None:
    peer.send_bytes(frame(kind, 0, struct.pack(">HHQH", 60, 0, 1, 0)))
    peer.expect_connection_close(505, "UNEXPECTED_FRAME - content frame on channel 0")


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_a_content_frame_on_a_channel_that_is_not_open_is_a_channel_error(
    peer: Peer, kind: int
) -> None:
    peer.send_bytes(frame(kind, 9, struct.pack(">HHQH", 60, 0, 1, 0)))
    peer.expect_connection_close(504, "CHANNEL_ERROR - expected 'channel.open'")


def test_a_whole_publish_on_channel_0_is_refused(peer: Peer) -> None:
    octets = publish_octets("", "q", b"body")
    moved = octets.replace(b"\1\0\1", b"\1\0\0").replace(b"\2\0\1", b"\2\0\0")
    peer.send_bytes(moved.replace(b"\3\0\1", b"\3\0\0"))
    text = "CHANNEL_ERROR - unexpected method in connection state running"
    peer.expect_connection_close(504, text, "basic.publish")


@pytest.mark.parametrize("size", [MESSAGE_MAX_BYTES + 1, BODY_HARD_MAX_BYTES])
def test_a_message_over_the_configured_size_closes_its_channel(peer: Peer, size: int) -> None:
    peer.send_bytes(PUBLISH, content_header(size))
    text = f"PRECONDITION_FAILED - message size {size} is larger than configured max size "
    peer.expect_channel_close(406, text + str(MESSAGE_MAX_BYTES), "basic.publish")


def test_a_smaller_limit_may_be_configured() -> None:
    site = MemorySite(message_max=10)
    peer = Peer(site, site.connect()).open()
    peer.queue("q")
    peer.publish("", "q", b"x" * 10).publish("", "q", b"x" * 11)
    text = "PRECONDITION_FAILED - message size 11 is larger than configured max size 10"
    peer.expect_channel_close(406, text, "basic.publish")
    peer.ask(m.ChannelOpen())
    assert peer.count("q") == 1


@pytest.mark.parametrize("size", [BODY_HARD_MAX_BYTES + 1, 2**63, 2**64 - 1])
def test_an_absurd_size_costs_the_connection(peer: Peer, size: int) -> None:
    peer.send_bytes(PUBLISH, content_header(size))
    text = f"content body size {size} exceeds maximum allowed size {BODY_HARD_MAX_BYTES}"
    peer.expect_connection_close(501, f"FRAME_ERROR - {text}", "basic.publish")


# --- carried through unchanged --------------------------------------------------------------------

EVERY_TAG = [
    b"t\1", b"t\0", b"b\x80", b"B\xff", b"s\x80\0", b"u\xff\xff", b"I\x80\0\0\0",
    b"i\xff\xff\xff\xff",
    b"l\x80\0\0\0\0\0\0\0", b"L\x80\0\0\0\0\0\0\1", b"f\x3f\x80\0\0", b"d\x7f\xf8\0\0\0\0\0\1",
    b"D\2\0\0\1\0", b"D\xff\x80\0\0\0", b"S\0\0\0\0", b"S\0\0\0\2\xff\xfe", b"S\0\0\0\3abc",
    b"x\0\0\0\2\0\1", b"T\0\0\0\0\0\0\0\1", b"T\xff\xff\xff\xff\xff\xff\xff\xff", b"V",
    b"F\0\0\0\0", b"F\0\0\0\4\1kt\1", b"A\0\0\0\0", b"A\0\0\0\3Vt\1",
]  # fmt: skip


@pytest.mark.rule("0-9-1#014")
@pytest.mark.parametrize("value", EVERY_TAG, ids=lambda octets: octets.hex())
def test_header_values_of_every_type_are_carried_through_unchanged(
    peer: Peer, value: bytes
) -> None:
    table = b"\x01k" + value + b"\x03twot\1" + b"\x01k" + value
    raw = b"\x20\0" + len(table).to_bytes(4) + table
    peer.queue("q")
    peer.publish("", "q", b"body", raw)
    assert peer.get("q").raw == raw


@pytest.mark.parametrize("value", EVERY_TAG, ids=lambda octets: octets.hex())
def test_arguments_of_every_type_are_accepted_in_every_table(peer: Peer, value: bytes) -> None:
    table = b"\x01k" + value
    field = len(table).to_bytes(4) + table
    declare = b"\0\x32\0\x0a\0\0\1q\0" + field
    bind = b"\0\x32\0\x14\0\0\1q\x0aamq.direct\1k\0" + field
    consume = b"\0\x3c\0\x14\0\0\1q\1t\0" + field
    exchange = b"\0\x28\0\x0a\0\0\1x\6direct\0" + field
    peer._remember("queue", "q")
    peer._remember("exchange", "x")
    replies = (m.QueueDeclareOk, m.QueueBindOk, m.BasicConsumeOk, m.ExchangeDeclareOk)
    for payload, reply in zip((declare, bind, consume, exchange), replies, strict=True):
        peer.send_bytes(frame(METHOD, 1, payload))
        peer.expect(reply)
    # The same declaration once more, and the same binding taken away again.
    peer.send_bytes(frame(METHOD, 1, declare))
    peer.expect(m.QueueDeclareOk, consumer_count=1)


@pytest.mark.departs("0-9-1#041", "0-9-1#042")
def test_names_in_tables_may_have_any_octets_up_to_255(peer: Peer) -> None:
    # RabbitMQ takes them as well; AMQP 0-9-1 4.2.5.5 would have identifiers of 128 characters.
    names = (b"n" * 255, b"1 first a digit", b"", b"\xff\0", "ü".encode())
    table = b"".join(bytes((len(name),)) + name + b"t\1" for name in names)
    raw = b"\x20\0" + len(table).to_bytes(4) + table
    peer.queue("q")
    peer.publish("", "q", b"body", raw)
    assert peer.get("q").raw == raw


FULL = BasicProperties(
    content_type="text/plain",
    content_encoding="gzip",
    headers={"a": 1},
    delivery_mode=2,
    priority=9,
    correlation_id="c",
    reply_to="r",
    expiration="60000",
    message_id="m",
    timestamp=1_700_000_000,
    type="t",
    user_id="guest",
    app_id="a",
    cluster_id="reserved",
)


@pytest.mark.rule("0-9-1#014")
@pytest.mark.parametrize("name", ["all", *FULL.__struct_fields__])
@pytest.mark.parametrize("way", ["get", "deliver", "return"])
def test_properties_are_carried_through_unchanged(peer: Peer, name: str, way: str) -> None:
    properties = FULL if name == "all" else BasicProperties(**{name: getattr(FULL, name)})
    raw = encode_properties(properties)
    queue = "q" if way != "return" else "nowhere"
    peer.queue("q")
    peer.publish("", queue, b"body", raw, mandatory=True)
    if way == "get":
        assert peer.get("q").raw == raw
    elif way == "deliver":
        peer.consume("q", no_ack=True)
        assert peer.expect_delivery(b"body").raw == raw
    else:
        assert peer.expect_content(m.BasicReturn, reply_code=312).raw == raw


@pytest.mark.rule("0-9-1#013")
@pytest.mark.parametrize(
    "text",
    [b"", b"\0", b"\xce", b"\xce" * 300, bytes(range(256)), b"AMQP\0\0\x09\x01", b"\x01\0\1" * 99],
    ids=len,
)
def test_bodies_arrive_octet_for_octet(peer: Peer, text: bytes) -> None:
    peer.queue("q")
    peer.publish("", "q", text)
    peer.consume("q", no_ack=True)
    assert peer.expect_delivery().body == text


@pytest.mark.rule("0-9-1#044", "0-9-1#046")
def test_the_brokers_contents_name_their_class_and_keep_to_their_channel(peer: Peer) -> None:
    # The harness holds every content header to class 60, weight 0 and its method's channel.
    peer.ask(m.ChannelOpen(), 7)
    peer.queue("q")
    peer.consume("q", channel=7, no_ack=True)
    peer.publish("", "q", b"delivered", channel=1)
    peer.expect_delivery(b"delivered", 7)
    peer.publish("", "nowhere", b"returned", channel=7, mandatory=True)
    assert peer.expect_content(m.BasicReturn, 7).body == b"returned"
    peer.queue("other")
    peer.publish("", "other", b"got")
    assert peer.get("other", channel=7).body == b"got"
