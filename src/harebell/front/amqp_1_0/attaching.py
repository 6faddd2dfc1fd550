"""Attach: decide what a link is, from its terminus, and make it.

    the peer sends       target                            link
    coordinator          transactions                      `CoordinatorLink`
    a name in `NODES`    a node of the broker              what the entry makes
    dynamic              a queue that is made              `ReceivingLink`
    address or null      queue, exchange, or each `to`     `ReceivingLink`

    the peer receives    source
    a name in `NODES`    a node of the broker              what the entry makes
    dynamic              a queue, or direct replies        `SendingLink`, `ReplyLink`
    address              a queue; of an exchange, a new one  `SendingLink`

An attach is always answered by an attach. A refused one is answered without the terminus of the
broker, and by a detach with the error (AMQP 1.0 2.6.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harebell.auth.authority import Undecided
from harebell.auth.permissions import READ
from harebell.front.amqp_1_0 import coordinator, nodes, subscriptions, termini
from harebell.front.amqp_1_0.addresses import (
    Address,
    exchange_address,
    queue_address,
    source,
    target,
)
from harebell.front.amqp_1_0.errors import (
    FRAMING_ERROR,
    HANDLE_IN_USE,
    INVALID_FIELD,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
    ConnectionFault,
    LinkError,
    SessionError,
    composite,
    of_link,
)
from harebell.front.amqp_1_0.filters import CAPABILITIES, arguments_of, binding_of
from harebell.front.amqp_1_0.handshake import handle_max
from harebell.front.amqp_1_0.management import cbs, pair
from harebell.front.amqp_1_0.receiving import ReceivingLink
from harebell.front.amqp_1_0.resuming import Unsettled, check_unsettled
from harebell.front.amqp_1_0.sending import ReplyLink, SendingLink
from harebell.front.amqp_1_0.special import written
from harebell.front.common.errors import describe
from harebell.front.common.permission import EXCHANGE, QUEUE, check
from harebell.front.limits import KEPT_LINK_SECONDS
from harebell.front.operations.caller import caller_of
from harebell.front.operations.consume import (
    ConsumerOptions,
    check_arguments,
    check_browser_arguments,
    start,
)
from harebell.front.operations.declare import QueueOptions, declare_queue
from harebell.front.operations.get import readable_queue
from harebell.front.operations.publish import writable_exchange
from harebell.model.queue.stream import StreamQueue
from harebell.model.reserved import check_length
from harebell.model.resource import missing
from harebell.wire.v1.composites import Attach, Coordinator, Detach, Released, Source, Target
from harebell.wire.v1.encoding import Symbols
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session
    from harebell.model.queue.contract import Queue

SETTLED, UNSETTLED = 1, 0
FIRST, SECOND = 0, 1
_OUTCOMES = Symbols(
    ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
)
_MESSAGE_MAX = 2**63 - 1
"""No message is larger. Clients without a limit say 2**64 - 1, more than a link can keep."""
_COPY = "copy"
_PRIORITY = Symbol("rabbitmq:priority")
_CONSUMER_TIMEOUT = Symbol("rabbitmq:consumer-timeout")

NODES: dict[str, Callable[[Session, Attach], Attach]] = {
    pair.ADDRESS: pair.attach,
    cbs.ADDRESS: cbs.attach,
}
"""Nodes of the broker, by their addresses: what makes a link to one, and returns the answer.

