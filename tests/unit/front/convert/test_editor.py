"""Headers are decoded only when somebody asks for them."""

from __future__ import annotations

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR, editor, expiration_of, forwarded, headers_of
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)


def test_headers_come_out_as_they_went_in() -> None:
    raw = encode_properties(BasicProperties(headers={"a": 1, "b": "x"}, delivery_mode=2))
    assert headers_of(Message("", "q", Properties(raw), b"")) == {"a": 1, "b": "x"}


def test_a_message_without_headers_has_none() -> None:
    raw = encode_properties(BasicProperties(priority=3))
    assert headers_of(Message("", "q", Properties(raw), b"")) == {}


def test_a_message_goes_on_without_expiring_and_with_new_headers() -> None:
    raw = encode_properties(
        BasicProperties(headers={"a": 1, "b": 2}, delivery_mode=2, priority=4, expiration="99")
    )
    message = Message("x", "k", Properties(raw), b"body")
    assert expiration_of(message) == "99"
    copy = forwarded(message, "y", "l", {"a": None, "c": 3})
    assert (copy.exchange, copy.routing_key, copy.body) == ("y", "l", b"body")
    assert (copy.delivery_mode, copy.priority, copy.has_headers) == (2, 4, True)
    assert headers_of(copy) == {"b": 2, "c": 3}
    assert expiration_of(copy) is None
    assert decode_properties(message.raw).expiration == "99"


def test_a_dead_letter_decodes_none_of_the_headers_that_it_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A client may send 120 KiB of them, which take longer to decode than a hundred letters.
    decoded: list[int] = []

    def counted(raw: bytes) -> BasicProperties:
        decoded.append(len(raw))
        return decode_properties(raw)

    monkeypatch.setattr(editor, "decode_properties", counted)
    host = VHost("/", MemoryStore(Gauge()), EDITOR, Clock())
    dead = host.declare_queue("dead")
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    queue = host.declare_queue("q", arguments={**given, "x-max-length": 0})
    headers = {"CC": ["other"], **{f"h{number}": number for number in range(10_000)}}
    raw = encode_properties(BasicProperties(headers=headers, message_id="m", expiration="9000"))
    queue.publish(Message("", "q", parse_properties(raw), b"body"))
    assert max(decoded, default=0) < 100
    found = dead.get()
    assert found is not None
    got = decode_properties(found[0].raw)
    assert got.headers is not None
    assert (got.message_id, got.expiration) == ("m", None)
    (event,) = got.headers.pop("x-death")
    assert (event["reason"], event["original-expiration"]) == ("maxlen", "9000")
    assert got.headers["h9999"] == 9999
    assert "CC" not in got.headers
