"""Performatives: connection, sessions, links; what the scanner does not pass on by field."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harebell.auth.authority import Undecided
from harebell.base.errors import FramingError, ProtocolError
from harebell.front.amqp_1_0 import attaching, handshake, settling, subscriptions, termini
from harebell.front.amqp_1_0.connection_states import ConnectionEvent
from harebell.front.amqp_1_0.errors import (
    FRAMING_ERROR,
    ILLEGAL_STATE,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
    LinkError,
    framing,
)
from harebell.front.amqp_1_0.session import SERIALS, Session
from harebell.front.common.admission import check_channel
from harebell.front.common.decisions import decide
from harebell.front.common.event_exchange import channel_created
from harebell.kernels.performatives import ABORTED, DRAIN, ECHO, MORE, RESUME, SECOND, SETTLED
from harebell.wire.v09.states import ConnectionState
from harebell.wire.v1.composites import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.frames import AMQP, unexpected_type
from harebell.wire.v1.performatives import decode_repeated
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection


_TXN_ID = Symbol("txn-id")
_END = End().encoded()


def take(connection: Connection, channel: int, kind: int, body: bytes) -> None:
    """Serve a frame.

    Raises:
        ConditionError: it is malformed, or may not come now: the connection is closed.
    """
    if kind != AMQP:
        raise unexpected_type(kind, AMQP)
    if not body:
        connection.moves(ConnectionEvent.EMPTY, ConnectionEvent.EMPTY.value)
        return
    if connection.state in _ENDING and not body.startswith(_CLOSES):
        # Everything else was sent before the peer knew of the end.
        return
    connection.charge(len(body))
    performative, end = decode_repeated(body)
    payload = body[end:]
    if payload and not isinstance(performative, Transfer):
        raise FramingError(f"{performative.NAME} with a payload")
    if isinstance(performative, Open):
        if connection.moves(ConnectionEvent.OPEN, "open"):
            _open(connection, channel, performative)
    elif isinstance(performative, Close):
        if connection.moves(ConnectionEvent.CLOSE, "close"):
            handshake.close(connection, performative)
    elif connection.moves(ConnectionEvent.SESSION_FRAME, performative.NAME):
        _take_of_session(connection, channel, performative, payload)


_CLOSES = (b"\0\x53\x18", b"\0\x80\0\0\0\0\0\0\0\x18", b"\0\xa3\x0famqp:close:list")

"""How a close begins, whose descriptor has three forms."""
_ENDING = (ConnectionState.CLOSING, ConnectionState.CLOSED)


def _open(connection: Connection, channel: int, asked: Open) -> None:
    if channel != 0:
        raise framing(f"open on channel {channel}")
    try:
        handshake.open_(connection, asked)
    except Undecided as undecided:
        # Nothing is done before the check.
        decide(connection, undecided, partial(_again, connection, asked))


def _again(connection: Connection, asked: Open) -> None:
    """Repeat an open that a decision about a permission was needed for."""
    try:
        handshake.open_(connection, asked)
    except Undecided:
        raise
    except Exception as error:
        connection.caught(error)


# --- sessions -----------------------------------------------------------------------------------


def _take_of_session(
    connection: Connection, channel: int, performative: Any, payload: bytes
) -> None:
    if isinstance(performative, Begin):
        _begin(connection, channel, performative)
        return
    session = connection.channels.get(channel)
    if session is None:
        if isinstance(performative, End) and channel in connection.ending:
            connection.ending.discard(channel)
            return
        check_session(connection, channel, performative.NAME)
        return
    try:
        _HANDLERS[type(performative)](session, performative, payload)
    except KeyError:
        raise framing(f"{performative.NAME} is no performative") from None
    except Undecided as undecided:
        step = partial(_repeat, session, performative)
        decide(connection, undecided, step)
    except Exception as error:
        session.caught(error)


def _repeat(session: Session, performative: Any) -> None:
    """Repeat a performative that a decision about a permission was needed for."""
    if session.ended:
        return
    session.connection.broker.events.actor = session.user.name
    try:
        _HANDLERS[type(performative)](session, performative, b"")
    except Undecided:
        raise
    except Exception as error:
        session.caught(error)


def check_session(connection: Connection, channel: int, shown: str) -> None:
    """Handle a frame on a channel without a session.

    Raises:
        ConnectionFault: illegal-state, unless the frame crossed the end of the session.
    """
    if channel in connection.ending or connection.state is not ConnectionState.OPEN:
        return
    text = f"{shown} on channel {channel}, which has no session"
    raise ConnectionFault(ILLEGAL_STATE, text)


def _begin(connection: Connection, channel: int, asked: Begin) -> None:
    """begin: make a session, on the same channel in both directions."""
    highest = connection.channel_max - 1
    if channel > highest:
        text = f"channel number ({channel}) exceeds maximum channel number ({highest})"
        raise ConnectionFault(FRAMING_ERROR, text)
    if channel in connection.channels or channel in connection.ending:
        raise ConnectionFault(NOT_ALLOWED, f"begin on channel {channel}, which has a session")
    if asked.remote_channel is not None:
        raise ConnectionFault(NOT_ALLOWED, "begin with a remote-channel: the broker begins none")
    try:
        check_channel(connection)
    except ProtocolError as error:
        raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, error.text) from None
    connection.broker.events.actor = connection.user.name
    session = Session(connection, channel, asked.next_outgoing_id, asked.incoming_window)
    # A session that begins while memory is short begins with a closed window.
    connection.registry.publishers.check(connection)
    connection.channels[channel] = session
    channel_created(session)
    connection.send(
        channel,
        Begin(
            remote_channel=channel,
            next_outgoing_id=0,
            incoming_window=session.announced(),
            outgoing_window=SERIALS - 1,
            handle_max=min(handshake.handle_max(), asked.handle_max),
        ),
    )


def _end(session: Session, asked: End, payload: bytes) -> None:
    """end: everything of the session is released, then answered."""
    connection = session.connection
    if asked.error is not None:
        connection.log("warning", f"{connection.peer}: the client ends a session: {asked.error}")
    connection.channels.pop(session.number, None)
    session.outcomes.close()
    session.ended = True
    session.close()

    # After the slices of `close`: when the client reads end, its messages are ready again.
    def answer() -> bool:
        if connection.state is ConnectionState.OPEN:
            connection.send_encoded(session.number, End.NAME, _END)
        return True

    connection.perform(answer)


# --- links --------------------------------------------------------------------------------------


def _attach(session: Session, asked: Attach, payload: bytes) -> None:
    attaching.attach(session, asked)


def _detach(session: Session, asked: Detach, payload: bytes) -> None:
    """detach: the link ends; what of it is not settled is requeued, unless its terminus stays."""
    handle = asked.handle
    if handle in session.detached:
        # The answer to the broker's own.
        session.detached.discard(handle)
        return
    link = session.link_of(handle, "detach")
    subscription = subscriptions.check_end(session, link) if asked.closed else ""
    connection = session.connection
    if asked.error is not None:
        connection.log("info", f"{connection.peer}: the client detaches a link: {asked.error}")
    del session.links[handle]
    session.receiver = None
    session.drop_backlog(handle)
    if asked.closed or asked.error is not None or link.terminus is None:
        # The outcomes of the link leave before its end.
        session.outcomes.report()
        termini.forget(link)
    else:
        # All of them, so that a resumed link knows them.
        session.outcomes.close()
        termini.keep(session, [link], termini.LINK_DETACH)
    link.end()
    if subscription:
        subscriptions.end(session, subscription)
    detach = Detach(handle, asked.closed)

    # After the slices of `end`: when the client reads detach, its messages are ready again.
    def answer() -> bool:
        if not session.ended:
            connection.send(session.number, detach)
        return True

    connection.perform(answer)


def _flow(session: Session, asked: Flow, payload: bytes) -> None:
    if asked.handle is not None and _TXN_ID in (asked.properties or {}):
        link = session.link_of(asked.handle, "flow")
        text = "flow: txn-id: deliveries are not acquired in transactions, they are retired in them"
        if link is not None:
            session.caught(LinkError(NOT_IMPLEMENTED, text), link)
        return
    session.take_flow(
        _number(asked.next_incoming_id),
        asked.incoming_window,
        asked.next_outgoing_id,
        _number(asked.handle),
        _number(asked.delivery_count),
        _number(asked.link_credit),
        (DRAIN if asked.drain else 0) | (ECHO if asked.echo else 0),
    )


def _number(given: int | None) -> int:
    return -1 if given is None else given


def _disposition(session: Session, asked: Disposition, payload: bytes) -> None:
    settling.take(session, asked)


def _transfer(session: Session, asked: Transfer, payload: bytes) -> None:
    """A transfer that the scanner could not read by field."""
    flags = 0
    for flag, given in (
        (SETTLED, asked.settled),
        (MORE, asked.more),
        (RESUME, asked.resume),
        (ABORTED, asked.aborted),
        (SECOND, asked.rcv_settle_mode),
    ):
        flags |= flag if given else 0
    session.connection.intake.partial(
        session.number,
        asked.handle,
        _number(asked.delivery_id),
        asked.delivery_tag,
        _number(asked.message_format),
        flags,
        b"" if asked.state is None else encode(asked.state),
        payload,
    )


_HANDLERS: dict[type, Any] = {
    End: _end,
    Attach: _attach,
    Detach: _detach,
    Flow: _flow,
    Disposition: _disposition,
    Transfer: _transfer,
}
