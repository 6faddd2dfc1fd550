"""The command that says what would happen to a message, without publishing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import EXCHANGES
from harebell.admin.command import MANAGEMENT, Argument, Row, plural
from harebell.admin.commands.exchanges import find_exchange
from harebell.admin.commands.messages import NO_PROPERTIES, checked_properties
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.limits import REHEARSAL_SHOWN_QUEUES, REHEARSAL_SLICE_QUEUES
from harebell.base.bcc import BCC, CC
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.base.message import Message
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.rehearsal import Prospect, Route, Step
    from harebell.model.vhost import VHost

_DEFAULT = "amq.default"
_READS_ALL = ("administrator", "monitoring")


@EXCHANGES.over_http("POST /api/exchanges/{vhost}/{name}/explain", tag=MANAGEMENT, status=200)
def explain(
    context: AdminContext,
    name: str,
    routing_key: str = "",
    vhost: InVhost = "/",
    properties: dict[str, Any] = NO_PROPERTIES,
    payload_bytes: Annotated[int, Argument("The size of its body.", "BYTES")] = 0,
    user: Annotated[
        str | None, Argument("The user who publishes, whose permissions are looked at.", "NAME")
    ] = None,
) -> Slices[Row]:
    """Say what would happen to a message, without publishing it.

    The answer has the permissions that are needed, the bindings that match, and for each queue
    whether it delivers, keeps or refuses the message, and where dead letters would go.
    """
    where, exchange = find_exchange(context, vhost, "" if name == _DEFAULT else name)
    publisher = _publisher(context, user)
    if payload_bytes < 0:
        raise CommandRefused(f"payload_bytes is {payload_bytes}: give the size of the body")
    message = _message(context, exchange, routing_key, properties)
    return _explained(context, where, exchange, message, payload_bytes, publisher, properties)


def _publisher(context: AdminContext, name: str | None) -> User | None:
    """Return the user whose permissions are checked; None on the control socket."""
    if name is None or (context.actor is not None and context.actor.name == name):
        return context.actor
    if context.actor is not None and not set(_READS_ALL) & set(context.actor.tags):
        raise CommandRefused(
            f"what user '{name}' may do is shown to administrators and monitoring users: leave "
            "the user out to see what you may",
            ErrorKind.ACCESS_REFUSED,
        )
    return context.user(name)


def _message(
    context: AdminContext, exchange: Exchange, key: str, properties: dict[str, Any]
) -> Message:
    from harebell.front.convert.editor import composed

    try:
        return composed(exchange.name, key, b"", checked_properties(properties))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CommandRefused(f"the message cannot be encoded: {error}") from None


def _further_keys(properties: dict[str, Any]) -> list[str]:
    """Return the routing keys of the headers CC and BCC."""
    headers = properties.get("headers") or {}
    keys: list[str] = []
    for name in (CC, BCC):
        value = headers.get(name, [])
        if not isinstance(value, list):
            raise CommandRefused(f"header {name} is no list: the broker refuses such a message")
        keys += [key for key in value if isinstance(key, str)]
    return keys


def _explained(
    context: AdminContext,
    where: VHost,
    exchange: Exchange,
    message: Message,
    size: int,
    publisher: User | None,
    properties: dict[str, Any],
) -> Slices[Row]:
    from harebell.base.expiration import lifetime_ms
    from harebell.base.message import copy_message
    from harebell.front.convert import headers_of
    from harebell.model.rehearsal import NO_TTL, REFUSED, prospect_of, route_of

    keys = [message.routing_key, *_further_keys(properties)]
    permissions = _permissions(context, where, exchange, keys, publisher)
    permissions.append(_size_row(context, size))
    copies = [copy_message(message, exchange.name, key) for key in keys[1:]]
    headers = headers_of(message) if message.has_headers else {}
    route = yield from route_of(where.router, exchange, (message, *copies), headers)
    lifetime = lifetime_ms(properties.get("expiration"))
    own_ttl = NO_TTL if lifetime is None else lifetime
    queues: list[Row] = []
    refusals = 0
    for number, queue in enumerate(route.queues):
        if number % REHEARSAL_SLICE_QUEUES == REHEARSAL_SLICE_QUEUES - 1:
            yield
        prospect = prospect_of(queue, message, size, own_ttl)
        refusals += prospect.outcome == REFUSED
        if number < REHEARSAL_SHOWN_QUEUES:
            queues.append((yield from _queue_row(where, queue, prospect, message)))
    allowed = all(row["allowed"] for row in permissions)
    publishers = context.registry.publishers
    return {
        "vhost": where.name,
        "exchange": exchange.name,
        "routing_key": message.routing_key,
        "user": "" if publisher is None else publisher.name,
        "verdict": _verdict(route, permissions, refusals),
        "permissions": permissions,
        "allowed": allowed,
        "blocked": publishers.reason() if publishers.short_of() else "",
        "routed": bool(route.queues) or route.direct_reply,
        "steps": [_step_row(where, step) for step in route.steps],
        "queues": queues,
        "queues_total": len(route.queues),
    }


# --- permissions ----------------------------------------------------------------------------------


def _permissions(
    context: AdminContext,
    where: VHost,
    exchange: Exchange,
    keys: list[str],
    publisher: User | None,
) -> list[Row]:
    """Return a row for each check of a publish."""
    shown = exchange.name or _DEFAULT
    rows = [
        _row(
            "the exchange takes messages of clients",
            f"exchange '{shown}' is internal: only other exchanges may send to it"
            if exchange.internal
            else "",
        )
    ]
    if publisher is None:
        return rows
    from harebell.front.common.permission import check, check_topic, topic_of
    from harebell.front.operations.caller import Caller

    caller = Caller(where, publisher, None, context.log)
    opens = publisher.opens(where.name)
    reason = f"user '{publisher.name}' has no permissions in vhost '{where.name}'"
    rows.append(_row(f"user '{publisher.name}' opens the vhost", "" if opens else reason))
    refusal = _refusal(lambda: check(caller, "write", "exchange", exchange.name))
    rows.append(_row(f"write for exchange '{shown}'", refusal))
    if topic_of(caller, exchange) is not None:
        for key in keys:
            refusal = _refusal(lambda key=key: check_topic(caller, "write", exchange.name, key))
            rows.append(_row(f"topic permission for the key '{key}'", refusal))
    return rows


def _size_row(context: AdminContext, size: int) -> Row:
    limit = context.configuration().get("message_max_bytes")
    over = isinstance(limit, int) and 0 < limit < size
    reason = f"the body has {size} bytes, at most {limit} are allowed (message_max_bytes)"
    return _row("the body is small enough", reason if over else "")


def _row(what: str, reason: str) -> Row:
    return {"check": what, "allowed": not reason, "reason": reason}


def _refusal(check: Any) -> str:
    try:
        check()
    except Refusal as refusal:
        return refusal.text
    return ""


# --- rows -----------------------------------------------------------------------------------------


def _step_row(where: VHost, step: Step) -> Row:
    from harebell.model.queue.contract import Queue
    from harebell.wire.json_values import shown_table

    return {
        "exchange": step.exchange.name,
        "type": step.exchange.KIND,
        "via": step.via,
        "source": step.source,
        "note": step.note,
        "one_of": step.one_of,
        "bindings": [
            {
                "destination": each.destination.name,
                "destination_type": "queue" if isinstance(each.destination, Queue) else "exchange",
                "routing_key": each.routing_key,
                "arguments": shown_table(each.arguments),
            }
            for each in step.bindings
        ],
        "more_bindings": step.more,
        "alternate_exchange": step.alternate,
        "alternate_exists": step.alternate in where.exchanges,
        "queue": None if step.queue is None else step.queue.name,
        "explanation": _step_sentence(where, step),
    }


def _step_sentence(where: VHost, step: Step) -> str:
    """Say what the exchange does with the message."""
    if step.exchange.default:
        if step.queue is None:
            return "No queue has the name of the routing key."
        return f"The default exchange routes to the queue '{step.queue.name}' by its name."
    count = len(step.bindings)
    if step.bindings:
        bindings = plural(count, "binding")
        text = f"More than {bindings} match." if step.more else f"{bindings} match."
        if count == 1 and not step.more:
            text = "One binding matches."
        if step.one_of:
            text = f"One of {bindings} is chosen at random for each message."
    else:
        text = "No binding matches."
        if step.alternate is not None and step.alternate in where.exchanges:
            text += f" The alternate exchange '{step.alternate}' gets it."
        elif step.alternate is not None:
            text += f" The alternate exchange '{step.alternate}' does not exist."
    return f"{step.note} {text}".strip()


def _queue_row(where: VHost, queue: Queue, prospect: Prospect, message: Message) -> Slices[Row]:
    from harebell.model.queue.arguments import queue_type
    from harebell.model.rehearsal import NO_TTL

    letters = yield from _letters(where, queue, message)
    settings = where.policies.settings_of(queue)
    return {
        "name": queue.name,
        "type": queue_type(queue.arguments),
        "durable": queue.durable,
        "messages_ready": queue.ready_count(),
        "consumers": len(queue.consumers),
        "outcome": prospect.outcome,
        "overflow": settings.get("overflow", "drop-head"),
        "max_length": settings.get("max-length"),
        "max_length_bytes": settings.get("max-length-bytes"),
        "expires_after_ms": None if prospect.ttl_ms == NO_TTL else prospect.ttl_ms,
        "confirm_waits_for_disk": prospect.synced,
        "dead_letters": letters,
        "explanation": _queue_sentence(prospect, letters),
    }


def _letters(where: VHost, queue: Queue, message: Message) -> Slices[Row | None]:
    """Return where dead letters of the queue go; None if they are dropped."""
    from harebell.base.message import copy_message
    from harebell.front.convert import headers_of
    from harebell.model.rehearsal import route_of

    letters = getattr(queue, "dead_letters", None)
    if letters is None:
        return None
    key = message.routing_key if letters.routing_key is None else letters.routing_key
    dead_letters: Row = {
        "exchange": letters.exchange,
        "routing_key": key,
        "exists": False,
        "queues": [],
    }
    exchange = where.exchanges.get(letters.exchange)
    if exchange is None:
        return dead_letters
    headers = headers_of(message) if message.has_headers else {}
    letter = copy_message(message, exchange.name, key)
    route: Route = yield from route_of(where.router, exchange, (letter,), headers)
    names = [each.name for each in route.queues[:REHEARSAL_SHOWN_QUEUES]]
    return {**dead_letters, "exists": True, "queues": names}


def _queue_sentence(prospect: Prospect, letters: Row | None) -> str:
    """Say what the queue does with the message."""
    from harebell.model import rehearsal

    to = "" if letters is None else f" to exchange '{letters['exchange']}'"
    if prospect.outcome == rehearsal.DUPLICATE:
        return "The queue has a message with the same deduplication header: this one is dropped."
    if prospect.outcome == rehearsal.REFUSED:
        text = "The queue is full and refuses it: the confirm is a nack."
        return f"{text} It is dead-lettered{to}." if prospect.letters else text
    if prospect.outcome == rehearsal.DROPS_OLDEST:
        what = f"dead-lettered{to}" if prospect.letters else "dropped"
        text = f"The queue is full: the oldest message is {what}, and this one is kept."
    elif prospect.outcome == rehearsal.DELIVERED:
        text = "A consumer is ready: it is delivered at once."
    else:
        text = "It is kept until a consumer takes it."
    if prospect.ttl_ms != rehearsal.NO_TTL:
        end = f"dead-lettered{to}" if letters is not None else "dropped"
        text += f" After {prospect.ttl_ms} ms it expires and is {end}."
    disk = "The confirm waits until it is on disk." if prospect.synced else ""
    return f"{text} {disk or 'The confirm does not wait for the disk.'}"


def _verdict(route: Route, permissions: list[Row], refusals: int) -> str:
    """Say in a sentence what would happen."""
    for row in permissions:
        if not row["allowed"]:
            return f"It is refused: {row['reason']}."
    if route.direct_reply:
        return "It is a direct reply, for a consumer that waits for it."
    count = len(route.queues)
    if not count:
        return (
            "It reaches no queue: it is returned to a publisher who sets the flag mandatory, else "
            "it is dropped and confirmed."
        )
    if any(step.one_of for step in route.steps):
        return f"It reaches some of {plural(count, 'queue')}: an exchange chooses one at random."
    text = f"It reaches {plural(count, 'queue')}"
    return (
        f"{text}; {refusals} of them refuse it, so the confirm is a nack."
        if refusals
        else f"{text}."
    )
