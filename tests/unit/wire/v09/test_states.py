"""The state tables: every method in every state of connection and channel, on both sides."""

from __future__ import annotations

import pytest

from harebell.base.errors import ProtocolError
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.spec import MethodSpec
from harebell.wire.v09.states import (
    CHANNEL_CLIENT,
    CHANNEL_SERVER,
    CONNECTION_CLIENT,
    CONNECTION_SERVER,
    ChannelState,
    ChannelTable,
    ConnectionState,
    ConnectionTable,
    check_channel_method,
    check_connection_method,
    drops,
    shown,
)

CLOSING_STATES = ("closing", "closed")

# What each side takes on channel 0, state by state: "method -> state that follows".
SERVER_TAKES = {
    "header": "",
    "starting": "start-ok -> tuning, close -> closed",
    "securing": "secure-ok -> tuning, close -> closed",
    "tuning": "tune-ok -> opening, close -> closed",
    "opening": "open -> open, close -> closed",
    "open": "update-secret -> open, close -> closed",
    "closing": "close -> closing, close-ok -> closed",
    "closed": "",
}
CLIENT_TAKES = {
    "header": "start -> starting",
    "starting": "secure -> securing, tune -> opening, close -> closed",
    "securing": "secure -> securing, tune -> opening, close -> closed",
    "tuning": "",
    "opening": "open-ok -> open, close -> closed",
    "open": "blocked -> open, unblocked -> open, update-secret-ok -> open, close -> closed",
    "closing": "close -> closing, close-ok -> closed",
    "closed": "",
}


def expected(line: str, prefix: str) -> dict[str, str]:
    pairs = (entry.split(" -> ") for entry in line.split(", ") if entry)
    return {f"{prefix}.{name}": state for name, state in pairs}


@pytest.mark.parametrize(
    ("table", "takes"),
    [(CONNECTION_SERVER, SERVER_TAKES), (CONNECTION_CLIENT, CLIENT_TAKES)],
    ids=["server", "client"],
)
@pytest.mark.parametrize("state", ConnectionState)
def test_every_method_in_every_connection_state_moves_on_or_is_refused(
    state: ConnectionState, table: ConnectionTable, takes: dict[str, str]
):
    allowed = expected(takes[state.value], "connection")
    for spec in AMQP_0_9_1.methods:
        if spec.name in allowed:
            assert check_connection_method(state, spec, table).value == allowed[spec.name]
            continue
        with pytest.raises(ProtocolError) as caught:
            check_connection_method(state, spec, table)
        assert caught.value.code == 504
        assert caught.value.text == f"unexpected method in connection state {shown(state)}"
        assert (caught.value.class_id, caught.value.method_id) == (spec.class_id, spec.method_id)


def test_an_open_connection_is_called_running_as_clients_know_it():
    with pytest.raises(ProtocolError, match="unexpected method in connection state running"):
        check_connection_method(ConnectionState.OPEN, AMQP_0_9_1.named("connection.tune-ok"))


def channel_outcome(state: ChannelState, spec: MethodSpec, from_client: bool) -> str | int:
    """What must happen: the following state, or the reply code of the error."""
    sends = spec.from_client if from_client else spec.from_server
    name = spec.name
    if state is ChannelState.OPEN:
        if name == "channel.open":
            return 504
        if not sends or name in ("channel.open-ok",) or spec.class_id == 10:
            return 503
        if name == "channel.close":
            return "closed"
        return "content" if spec.has_content else "open"
    if state is ChannelState.CONTENT:
        return 505
    if state is ChannelState.CLOSING:
        return {"channel.close": "closing", "channel.close-ok": "closed"}.get(name, 504)
    if state is ChannelState.OPENING and not from_client:
        return {"channel.open-ok": "open", "channel.close": "closed"}.get(name, 504)
    if state is ChannelState.CLOSED and from_client and name == "channel.open":
        return "open"
    return 504


@pytest.mark.parametrize(
    ("table", "from_client"),
    [(CHANNEL_SERVER, True), (CHANNEL_CLIENT, False)],
    ids=["server", "client"],
)
@pytest.mark.parametrize("state", ChannelState)
def test_every_method_in_every_channel_state_moves_on_or_is_refused(
    state: ChannelState, table: ChannelTable, from_client: bool
):
    for spec in AMQP_0_9_1.methods:
        outcome = channel_outcome(state, spec, from_client)
        if isinstance(outcome, str):
            assert check_channel_method(state, spec, table).value == outcome
            continue
        with pytest.raises(ProtocolError) as caught:
            check_channel_method(state, spec, table)
        assert caught.value.code == outcome
        assert (caught.value.class_id, caught.value.method_id) == (spec.class_id, spec.method_id)


@pytest.mark.parametrize(
    ("state", "name", "text"),
    [
        (ChannelState.CLOSED, "queue.declare", "expected 'channel.open'"),
        (ChannelState.OPEN, "channel.open", "second 'channel.open' seen"),
        (ChannelState.OPEN, "basic.deliver", "unimplemented method"),
        (ChannelState.OPEN, "connection.open", "unimplemented method"),
        (
            ChannelState.CONTENT,
            "basic.ack",
            "expected content frames, got basic.ack instead",
        ),
    ],
)
def test_a_client_that_errs_on_a_channel_is_told_in_known_words(
    state: ChannelState, name: str, text: str
):
    with pytest.raises(ProtocolError) as caught:
        check_channel_method(state, AMQP_0_9_1.named(name))
    assert caught.value.text == text
    assert caught.value.hard


@pytest.mark.parametrize("spec", AMQP_0_9_1.methods, ids=lambda spec: spec.name)
def test_after_our_close_everything_but_the_close_handshake_is_dropped(spec: MethodSpec):
    handshake = spec.name.endswith((".close", ".close-ok"))
    assert drops(ConnectionState.CLOSING, spec) == (not handshake)
    assert drops(ChannelState.CLOSING, spec) == (not handshake)
    assert drops(ConnectionState.CLOSED, spec)
    for state in (*ConnectionState, *ChannelState):
        if state.value not in CLOSING_STATES:
            assert not drops(state, spec)


def test_every_state_has_a_row_in_every_table():
    for connection_table in (CONNECTION_SERVER, CONNECTION_CLIENT):
        assert list(connection_table) == list(ConnectionState)
    for channel_table in (CHANNEL_SERVER, CHANNEL_CLIENT):
        assert list(channel_table) == list(ChannelState)
