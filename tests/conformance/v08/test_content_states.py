"""Every method of 0-8's other classes in every state of a channel: what the broker says to it."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.method import METHODS
from harebell.wire.v09.methods_older import StreamPublish
from harebell.wire.v09.property_list import TEST
from harebell.wire.v09.spec import MethodSpec
from tests.conformance.frames import BODY, HEADER, METHOD, frame
from tests.conformance.v08.contents import Connect08, Peer08

CLASSES = ("file", "stream", "tunnel", "test")
METHODS_HERE = [spec for spec in AMQP_0_8.methods if spec.name.partition(".")[0] in CLASSES]
UNASKED = ("file.open-ok", "file.stage")
"""What a client may send only when something came before."""
each = pytest.mark.parametrize("spec", METHODS_HERE, ids=lambda spec: spec.name)


def sent(spec: MethodSpec) -> Any:
    """A method that means as little as possible."""
    kind = METHODS[spec.name]
    if "operation" in kind.__struct_fields__:
        return kind(operation=1)
    if "integer_op" in kind.__struct_fields__:
        return kind(integer_op=1, string_op=1)
    return kind()


@each
def test_on_a_channel_that_is_not_open_no_method_counts(connect08: Connect08, spec: MethodSpec):
    peer = connect08().open(channels=())
    peer.send(sent(spec), channel=5)
    peer.cut_off(504, "expected 'channel.open'")


@each
def test_within_a_content_no_method_counts(peer08: Peer08, spec: MethodSpec):
    peer08.send(StreamPublish("", "q"), sent(spec))
    peer08.cut_off(503, "expected content header for class 80")


@each
def test_on_an_open_channel_each_method_has_its_answer(peer08: Peer08, spec: MethodSpec):
    method = sent(spec)
    peer08.send(method)
    if not spec.from_client or spec.name in UNASKED or spec.name.endswith("-ok"):
        peer08.cut_off(503, "")
    elif spec.name in ("file.consume", "stream.consume"):
        peer08.cut_off(530, "no previously declared queue")
    elif spec.name in ("file.publish", "file.ack", "file.reject"):
        close = peer08.expect(m.ChannelClose)
        assert (close.class_id, close.method_id) == (spec.class_id, spec.method_id)
        # Tag 0 alone was never delivered, and no file is called "".
        assert close.reply_code in (404, 406)
        peer08.send(m.ChannelCloseOk())
    elif spec.has_content:
        # Nothing is said before its content has come; one of another class ends the connection.
        listed = TEST if spec.class_id != TEST.class_id else None
        octets = listed.header(0, b"\0\0") if listed else b"\x00\x50\0\0" + bytes(8) + b"\0\0"
        peer08.send_header(octets)
        peer08.cut_off(503, f"expected content header for class {spec.class_id}")
    else:
        peer08.expect(METHODS[spec.responses[0]])


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_a_content_frame_without_its_method_ends_the_connection(peer08: Peer08, kind: int):
    peer08.send_bytes(frame(kind, 1, STREAM_HEADER))
    peer08.cut_off(503, "expected method frame")


STREAM_HEADER = b"\x00\x50\0\0" + bytes(8) + b"\0\0"


def test_more_body_than_was_announced_ends_the_connection(peer08: Peer08):
    peer08.send(StreamPublish("", "q"))
    peer08.send_header(b"\x00\x50\0\0" + (2).to_bytes(8) + b"\0\0")
    peer08.send_bytes(frame(BODY, 1, b"abc"))
    close = peer08.expect(m.ConnectionClose)
    assert close.reply_code == 501
    peer08.opened = False


def test_a_header_that_is_cut_off_ends_the_connection(peer08: Peer08):
    peer08.send(StreamPublish("", "q"))
    peer08.send_header(b"\x00\x50\0\0")
    peer08.cut_off(503, "content header is too short")


def test_frames_behind_a_closed_channel_are_ignored(peer08: Peer08):
    peer08.send_bytes(
        frame(METHOD, 1, AMQP_0_8.encode(StreamPublish("missing", "q"))),
        frame(HEADER, 1, STREAM_HEADER),
    )
    peer08.refused(404, "no exchange 'missing'")
    peer08.ask(m.ChannelOpen())
