"""Commands for messages: browse those of a queue, publish and get one over HTTP."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import EXCHANGES, QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.commands.queues import find_readable
from harebell.admin.context import (
    AdminContext,
    CommandRefused,
    Unavailable,
    checked_table,
)
from harebell.admin.limits import (
    BROWSE_PAYLOAD_BYTES,
    BROWSE_ROW_UNITS,
    HTTP_CHUNK_BYTES,
    HTTP_GET_BYTES,
    HTTP_GET_MESSAGES,
)
from harebell.admin.long_text import LongText
from harebell.admin.looking import Looking
from harebell.admin.message_row import BASE64, STRING
from harebell.admin.rows.common import time_text
from harebell.admin.streaming import HeldRows, RowStream
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, ended

if TYPE_CHECKING:
    from harebell.front.operations.without_connection import Getting, GotMessage
    from harebell.model.editor import Editor
    from harebell.model.filter.condition import Filter
    from harebell.model.queue.browse import BrowseCursor, Browsed, Start

FIRST = "first"
LAST = "last"
READ = "read"
READY = "ready"
ALL = "all"
_MS = 1000
_BYTES_PER_UNIT = 256
_SHOWN_SIZE = 16
"""Times as large as a header on the wire its name and value are as objects, and more."""
_DIGITS = 18
NO_PROPERTIES: dict[str, Any] = {}
_OCTET_MAX = 255
_NUMBERS = {"delivery_mode": _OCTET_MAX, "priority": _OCTET_MAX, "timestamp": 2**64 - 1}
_DIGITS_MAX = 20
_SHOWN_CHARACTERS = 60
_TEXTS = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration"),
    *("message_id", "type", "user_id", "app_id", "cluster_id"),
)
_BASE64_GROUP = 4
_ACKNOWLEDGE = "ack_requeue_false"
_ACKNOWLEDGE_REQUEUE = "ack_requeue_true"
_REJECT = "reject_requeue_false"
_REJECT_REQUEUE = "reject_requeue_true"
_MODES = (_ACKNOWLEDGE, _ACKNOWLEDGE_REQUEUE, _REJECT_REQUEUE, _REJECT)
_ENCODINGS = ("auto", "base64")

Exact = Annotated[
    bool, Argument("Also the types of headers, and the headers as publishing takes them.")
]
Encoding = Annotated[
    str,
    Argument(
        "Show a body as text if it is UTF-8, or always as base64.", choices=("auto", "base64")
    ),
]
Truncate = Annotated[int, Argument("Most bytes of a body to show.", "BYTES")]
Where = Annotated[str, Argument("Only messages for which this condition is true.", "CONDITION")]
_BROWSED = (
    *("offset", "timestamp", "exchange", "routing_key", "redelivered", "delivery_count", "state"),
    *("properties", "payload_bytes", "payload", "payload_encoding"),
)
"""The columns of a message of a queue."""


def condition_of(where: str) -> Filter | None:
    """Return the filter of an argument; None for all messages.

    Raises:
        CommandRefused: it is invalid.
    """
    from harebell.model.filter.condition import compile_filter
    from harebell.model.filter.errors import FilterError

    if not where.strip():
        return None
    try:
        return compile_filter(where)
    except FilterError as error:
        raise CommandRefused(str(error)) from None


def start_of(text: str, now: int) -> Start:
    """Return the start that an argument asks for.

    Args:
        text: "first", "last", an offset, a negative number for so many before the end, a time, or
            how long ago, such as "5m".
        now: milliseconds since 1970.

    Raises:
        CommandRefused: it is none of these.
    """
    from harebell.model.filter.comparison import time_of
    from harebell.model.filter.parser import seconds_of
    from harebell.model.queue.browse import Start

    if text == FIRST:
        return Start()
    if text == LAST:
        return Start(-1, 0, 1)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and int(digits):
        return Start(-1, 0, int(digits)) if digits != text else Start(int(text))
    if digits == text == "0":
        return Start()
    ago = seconds_of(text)
    if ago is not None:
        return Start(-1, max(now - int(ago * _MS), 1))
    moment = time_of(text) if not digits.isdigit() else None
    if moment is not None:
        return Start(-1, max(int(moment.timestamp() * _MS), 1))
    raise CommandRefused(
        f"cannot begin at '{text}': say first, last, an offset, -10 for the last ten, a time such "
        "as 2026-01-31T12:00:00Z, or how long ago, such as 5m"
    )


@QUEUES.command(
    "GET /api/queues/{vhost}/{name}/browse",
    tag=MANAGEMENT,
    row=_BROWSED,
    shown=("offset", "exchange", "routing_key", "payload_bytes", "payload"),
)
def browse(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    where: Where = "",
    from_: Annotated[
        str,
        Argument(
            "Where to begin: first, last, an offset, -10 for the last ten, a time, or how long "
            "ago, such as 5m.",
            "PLACE",
        ),
    ] = FIRST,
    limit: Annotated[int, Argument("Most messages to show; 0 for all.", "NUMBER")] = 0,
    state: Annotated[
        str,
        Argument(
            "Show also what is delivered, leased, or waits for a retry.",
            choices=(READY, ALL),
        ),
    ] = READY,
    encoding: Encoding = "auto",
    truncate: Truncate = 50_000,
    exact: Exact = False,
) -> RowStream:
    """Show the messages of a queue without taking them."""
    where_, queue = find_readable(context, vhost, name)
    if limit < 0:
        raise CommandRefused(f"the limit is {limit}: say how many messages, or 0 for all")
    check_truncate(truncate)
    condition = condition_of(where)
    start = start_of(from_, context.broker.clock.ms)
    cursor = queue.browse(start, ready_only=state == READY)
    looking = Looking(context, where_, queue, condition)
    row = partial(browsed_row, where_.editor, encoding=encoding, truncate=truncate, exact=exact)
    return RowStream(browsed_rows(looking, cursor, limit, truncate, row))


def check_truncate(truncate: int) -> None:
    """Refuse a number of bytes that a body cannot be truncated to.

    Raises:
        CommandRefused: it is out of range.
    """
    if not 0 <= truncate <= BROWSE_PAYLOAD_BYTES:
        raise CommandRefused(
            f"a body is truncated to 0 up to {BROWSE_PAYLOAD_BYTES} bytes, not to {truncate}"
        )


def browsed_rows(
    looking: Looking,
    cursor: BrowseCursor,
    limit: int,
    truncate: int,
    row: Callable[[Browsed], Row],
) -> Iterator[list[Row]]:
    """Yield the rows of selected messages; one step is one slice of work."""
    left = limit or -1
    rows: list[Row] = []
    for browsed in looking.selected(cursor):
        if browsed is None:
            yield rows
            rows = []
            continue
        rows.append(row(browsed))
        shown_bytes = min(len(browsed.message.body), truncate)
        looking.units += BROWSE_ROW_UNITS + shown_bytes // _BYTES_PER_UNIT
        left -= 1
        if not left:
            break
    looking.charge()
    if rows:
        yield rows


def browsed_row(
    editor: Editor, browsed: Browsed, *, encoding: str, truncate: int, exact: bool
) -> Row:
    """Return the row of a message that a command has come to."""
    from harebell.admin.message_row import exact_headers, message_row

    moment = browsed.message.timestamp
    return {
        "offset": browsed.position,
        "timestamp": time_text(moment) if moment else "",
        "redelivered": browsed.redelivered,
        "delivery_count": browsed.deliveries,
        "state": browsed.state,
        **message_row(editor, browsed.message, encoding, truncate),
        **(exact_headers(editor, browsed.message) if exact else {}),
    }


# --- publish --------------------------------------------------------------------------------------


@EXCHANGES.over_http("POST /api/exchanges/{vhost}/{name}/publish", tag=MANAGEMENT, status=200)
def publish(
    context: AdminContext,
    vhost: str,
    name: str,
    routing_key: str,
    payload: Annotated[str, Argument(long=True)],
    payload_encoding: str = "string",
    properties: dict[str, Any] = NO_PROPERTIES,
) -> Slices[Row]:
    """Publish a message; the answer says whether its queues took it."""
    from harebell.front.operations import without_connection
    from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties

    body = yield from decoded_payload(payload, payload_encoding)
    caller = context.caller(context.vhost(vhost))
    if context.registry.publishers.short_of():
        # Publishers over AMQP are blocked now, after a message of each connection.
        reason = context.registry.publishers.reason()
        raise Unavailable(f"messages are not taken now: the broker is {reason}; try again later")
    size = len(routing_key.encode(errors="surrogatepass"))
    if size > NAME_BYTES:
        raise CommandRefused(
            f"the routing key has {size} bytes, at most {NAME_BYTES} are allowed: shorten it"
        )
    given = checked_properties(properties)
    try:
        encoded = parse_properties(encode_properties(BasicProperties(**given)))
    except (ValueError, TypeError) as error:
        raise CommandRefused(f"the message cannot be encoded: {error}") from None
    return {
        "routed": without_connection.publish(
            context.door(), caller, name, routing_key, encoded, body
        )
    }


def decoded_payload(payload: str | LongText, encoding: str) -> Slices[bytes]:
    """Return the body of a message, which is made of its payload piece by piece.

    Raises:
        CommandRefused: the payload is not in the encoding.
    """
    from harebell.kernels.bodies import GatheredBody

    if encoding not in (STRING, BASE64):
        raise CommandRefused(f"payload_encoding is '{encoding}': it is string or base64")
    pieces = payload.taken() if isinstance(payload, LongText) else _cut(payload)
    decoded = _of_base64(pieces) if encoding == BASE64 else map(_of_text, pieces)
    body = GatheredBody()
    try:
        for each in decoded:
            body.add(each)
            yield
    except ValueError as error:
        raise CommandRefused(f"the payload is not base64: {error}") from None
    return body.take()


def _cut(text: str) -> Iterator[str]:
    return (text[at : at + HTTP_CHUNK_BYTES] for at in range(0, len(text), HTTP_CHUNK_BYTES))


def _of_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _of_base64(pieces: Iterable[str]) -> Iterator[bytes]:
    """Decode pieces of base64, which may be cut anywhere.

    Raises:
        ValueError: it is none.
    """
    rest = ""
    for piece in pieces:
        text = rest + piece
        # What may be the last group waits: only that may have padding.
        whole = (len(text) - 1) // _BASE64_GROUP * _BASE64_GROUP
        groups, rest = text[:whole], text[whole:]
        if groups.endswith("="):
            raise ValueError("Excess data after padding")
        yield b64decode(groups, validate=True)
    yield b64decode(rest, validate=True)


def checked_properties(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the properties of a message; unknown ones are ignored, as in RabbitMQ.

    Raises:
        CommandRefused: one of them is of another type, or its number is out of range.
    """
    checked_properties: dict[str, Any] = {}
    for name in _TEXTS:
        if given.get(name) is not None:
            checked_properties[name] = _text(name, given[name])
    for name, limit in _NUMBERS.items():
        if given.get(name) is not None:
            checked_properties[name] = _number(name, given[name], limit)
    headers = given.get("headers") or {}
    if not isinstance(headers, dict):
        raise CommandRefused("properties.headers is no object")
    if headers:
        checked_properties["headers"] = checked_table(headers, "properties.headers")
    return checked_properties


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise CommandRefused(f"properties.{name} is no text: {_short(value)}")
    return value