The link has what the others have (`ReceivingLink`, `SendingLink`), and puts itself into
`Session.links`. An error that it raises refuses the attach.
"""


def attach(session: Session, asked: Attach) -> None:
    """Attach a link, or refuse it.

    Raises:
        ConnectionFault, SessionError: the handle is not one for a new link.
        Undecided: the backend of the user has to be asked first; nothing is done yet.
    """
    _check_handle(session, asked.handle)
    try:
        answer = _made(session, asked)
    except Undecided:
        raise
    except Exception as error:
        found = of_link(error)
        if found is None:
            session.connection.log("error", f"{session.connection.peer}: {describe(error)}")
            found = LinkError("amqp:internal-error", "internal error")
        if found.condition == UNAUTHORIZED_ACCESS:
            termini.lose(session, asked)
        if not isinstance(found, LinkError):
            raise found from None
        _refuse(session, asked, found)
        return
    # What was declared for the link has to be on disk before the peer knows of it.
    session.connection.hold_until(session.vhost.recorder.ticket)
    session.connection.send(session.number, answer)
    link = session.links.get(asked.handle)
    if link is not None:
        if not asked.role:
            # Of these two the sender decides the first (AMQP 1.0 2.6.7 and 2.7.5).
            link.delivery_count = asked.initial_delivery_count or 0
            link.second = answer.rcv_settle_mode == SECOND
        link.attached()


def _check_handle(session: Session, handle: int) -> None:
    highest = handle_max()
    if handle > highest:
        text = f"link handle value ({handle}) exceeds maximum link handle value ({highest})"
        raise ConnectionFault(FRAMING_ERROR, text)
    if handle in session.links or handle in session.detached:
        text = f"handle {handle} is already associated with a link"
        raise SessionError(HANDLE_IN_USE, text)


def _refuse(session: Session, asked: Attach, error: LinkError) -> None:
    """Answer an attach without the terminus of the broker, then detach the link."""
    connection = session.connection
    text = error.text
    if error.condition == INVALID_FIELD and text.startswith("{"):
        text = f"Attach refused: {text}"
    connection.log(
        "warning", f"{connection.peer}: link '{asked.name}' refused: {error.condition}: {text}"
    )
    answer = Attach(
        asked.name,
        asked.handle,
        not asked.role,
        snd_settle_mode=asked.snd_settle_mode,
        rcv_settle_mode=asked.rcv_settle_mode,
        # The terminus of the peer is echoed: some clients need one of both.
        source=None if asked.role else asked.source,
        target=asked.target if asked.role else None,
        initial_delivery_count=0 if asked.role else None,
    )
    connection.send(session.number, answer)
    detach = Detach(asked.handle, True, composite(error.condition, text, error.info))
    connection.send(session.number, detach)
    session.detached.add(asked.handle)


def _made(session: Session, asked: Attach) -> Attach:
    """Make the link of an attach; return the answer."""
    session.connection.broker.events.actor = session.user.name
    terminus = asked.source if asked.role else asked.target
    if asked.role and terminus is None:
        return subscriptions.look_up(session, asked)
    if type(asked.target) is Coordinator and not asked.role:
        return coordinator.attach(session, asked)
    if type(terminus) is not (Source if asked.role else Target):
        what = "source" if asked.role else "target"
        raise LinkError(INVALID_FIELD, f"attach: {what} is missing or of an unknown kind")
    address = terminus.address
    if address is not None and not isinstance(address, str):
        raise LinkError(INVALID_FIELD, f"attach: address must be string, not {address!r:.100}")
    node = NODES.get(address or "")
    if node is not None:
        return node(session, asked)
    termini.check_policy(terminus)
    check_unsettled(asked)
    answer = _send_to_peer(session, asked) if asked.role else _receive(session, asked)
    termini.claim(session, asked, answer)
    return answer


# --- the broker receives ------------------------------------------------------------------------


def _receive(session: Session, asked: Attach) -> Attach:
    """Make a link by which the broker receives."""
    terminus: Target = asked.target
    owned = ""
    changes: dict[str, Any] = {}
    where: Address | None = None
    if terminus.dynamic:
        if terminus.address is not None:
            raise LinkError(INVALID_FIELD, "attach: a dynamic target has no address")
        if nodes.TEMPORARY_TOPIC in terminus.capabilities:
            owned = nodes.make_temporary_topic(session, _internal)
            changes = nodes.dynamic_answer(exchange_address(owned, ""))
            where = Address(exchange=owned)
        else:
            # The permission to publish is checked first: a refused link leaves nothing behind.
            writable_exchange(session, "", _internal)
            owned = nodes.make_dynamic(session, terminus, asked.name).name
            changes = nodes.dynamic_answer(queue_address(owned))
            where = Address(queue=owned)
    elif terminus.address:
        where = subscriptions.topic_of(session, terminus)
        if where is None:
            where = target(str(terminus.address), session.connection.addressing)
        check_length("routing key", where.key or "")
        where = _writable(session, where, durable=terminus.durable > 0)
    link = ReceivingLink(session, asked.name, asked.handle, where)
    link.owned = owned
    link.mode = asked.snd_settle_mode
    if where is None or not where.queue:
        link.discards = not _DISCARDING.isdisjoint(terminus.capabilities)
    # Where nothing can be resumed the broker settles at once, as others do that know mode first
    # only: there are publishers that ask for second, and never settle.
    second = asked.rcv_settle_mode == SECOND and (
        asked.unsettled is not None or termini.lasts(terminus)
    )
    if second and link.mode != SETTLED:
        link.unsettled = Unsettled()
    session.links[asked.handle] = link
    return Attach(
        asked.name,
        asked.handle,
        True,
        snd_settle_mode=asked.snd_settle_mode,
        rcv_settle_mode=SECOND if second else FIRST,
        source=asked.source,
        target=_changed(
            terminus, **(_lasting(terminus, owned) | changes), capabilities=_kept(terminus)
        ),
        max_message_size=link.message_max,
    )


def _writable(session: Session, where: Address, *, durable: bool) -> Address:
    """Check that the user may publish where a target says; make a queue that may be missing.

    Raises:
        Refusal: the user may not, or there is no such node.
    """
    where = written(session, where)
    if not where.queue:
        writable_exchange(session, where.exchange, _internal)
        return where
    writable_exchange(session, "", _internal)
    if where.queue not in session.router.replies and where.queue not in session.vhost.queues:
        if not where.makes:
            raise missing("queue", where.queue, session.vhost.name)
        declare_queue(caller_of(session), where.queue, QueueOptions(durable=durable))
    # Everybody may publish to an exclusive queue, as in the other versions: it may be for replies.
    return Address(queue=where.queue)


def _internal(text: str) -> Exception:
    return LinkError("amqp:unauthorized-access", text.replace("cannot", "forbidden to", 1))


# --- the broker sends ---------------------------------------------------------------------------


def _send_to_peer(session: Session, asked: Attach) -> Attach:
    """Make a link by which the broker sends."""
    terminus: Source = asked.source
    _check_outcomes(terminus)
    if nodes.is_volatile(terminus):
        return _send_replies(session, asked)
    owned = ""
    bound: dict[Any, Any] = {}
    changes: dict[str, Any] = {}
    if terminus.dynamic:
        if terminus.address is not None:
            raise LinkError(INVALID_FIELD, "attach: a dynamic source has no address")
        queue = nodes.make_dynamic(session, terminus, asked.name)
        owned = queue.name
        changes = nodes.dynamic_answer(queue_address(owned))
    else:
        if not terminus.address:
            raise LinkError(INVALID_FIELD, "{bad_address,undefined}")
        queue, ends, bound = _read(session, asked)
        owned = queue.name if ends else ""
    filters, in_force = arguments_of(queue, terminus.filter)
    in_force |= bound
    try:
        link = _consumer(session, asked, queue, filters)
    except Exception:
        if owned:
            # A refused link leaves nothing behind.
            session.vhost.retire(queue)
        raise
    link.owned = owned
    reads = isinstance(queue, StreamQueue)
    changes |= _lasting(terminus, owned) | {
        "filter": in_force or None,
        "distribution_mode": Symbol(_COPY if reads or link.browses else "move"),
        "default_outcome": Released(),
        "outcomes": terminus.outcomes or _OUTCOMES,
        "capabilities": _kept(terminus),
    }
    return Attach(
        asked.name,
        asked.handle,
        False,
        snd_settle_mode=SETTLED if link.settles else UNSETTLED,
        rcv_settle_mode=asked.rcv_settle_mode,
        source=_changed(terminus, **changes),
        target=asked.target,
        initial_delivery_count=0,
        max_message_size=session.connection.message_max,
        offered_capabilities=CAPABILITIES,
    )


def _read(session: Session, asked: Attach) -> tuple[Queue, bool, dict[Any, Any]]:
    """Find or make the queue of a source.

    Returns:
        The queue, whether it ends with the link, and the filter that said its binding key.

    Raises:
        Refusal: the user may not read it, or there is no such node.
    """
    terminus: Source = asked.source
    vhost = session.vhost
    where = subscriptions.topic_of(session, terminus)
    if where is None:
        where = source(str(terminus.address), session.connection.addressing)
        allows = session.user.allows
        names_exchange = where.queue not in vhost.queues and where.exchange in vhost.exchanges
        # Who may not read the exchange learns as much as if it were missing.
        if where.either and names_exchange and allows(vhost.name, READ, EXCHANGE, where.exchange):
            where = Address(exchange=where.exchange, key=where.key)
    if not where.queue:
        key, bound = (where.key, {}) if where.key else binding_of(terminus.filter)
        where = Address(exchange=where.exchange, key=key)
        return *subscriptions.subscribe(session, asked, where), bound
    # First, so that a user without the permission does not learn which queues exist.
    check(session, READ, QUEUE, where.queue)
    caller = caller_of(session)
    if where.makes and where.queue not in vhost.queues:
        declare_queue(caller, where.queue, QueueOptions(durable=terminus.durable > 0))
    return readable_queue(caller, where.queue), False, {}


def _consumer(
    session: Session, asked: Attach, queue: Queue, filters: dict[str, Any]
) -> SendingLink:
    """Make the consumer of a link, and give it to its queue; it has no credit yet."""
    properties = asked.properties or {}
    settles = asked.snd_settle_mode == SETTLED
    reads = isinstance(queue, StreamQueue)
    tag = asked.name
    if tag in session.consumers or not tag:
        tag = f"{asked.name}-{asked.handle}"
    arguments = dict(filters)
    priority = _priority(properties)
    timeout = properties.get(_CONSUMER_TIMEOUT)
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        arguments["x-consumer-timeout"] = int(timeout)
    limit = session.connection.settings.consumer_max_per_channel
    if limit and len(session.consumers) >= limit:
        text = f"reached maximum ({limit}) of consumers per session"
        raise LinkError(RESOURCE_LIMIT_EXCEEDED, text)
    # A stream asks for a prefetch, in whose place there is credit here.
    options = ConsumerOptions(tag, settles and not reads, False, 1 if reads else 0, arguments)
    # A stream is read by every link for itself: it is browsed in any mode.
    browses = asked.source.distribution_mode == _COPY and not reads
    if browses:
        check_browser_arguments(session.vhost, queue, options)
    else:
        check_arguments(session.vhost, queue, options)
        session.vhost.check_consumer(queue, exclusive=False)
    link = SendingLink(
        session,
        queue,
        asked.name,
        asked.handle,
        tag,
        settles=settles,
        browses=browses,
        message_max=min(asked.max_message_size or 0, _MESSAGE_MAX),
        priority=priority,
        arguments=arguments,
    )
    start(session, session.consumers, link, browses=browses)
    session.links[asked.handle] = link
    return link


def _priority(properties: dict[Any, Any]) -> int:
    value = properties.get(_PRIORITY, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31:
        raise LinkError(INVALID_FIELD, f"{_PRIORITY} is a number of 32 bits, not {value!r:.100}")
    return int(value)


def _send_replies(session: Session, asked: Attach) -> Attach:
    """Make a link for direct replies, which are settled when they are sent."""
    terminus: Source = asked.source
    if asked.snd_settle_mode != SETTLED:
        raise LinkError(
            NOT_IMPLEMENTED, "snd-settle-mode of a volatile queue must be settled: nothing is kept"
        )
    queue = nodes.make_volatile(session)
    link = ReplyLink(session, queue, asked.name, asked.handle, asked.name, settles=True)
    session.links[asked.handle] = link
    session.consumers[f"{asked.name}-{asked.handle}"] = link
    link.tag = f"{asked.name}-{asked.handle}"
    queue.add_consumer(link)
    changes = nodes.dynamic_answer(queue_address(queue.name)) | {
        "default_outcome": Released(),
        "outcomes": terminus.outcomes or _OUTCOMES,
        "capabilities": (Symbol(nodes.VOLATILE),),
    }
    return Attach(
        asked.name,
        asked.handle,
        False,
        snd_settle_mode=SETTLED,
        rcv_settle_mode=asked.rcv_settle_mode,
        source=_changed(terminus, **changes),
        target=asked.target,
        initial_delivery_count=0,
        max_message_size=session.connection.message_max,
    )


# --- termini ------------------------------------------------------------------------------------


def _check_outcomes(terminus: Source) -> None:
    """Refuse outcomes that are not known.

    Raises:
        LinkError: not-implemented.
    """
    unknown = [name for name in terminus.outcomes if name not in _OUTCOMES]
    if unknown:
        raise LinkError(NOT_IMPLEMENTED, f"Outcomes not supported: {', '.join(unknown)}")


def _lasting(terminus: Source | Target, owned: str) -> dict[str, Any]:
    """Return how long a terminus stays after its link: one with its own queue ends with it."""
    if owned:
        return {"durable": 0, "expiry_policy": Symbol("link-detach"), "timeout": 0}
    return {"timeout": min(terminus.timeout, KEPT_LINK_SECONDS)}


def _kept(terminus: Source | Target) -> tuple[Symbol, ...]:
    """Return the capabilities of a terminus that the broker has, too."""
    return tuple(Symbol(name) for name in terminus.capabilities if name in _KNOWN_CAPABILITIES)


_DISCARD = "DISCARD_UNROUTABLE"
_DISCARDING = frozenset((subscriptions.TOPIC, nodes.TEMPORARY_TOPIC, _DISCARD))
"""Capabilities of a target that takes messages without a queue; the last is Broker-J's."""
_KNOWN_CAPABILITIES = (
    *("queue", nodes.TEMPORARY, nodes.TEMPORARY_TOPIC),
    *(subscriptions.TOPIC, subscriptions.SHARED, subscriptions.GLOBAL, _DISCARD),
)


def _changed(terminus: Any, **changes: Any) -> Any:
    """Return a terminus as the broker has it: as the peer asked, but for some fields."""
    return replace(terminus, **changes)
