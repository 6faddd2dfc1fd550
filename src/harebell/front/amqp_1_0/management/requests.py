"""What is asked for at the node `/management`.

    PUT     /queues/Q             201, 200    the queue           map: durable, exclusive, ...
    GET     /queues/Q             200         the queue
    DELETE  /queues/Q             200         message_count
    DELETE  /queues/Q/messages    200         message_count
    PUT     /exchanges/X          204                             map: type, durable, ...
    DELETE  /exchanges/X          204
    POST    /bindings             204                             map: source, binding_key, ...
    GET     /bindings?src=&dstq=  200         list of bindings
    DELETE  /bindings/src=S;...   204
    PUT     /auth/tokens          204                             binary: the new token

A refused permission ends the session, as for other acts of AMQP 1.0. Everything else that is wrong
with a request has a status from 400 on, and a text as its body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct

from harebell.base.errors import ErrorKind, ProtocolError, Refusal
from harebell.base.slices import Slices, stepped
from harebell.base.values import SectionValue
from harebell.front.amqp_1_0.addresses import unquoted
from harebell.front.amqp_1_0.errors import LinkError
from harebell.front.amqp_1_0.management.values import BadRequest, digest, shown, table
from harebell.front.common.long_operation import LongOperation
from harebell.front.common.permission import EXCHANGE, QUEUE, check_any
from harebell.front.common.secrets import renew_secret
from harebell.front.limits import (
    MANAGEMENT_BINDING_UNITS,
    MANAGEMENT_BINDINGS,
    MANAGEMENT_SHOWN_UNITS,
)
from harebell.front.operations.bind import UNBOUND, BindingRequest, bind, check_binding, unbind
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import (
    ExchangeOptions,
    QueueOptions,
    declare_exchange,
    declare_queue,
    find_exchange,
    find_queue,
)
from harebell.front.operations.delete import (
    deletable_exchange,
    deletable_queue,
    exchange_deletion,
    queue_deletion,
)
from harebell.front.operations.purge import purge_queue
from harebell.model.queue.arguments import queue_type
from harebell.model.queue.contract import Queue
from harebell.model.resource import RESERVED_PREFIX, LimitReached, refused, rendered
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.values import Array, UInt, ULong

if TYPE_CHECKING:
    from harebell.base.work import Work
    from harebell.front.amqp_1_0.session import Session
    from harebell.front.operations.caller import Caller
    from harebell.model.binding import Binding
    from harebell.model.exchange import Exchange

_STRING = 0xA1
_CONFLICTS = ("inequivalent arg", "invalid arg")


class Request(Struct, frozen=True):
    """A request.

    Args:
        method: as in HTTP.
        path: what it is about.
        body: the value of its only section.
    """

    method: str
    path: str
    body: Any


class Answer(Struct, frozen=True):
    """What becomes of a request.

    Args:
        status: as in HTTP.
        body: any value.
    """

    status: int
    body: Any = None


Reply = Callable[[Answer], object]


def serve(session: Session, request: Request, reply: Reply) -> None:
    """Do what a request asks for.

    Args:
        session: of the request: its user, vhost and exclusive queues.
        request: as received.
        reply: called with the answer, once, now or in another turn.

    Raises:
        Refusal: the user lacks a permission.
        Undecided: the backend of the user has to be asked first; nothing is done yet.
    """
    try:
        path, _, query = request.path.partition("?")
        if not path.startswith("/"):
            raise BadRequest(f"failed to normalize URI '{path:.200}': it does not begin with '/'")
        names = [unquoted(part, request.path) for part in path.split("/")[1:]]
        _serve(_Call(session, request, names, query, reply))
    except BadRequest as error:
        reply(Answer(400, str(error)))
    except LinkError:
        reply(Answer(400, f"the path {request.path!r:.200} is not percent-encoded correctly"))
    except (Refusal, ProtocolError) as error:
        reply(_refused(request, error))


class _Call(Struct, frozen=True):
    session: Session
    request: Request
    names: list[str]
    query: str
    reply: Reply

    @property
    def caller(self) -> Caller:
        """Who asks, with the vhost."""
        return caller_of(self.session)

    def perform(self, step: Callable[[], bool]) -> None:
        """Do something in slices."""

        def failed(error: Exception) -> None:
            self.reply(_refused(self.request, error))

        LongOperation(step, failed).perform(self.session.connection)


def _serve(call: _Call) -> None:
    match (call.request.method, *call.names):
        case ("PUT", "queues", name):
            _put_queue(call, name)
        case ("GET", "queues", name) if name:
            _get_queue(call, name)
        case ("DELETE", "queues", name) if name:
            _delete_queue(call, name)
        case ("DELETE", "queues", name, "messages") if name:
            _purge_queue(call, name)
        case ("PUT", "exchanges", name):
            _put_exchange(call, name)
        case ("DELETE", "exchanges", name):
            _delete_exchange(call, name)
        case ("POST", "bindings"):
            _post_binding(call)
        case ("GET", "bindings"):
            _get_bindings(call)
        case ("DELETE", "bindings", location):
            _delete_binding(call, location)
        case ("PUT", "auth", "tokens"):
            _renew(call)
        case (method, *_):
            raise BadRequest(f"{method} {call.request.path} is no request of this node"[:400])


def _refused(request: Request, error: Exception) -> Answer:
    """Return the answer for a refusal other than that of a permission, which is raised again."""
    kind = getattr(error, "kind", None)
    text: str = getattr(error, "text", str(error))
    if kind is ErrorKind.ACCESS_REFUSED:
        raise error
    if kind in (ErrorKind.NOT_FOUND, ErrorKind.NO_QUEUE_NAMED):
        return Answer(404, text)
    if kind is ErrorKind.RESOURCE_ERROR or isinstance(error, LimitReached):
        return Answer(403, text)
    if kind is ErrorKind.PRECONDITION_FAILED and text.startswith(_CONFLICTS):
        return Answer(409, text)
    return Answer(400, text)


def _forbidden(check: Callable[[], object], reply: Reply) -> bool:
    """Answer 403 if a name is reserved; return whether it is."""
    try:
        check()
    except Refusal as refusal:
        reply(Answer(403, refusal.text))
        return True
    return False


def _check_reserved(kind: str, name: str, vhost: str) -> None:
    """Refuse a name of the broker's own.

    Raises:
        Refusal: it is one.
    """
    if name.startswith(RESERVED_PREFIX):
        resource = rendered(kind, name, vhost)
        raise refused(f"{resource} starts with reserved prefix '{RESERVED_PREFIX}'")


def _check_line_ends(name: str) -> None:
    """Refuse a name with line ends, as RabbitMQ.

    Raises:
        BadRequest: it has.
    """
    if "\n" in name or "\r" in name:
        text = f"Bad name '{name}': line feed and carriage return characters not allowed"
        raise BadRequest(text)


# --- bodies -------------------------------------------------------------------------------------


def _fields(call: _Call, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the body as a map of known fields.

    Args:
        call: the request.
        what: they are, for the error.
        known: their names.

    Raises:
        BadRequest: it is no map, or has others.
    """
    body = call.request.body
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise BadRequest(f"the body must be map, not {type(body).__name__.lower()}")
    for key in body:
        if key not in known:
            raise BadRequest(f"bad {what} {key!r:.100}: the body may have {', '.join(known)}")
    return {str(key): value for key, value in body.items()}