def _number(name: str, value: Any, limit: int) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS_MAX:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise CommandRefused(f"properties.{name} is no number from 0 to {limit}: {_short(value)}")
    return value


def _short(value: Any) -> str:
    return repr(value)[:_SHOWN_CHARACTERS]


# --- get ------------------------------------------------------------------------------------------


@QUEUES.over_http("POST /api/queues/{vhost}/{name}/get", tag=MANAGEMENT, status=200)
def get(
    context: AdminContext,
    vhost: str,
    name: str,
    count: int = 1,
    ackmode: str | None = None,
    requeue: bool | None = None,
    encoding: str = "auto",
    truncate: int | None = None,
    exact: bool = False,
) -> Slices[HeldRows]:
    """Get messages of a queue, and acknowledge, reject or requeue them.

    They are settled when the whole answer was sent, and become ready again if its client is gone.
    A negative count gets all. At most HTTP_GET_MESSAGES messages, and about HTTP_GET_BYTES of
    bodies and properties, are returned.
    """
    from harebell.front.operations.without_connection import Getting

    caller = context.caller(context.vhost(vhost))
    mode = _mode(ackmode, requeue)
    if encoding not in _ENCODINGS:
        raise CommandRefused(f"encoding is '{encoding}': it is one of {', '.join(_ENCODINGS)}")
    if truncate is not None and truncate < 0:
        raise CommandRefused(f"truncate is {truncate}: give a number of bytes")
    getting = Getting(context.door(), caller, name)
    limit = min(count, HTTP_GET_MESSAGES) if count >= 0 else HTTP_GET_MESSAGES
    return _got(_Held(getting, mode), limit, encoding, truncate, exact=exact)


