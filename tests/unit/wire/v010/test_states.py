"""The state tables of AMQP 0-10: whole, and made of controls that exist."""

from __future__ import annotations

from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.states import CONNECTION_SERVER
from harebell.wire.v09.states import ConnectionState


def test_every_state_of_a_connection_says_what_may_come() -> None:
    assert set(CONNECTION_SERVER) == set(ConnectionState)
    for follows in CONNECTION_SERVER.values():
        for name, state in follows.items():
            assert AMQP_0_10.controls[name].from_client
            assert name.startswith("connection.")
            assert isinstance(state, ConnectionState)


def test_every_control_of_connections_that_a_client_sends_is_legal_somewhere() -> None:
    legal = {name for follows in CONNECTION_SERVER.values() for name in follows}
    controls = [spec for name, spec in AMQP_0_10.controls.items() if name.startswith("connection.")]
    assert legal == {spec.name for spec in controls if spec.from_client}
