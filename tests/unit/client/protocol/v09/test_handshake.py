"""What the client offers, accepts and chooses while a connection opens."""

from __future__ import annotations

import pytest

from harebell.client.errors import AuthenticationFailed, ConnectionFailed, ProtocolMismatch
from harebell.client.protocol.v09 import handshake
from harebell.client.url import URL
from harebell.wire.v09.fields import decode_table


@pytest.mark.parametrize(
    ("query", "offered", "agreed"),
    [
        ("", (2047, 131072, 60), (2047, 131072, 60)),
        ("", (0, 0, 0), (2047, 131072, 0)),
        ("?channel_max=10&frame_max=8192&heartbeat=5", (2047, 131072, 60), (10, 8192, 5)),
        (
            "?channel_max=5000&frame_max=500000&heartbeat=500",
            (2047, 131072, 60),
            (2047, 131072, 60),
        ),
        ("?channel_max=10&frame_max=8192&heartbeat=5", (0, 0, 0), (10, 8192, 5)),
        ("?heartbeat=0", (0, 0, 60), (2047, 131072, 0)),
        ("?channel_max=0&frame_max=0", (100, 4096, 0), (100, 4096, 0)),
        ("", (1, 1_000_000, 1), (1, 131072, 1)),
    ],
)
def test_limits_are_the_lower_of_both_where_zero_is_none(
    query: str, offered: tuple[int, int, int], agreed: tuple[int, int, int]
) -> None:
    limits = handshake.negotiate(URL.parse(f"amqp://host{query}"), *offered)
    assert (limits.channel_max, limits.frame_max, limits.heartbeat) == agreed


def test_a_broker_that_wants_frames_below_the_minimum_is_refused() -> None:
    with pytest.raises(ConnectionFailed, match=r"4095.*4096"):
        handshake.negotiate(URL(), 0, 4095, 0)


def test_plain_is_preferred_and_the_address_has_the_last_word() -> None:
    assert handshake.choose_mechanism(URL(), "AMQPLAIN PLAIN") == "PLAIN"
    assert handshake.choose_mechanism(URL(), "AMQPLAIN") == "AMQPLAIN"
    asked = URL(auth_mechanism="AMQPLAIN")
    assert handshake.choose_mechanism(asked, "PLAIN AMQPLAIN") == "AMQPLAIN"
    with pytest.raises(AuthenticationFailed, match=r"'PLAIN'.*AMQPLAIN"):
        handshake.choose_mechanism(asked, "PLAIN")


def test_names_outside_ascii_travel_as_utf_8() -> None:
    url = URL(username="zoë", password="pässwörd")
    assert handshake.sasl_response("PLAIN", url) == "\0zoë\0pässwörd".encode()
    body = handshake.sasl_response("AMQPLAIN", url)
    table, _ = decode_table(len(body).to_bytes(4) + body)
    assert table == {"LOGIN": "zoë", "PASSWORD": "pässwörd"}


def test_properties_of_the_caller_are_added() -> None:
    properties = handshake.client_properties(URL(name="n"), "1.2", {"team": "billing"})
    assert properties["version"] == "1.2"
    assert properties["connection_name"] == "n"
    assert properties["team"] == "billing"
    assert "connection_name" not in handshake.client_properties(URL(), "1.2", {})


def test_the_first_octet_of_a_method_frame_is_welcome() -> None:
    handshake.check_greeting(URL(), b"\x01")
    with pytest.raises(ProtocolMismatch):
        handshake.check_greeting(URL(), b"A")
