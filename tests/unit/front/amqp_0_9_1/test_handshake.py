"""From protocol header to open: who gets in, and which limits hold."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.amqp_0_9_1.handshake import CAPABILITIES
from harebell.wire.v09 import methods as m
from harebell.wire.v09.extensions import VERSIONS
from harebell.wire.v09.fields import encode_table
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, OctetPeer, World


def greeted(world: World, address: str = "127.0.0.1") -> tuple[OctetPeer, Any]:
    peer = world.connect(address)
    peer.give(HEADER_0_9_1)
    (start,) = peer.methods()
    return peer, start


def start_ok(
    response: bytes = b"\0guest\0guest", mechanism: str = "PLAIN", told: bool = True
) -> m.ConnectionStartOk:
    capabilities = {"authentication_failure_close": told}
    return m.ConnectionStartOk({"capabilities": capabilities}, mechanism, response, "en_US")


def test_the_broker_says_who_it_is_and_how_to_log_in() -> None:
    _, start = greeted(World(product="Mine", version="1.2.3", cluster_name="here"))
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.mechanisms == b"PLAIN AMQPLAIN"
    assert start.locales == b"en_US"
    properties = start.server_properties
    assert (properties["product"], properties["version"]) == ("Mine", "1.2.3")
    assert properties["cluster_name"] == "here"
    assert properties["capabilities"] == dict.fromkeys(CAPABILITIES, True)
    assert properties["harebell"] == dict(VERSIONS)


@pytest.mark.parametrize(
    "method",
    [
        start_ok(),
        start_ok(encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:], "AMQPLAIN"),
    ],
)
def test_both_mechanisms_let_the_right_user_in(method: m.ConnectionStartOk) -> None:
    peer, _ = greeted(World(frame_max=8192, channel_max=7, heartbeat=13))
    assert peer.ask(method, channel=0) == m.ConnectionTune(7, 8192, 13)


@pytest.mark.parametrize("response", [b"\0guest\0wrong", b"\0nobody\0guest", b"nonsense"])
def test_a_wrong_login_is_refused_without_saying_what_was_wrong(response: bytes) -> None:
    world = World()
    peer, _ = greeted(world)
    close: Any = peer.ask(start_ok(response), channel=0)
    assert close.reply_code == 403
    assert close.reply_text == (
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
        "For details see the broker logfile."
    )
    assert not any("wrong" in text for _, text in world.log), "passwords are not logged"


def test_the_default_user_may_not_come_from_elsewhere() -> None:
    peer, _ = greeted(World(), address="192.0.2.1")
    close: Any = peer.ask(start_ok(), channel=0)
    assert close.reply_code == 403


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        (m.ConnectionTuneOk(8, 0, 0), "negotiated channel_max = 8 is higher than the maximum"),
        (m.ConnectionTuneOk(0, 9000, 0), "negotiated frame_max = 9000 is higher than the maximum"),
        (m.ConnectionTuneOk(0, 4095, 0), "negotiated frame_max = 4095 is lower than the minimum"),
    ],
)
def test_limits_beyond_what_was_offered_are_refused(tune: m.Method, words: str) -> None:
    peer, _ = greeted(World(frame_max=8192, channel_max=7))
    peer.ask(start_ok(), channel=0)
    close: Any = peer.ask(tune, channel=0)
    assert close.reply_code == 530
    assert words in close.reply_text


def test_a_lower_limit_holds_from_then_on() -> None:
    peer, _ = greeted(World(channel_max=7))
    peer.ask(start_ok(), channel=0)
    peer.send(m.ConnectionTuneOk(1, 4096, 5), m.ConnectionOpen("/"), channel=0)
    assert peer.methods() == [m.ConnectionOpenOk()]
    connection = peer.connection
    assert (connection.frame_max, connection.heartbeat) == (4096, 5)
    assert peer.ask(m.ChannelOpen(), channel=1) == m.ChannelOpenOk()
    close: Any = peer.ask(m.ChannelOpen(), channel=2)
    assert close.reply_code in (504, 530)


@pytest.mark.parametrize(
    ("vhost", "words"),
    [
        ("nowhere", "NOT_ALLOWED - vhost nowhere not found"),
        ("other", "NOT_ALLOWED - access to vhost 'other' refused for user 'guest'"),
    ],
)
def test_only_an_existing_and_permitted_vhost_can_be_opened(vhost: str, words: str) -> None:
    world = World()
    world.broker.add_vhost("other")
    peer, _ = greeted(world)
    peer.ask(start_ok(), channel=0)
    peer.send(m.ConnectionTuneOk(0, 0, 0), channel=0)
    close: Any = peer.ask(m.ConnectionOpen(vhost), channel=0)
    assert (close.reply_code, close.reply_text) == (530, words)