def _flag(fields: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BadRequest(f"{name} must be boolean, not {value!r:.100}")
    return value


def _text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise BadRequest(f"{name} must be string, not {value!r:.100}")
    return str(value)


# --- queues -------------------------------------------------------------------------------------


def _put_queue(call: _Call, name: str) -> None:
    fields = _fields(call, "queue property", ("durable", "exclusive", "auto_delete", "arguments"))
    options = QueueOptions(
        durable=_flag(fields, "durable", default=True),
        exclusive=_flag(fields, "exclusive"),
        auto_delete=_flag(fields, "auto_delete"),
        arguments=table(fields.get("arguments"), "arguments"),
    )
    if not name:
        raise BadRequest("declare queue with empty name not allowed")
    vhost = call.session.vhost
    _check_line_ends(name)
    if _forbidden(lambda: _check_reserved(QUEUE, name, vhost.name), call.reply):
        return
    exists = name in vhost.queues
    queue = declare_queue(call.caller, name, options)
    call.reply(Answer(200 if exists else 201, _queue(call, queue)))


def _get_queue(call: _Call, name: str) -> None:
    try:
        queue = find_queue(call.caller, name)
    except Refusal as refusal:
        if refusal.kind is not ErrorKind.NOT_FOUND:
            raise
        text = f"{rendered('queue', name, call.session.vhost.name)} not found"
        call.reply(Answer(404, text))
    else:
        call.reply(Answer(200, _queue(call, queue)))


def _purge_queue(call: _Call, name: str) -> None:
    try:
        count = purge_queue(call.caller, name).count
    except Refusal as refusal:
        if refusal.kind is not ErrorKind.NOT_IMPLEMENTED:
            raise
        text = f"purge not supported by {rendered('queue', name, call.session.vhost.name)}"
        call.reply(Answer(400, text))
    else:
        call.reply(Answer(200, _count(count)))


def _queue(call: _Call, queue: Queue) -> dict[str, Any]:
    node = call.session.connection.broker.events.node
    return {
        "message_count": ULong(queue.ready_count()),
        "consumer_count": UInt(len(queue.consumers)),
        "name": queue.name,
        "vhost": queue.vhost,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "exclusive": queue.owner is not None,
        "type": queue_type(queue.arguments),
        "arguments": shown(queue.arguments),
        "replicas": Array(_STRING, [node]),
        "leader": node,
    }


def _count(count: int) -> dict[str, Any]:
    return {"message_count": ULong(count)}


def _delete_queue(call: _Call, name: str) -> None:
    _check_line_ends(name)
    queue = deletable_queue(call.caller, name, if_unused=False, if_empty=False)

    def answer(count: int) -> None:
        call.reply(Answer(200, _count(count)))

    call.perform(queue_deletion(call.caller, name, queue, answer))


# --- exchanges ----------------------------------------------------------------------------------


def _put_exchange(call: _Call, name: str) -> None:
    known = ("type", "durable", "auto_delete", "internal", "arguments")
    fields = _fields(call, "exchange property", known)
    kind = _text(fields, "type", "direct")
    options = ExchangeOptions(
        durable=_flag(fields, "durable", default=True),
        auto_delete=_flag(fields, "auto_delete"),
        internal=_flag(fields, "internal"),
        arguments=table(fields.get("arguments"), "arguments"),
    )
    vhost = call.session.vhost
    if _forbidden(lambda: vhost.check_not_default(name), call.reply):
        return
    if name not in vhost.exchanges:
        _check_line_ends(name)
        if _forbidden(lambda: _check_reserved(EXCHANGE, name, vhost.name), call.reply):
            return
    declare_exchange(call.caller, name, kind, options)
    call.reply(Answer(204))


def _delete_exchange(call: _Call, name: str) -> None:
    vhost = call.session.vhost

    def check() -> None:
        vhost.check_not_default(name)
        _check_reserved(EXCHANGE, name, vhost.name)

    _check_line_ends(name)
    if _forbidden(check, call.reply):
        return
    exchange = deletable_exchange(call.caller, name)
    call.perform(exchange_deletion(vhost, name, exchange, lambda: call.reply(Answer(204))))


# --- bindings -----------------------------------------------------------------------------------

_ENDS = {"destination_queue": QUEUE, "destination_exchange": EXCHANGE}
_SHORT = {"dstq": QUEUE, "dste": EXCHANGE}
_LOCATIONS = tuple(("src", end, "key", "args") for end in _SHORT)


def _destination(fields: Mapping[str, Any], ends: Mapping[str, str]) -> tuple[str, str]:
    """Return kind and name of the destination of a binding."""
    named = [field for field in ends if field in fields]
    if len(named) != 1:
        raise BadRequest(f"a binding has one of {' and '.join(ends)}")
    return ends[named[0]], _text(fields, named[0])


def _checked(call: _Call, source: str, kind: str, destination: str) -> bool:
    """Return whether the ends of a binding may have it; answer otherwise."""
    vhost = call.session.vhost
    exchanges = [source] if kind == QUEUE else [source, destination]

    def check() -> None:
        for name in exchanges:
            vhost.check_not_default(name)

    for name in (source, destination):
        _check_line_ends(name)
    return not _forbidden(check, call.reply)


def _post_binding(call: _Call) -> None:
    asked = _asked_binding(call)
    if not _checked(call, asked.source, asked.kind, asked.destination):
        return
    try:
        bind(call.caller, asked)
    except Refusal as refusal:
        if refusal.kind is not ErrorKind.NOT_FOUND:
            raise
        # RabbitMQ's status; 404 is for the path.
        call.reply(Answer(400, refusal.text))
    else:
        call.reply(Answer(204))


def _asked_binding(call: _Call) -> BindingRequest:
    fields = _fields(call, "binding field", ("source", *_ENDS, "binding_key", "arguments"))
    kind, destination = _destination(fields, _ENDS)
    return BindingRequest(
        kind,
        destination,
        _text(fields, "source"),
        _text(fields, "binding_key", ""),
        table(fields.get("arguments"), "arguments"),
    )


def _parts(text: str, separator: str, path: str) -> dict[str, str]:
    """Return names and values, `name=value`, of a query or a location."""
    parts: dict[str, str] = {}
    for part in text.split(separator) if text else ():
        name, _, value = part.partition("=")
        parts[name] = unquoted(value, path)
    return parts


def _ends(call: _Call, parts: Mapping[str, str]) -> tuple[Exchange, Queue | Exchange]:
    """Find the ends of the bindings that a query or a location names."""
    kind, destination = _destination(parts, _SHORT)
    source = _text(parts, "src")
    # Both, before either is looked up.
    check_any(call.caller, EXCHANGE, source)
    check_any(call.caller, kind, destination)
    exchange = find_exchange(call.caller, source)
    if kind == QUEUE:
        return exchange, find_queue(call.caller, destination)
    return exchange, find_exchange(call.caller, destination)


def _get_bindings(call: _Call) -> None:
    parts = _parts(call.query, "&", call.request.path)
    source, end = _ends(call, parts)
    key = parts.get("key")
    # Encoded one by one: the answer at the end is only put together.
    found: list[SectionValue] = []
    work = call.session.connection.registry.work

    def looking() -> Slices[None]:
        for each in list((end.bound or {}).values()):
            if each.source is source and key in (None, each.routing_key):
                if len(found) == MANAGEMENT_BINDINGS:
                    raise BadRequest(f"more than {MANAGEMENT_BINDINGS} bindings: name a key")
                found.append(SectionValue(encode(_shown_binding(each))))
                work.charge(MANAGEMENT_SHOWN_UNITS)
            yield

    step = stepped(
        looking(), work, MANAGEMENT_BINDING_UNITS, lambda _: call.reply(Answer(200, found))
    )

    def within() -> bool:
        try:
            return step()
        except BadRequest as error:
            call.reply(Answer(400, str(error)))
            return True

    call.perform(within)


def _shown_binding(binding: Binding) -> dict[str, Any]:
    end = binding.destination
    is_queue = isinstance(end, Queue)
    return {
        "source": binding.source.name,
        "destination_queue" if is_queue else "destination_exchange": end.name,
        "binding_key": binding.routing_key,
        "arguments": shown(binding.arguments),
        "location": location_of(binding),
    }


def location_of(binding: Binding) -> str:
    """Return the path that names a binding."""
    end = binding.destination
    parts = {
        "src": binding.source.name,
        "dstq" if isinstance(end, Queue) else "dste": end.name,
        "key": binding.routing_key,
        "args": digest(binding.arguments),
    }
    return "/bindings/" + ";".join(f"{name}={quote(parts[name], safe='')}" for name in parts)


def _delete_binding(call: _Call, location: str) -> None:
    # The names in it are encoded: the path is split before they are decoded.
    location = call.request.path.partition("?")[0].removeprefix("/bindings/")
    parts = _parts(location, ";", call.request.path)
    if tuple(parts) not in _LOCATIONS:
        raise BadRequest(f"bad binding path segment '{location:.400}'")
    kind, destination = _destination(parts, _SHORT)
    source, key = parts["src"], parts["key"]
    if not _checked(call, source, kind, destination):
        return
    # First, so that a user without the permissions does not learn which bindings exist.
    check_binding(call.caller, kind, destination, source, key, event=UNBOUND)

    def unbound(arguments: Mapping[str, Any] | None) -> None:
        if arguments is not None:
            unbind(call.caller, BindingRequest(kind, destination, source, key, arguments))
        call.reply(Answer(204))

    vhost = call.session.vhost
    ends: Mapping[str, Queue | Exchange] = vhost.queues if kind == QUEUE else vhost.exchanges
    end = ends.get(destination)
    if not parts["args"]:
        unbound({})
    elif end is None:
        unbound(None)
    else:
        work = call.session.connection.registry.work
        looking = _arguments(end, source, key, parts["args"], work)
        call.perform(stepped(looking, work, MANAGEMENT_BINDING_UNITS, unbound))


def _arguments(
    end: Queue | Exchange, source: str, key: str, args: str, work: Work
) -> Slices[Mapping[str, Any] | None]:
    """Return the arguments that a digest stands for; None if no binding has them."""
    for each in list((end.bound or {}).values()):
        if (each.source.name, each.routing_key) == (source, key):
            work.charge(MANAGEMENT_SHOWN_UNITS)
            if digest(each.arguments) == args:
                return each.arguments
        yield
    return None


# --- tokens -------------------------------------------------------------------------------------


def _renew(call: _Call) -> None:
    token = call.request.body
    if not isinstance(token, bytes):
        raise BadRequest(f"the body must be binary: a token, not {type(token).__name__.lower()}")
    reply = call.reply
    renew_secret(
        call.session.connection,
        token.decode(errors="replace"),
        lambda: reply(Answer(204)),
        lambda text: reply(Answer(400, text)),
    )