def _mode(ackmode: str | None, requeue: bool | None) -> str:
    """Return the mode; older clients say only whether to requeue."""
    if ackmode is None and requeue is not None:
        return _ACKNOWLEDGE_REQUEUE if requeue else _ACKNOWLEDGE
    if ackmode not in _MODES:
        raise CommandRefused(f"ackmode is '{ackmode}': it is one of {', '.join(_MODES)}")
    return ackmode


class _Held:
    """The messages of one request, which are unacknowledged until its client has the answer.

    Args:
        getting: takes them, and settles them.
        mode: how they are settled then, one of _MODES.
    """

    def __init__(self, getting: Getting, mode: str) -> None:
        self.getting = getting
        self._mode = mode
        self._positions: list[int] = []

    def take(self) -> GotMessage | None:
        """Take the next message; None if there is none."""
        taken = self.getting.take()
        if taken is not None:
            self._positions.append(taken.position)
        return taken

    def end(self, delivered: bool) -> Slices[None]:
        """Settle the messages as the client asked for; those it has not got become ready again."""
        from harebell.model import transaction

        kinds = {
            _ACKNOWLEDGE: transaction.ACCEPT,
            _ACKNOWLEDGE_REQUEUE: transaction.REQUEUE_RETURNED,
            _REJECT_REQUEUE: transaction.REQUEUE,
            _REJECT: transaction.REJECT,
        }
        kind = kinds[self._mode] if delivered else transaction.REQUEUE
        positions, self._positions = self._positions, []
        for position in positions:
            self.getting.settle(position, kind)
            yield
        if positions:
            self.getting.end()


def _got(
    held: _Held, limit: int, encoding: str, truncate: int | None, *, exact: bool
) -> Slices[HeldRows]:
    rows: list[Row] = []
    size = 0
    try:
        while len(rows) < limit and size < HTTP_GET_BYTES:
            yield from held.getting.fetched()
            taken = held.take()
            if taken is None:
                break
            size += len(taken.message.body) + _SHOWN_SIZE * len(taken.message.raw)
            rows.append((yield from _row(taken, encoding, truncate, exact=exact)))
            yield
    except BaseException:
        # Also when the request is given up. What was taken must not stay unacknowledged.
        ended(held.end(False))
        raise
    return HeldRows(rows, held.end)


def _row(taken: GotMessage, encoding: str, truncate: int | None, *, exact: bool) -> Slices[Row]:
    from harebell.admin.message_row import exact_headers, long_message_row
    from harebell.front.convert import EDITOR

    message = taken.message
    shown = len(message.body) if truncate is None else truncate
    row = yield from long_message_row(EDITOR, message, encoding, shown)
    row["redelivered"] = taken.redelivered
    row["message_count"] = taken.left
    if exact:
        row.update(exact_headers(EDITOR, message))
    return row
