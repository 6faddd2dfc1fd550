"""The state tables of AMQP 0-10: whole, and made of controls that exist."""

from __future__ import annotations

from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.states import CHANNEL_SERVER, CONNECTION_SERVER, ChannelState
from harebell.wire.v09.states import ConnectionState


def test_every_state_of_a_connection_says_what_may_come() -> None:
    assert set(CONNECTION_SERVER) == set(ConnectionState)
    for follows in CONNECTION_SERVER.values():
        for name, state in follows.items():
            assert AMQP_0_10.controls[name].from_client
            assert name.startswith("connection.")
            assert isinstance(state, ConnectionState)


def test_every_control_that_a_client_sends_is_legal_somewhere() -> None:
    legal = {
        name for table in (CONNECTION_SERVER, CHANNEL_SERVER) for f in table.values() for name in f
    }
    assert legal == {name for name, spec in AMQP_0_10.controls.items() if spec.from_client}


def test_every_state_of_a_channel_says_what_may_come() -> None:
    assert set(CHANNEL_SERVER) == set(ChannelState)
    for follows in CHANNEL_SERVER.values():
        assert {"session.attach", "session.detach", "session.detached"} <= set(follows)
        assert all(name.startswith("session.") for name in follows)
