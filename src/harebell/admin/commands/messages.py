"""Commands for messages: browse those of a queue, publish and get one over HTTP."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import EXCHANGES, QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.commands.exchanges import find_exchange
from harebell.admin.commands.queues import find_queue
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.streaming import RowStream
from harebell.base.limits import (
    BROWSE_MESSAGE_UNITS,
    BROWSE_PAYLOAD_BYTES,
    BROWSE_ROW_UNITS,
    BROWSE_SLICE_UNITS,
    HTTP_GET_BYTES,
    HTTP_GET_MESSAGES,
    WORK_SLICE_UNITS,
)
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.model.filter import Filter, Subject
    from harebell.model.queue.browse import BrowseCursor, Browsed, Start
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

FIRST = "first"
LAST = "last"
READ = "read"
READY = "ready"
ALL = "all"
_MS = 1000
_BYTES_PER_UNIT = 256
_DIGITS = 18
NO_PROPERTIES: dict[str, Any] = {}
_PERSISTENT = 2
_OCTET_MAX = 255
_TEXTS = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration"),
    *("message_id", "type", "user_id", "app_id"),
)
_ACKNOWLEDGE = "ack_requeue_false"
_ACKNOWLEDGE_REQUEUE = "ack_requeue_true"
_MODES = (
    *(_ACKNOWLEDGE, _ACKNOWLEDGE_REQUEUE),
    *("reject_requeue_true", "reject_requeue_false"),
)
_ENCODINGS = ("auto", "base64")

Where = Annotated[str, Argument("Only messages for which this condition is true.", "CONDITION")]


class BrowsedRow(TypedDict):
    """A message of a queue."""

    offset: int
    timestamp: str
    exchange: str
    routing_key: str
    redelivered: bool
    delivery_count: int
    state: str
    properties: dict[str, Any]
    payload_bytes: int
    payload: str
    payload_encoding: str


def condition_of(where: str) -> Filter | None:
    """Return the filter of an argument; None for all messages.

    Raises:
        CommandRefused: it is invalid.
    """
    from harebell.model.filter import FilterError, compile_filter

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
    from harebell.model.filter.condition import seconds_of
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
    row=BrowsedRow,
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
    encoding: Annotated[
        str,
        Argument(
            "Show a body as text if it is UTF-8, or always as base64.", choices=("auto", "base64")
        ),
    ] = "auto",
    truncate: Annotated[int, Argument("Most bytes of a body to show.", "BYTES")] = 50_000,
) -> RowStream:
    """Show the messages of a queue without taking them."""
    context.check_permission(context.vhost(vhost), READ, "queue", name)
    where_, queue = find_queue(context, vhost, name)
    if limit < 0:
        raise CommandRefused(f"the limit is {limit}: say how many messages, or 0 for all")
    if not 0 <= truncate <= BROWSE_PAYLOAD_BYTES:
        raise CommandRefused(
            f"a body is truncated to 0 up to {BROWSE_PAYLOAD_BYTES} bytes, not to {truncate}"
        )
    condition = condition_of(where)
    start = start_of(from_, context.broker.clock.ms)
    cursor = queue.browse(start, ready_only=state == READY)
    browsing = _Browsing(context, where_, queue, condition, limit)
    return RowStream(browsing.batches(cursor, encoding, truncate))


class _Browsing:
    """The rows of one command.

    Args:
        context: the broker.
        vhost: the vhost of the queue.
        queue: the queue whose messages are shown; it is not changed.
        condition: selects messages; None for all.
        limit: most rows; 0 for no limit.
    """

    def __init__(
        self,
        context: AdminContext,
        vhost: VHost,
        queue: Queue,
        condition: Filter | None,
        limit: int,
    ) -> None:
        from harebell.model.filter import Subject

        self._broker = context.broker
        self._vhost = vhost
        self._queue = queue
        self._condition = condition
        self._editor = vhost.editor
        self._subject: Subject = Subject(vhost.editor)
        self._left = limit or -1

    def batches(self, cursor: BrowseCursor, encoding: str, truncate: int) -> Iterator[list[Row]]:
        """Yield rows; one step is one slice of work."""
        work = self._broker.work
        rows: list[Row] = []
        units = 0
        while self._left and cursor.next() >= 0:
            arrived: list[bool] = []
            if cursor.far(lambda arrived=arrived: arrived.append(True)):  # type: ignore[misc]
                yield from self._wait(rows, arrived)
                rows = []
            browsed = cursor.read()
            units += BROWSE_MESSAGE_UNITS
            if browsed is not None and self._shows(browsed):
                rows.append(self._row(browsed, encoding, truncate))
                self._left -= 1
                shown_bytes = min(len(browsed.message.body), truncate)
                units += BROWSE_ROW_UNITS + shown_bytes // _BYTES_PER_UNIT
            if browsed is not None and self._condition is not None:
                units += self._condition.units(browsed.message)
            if units >= BROWSE_SLICE_UNITS:
                work.charge(units)
                units = 0
                yield rows
                rows = []
                self._check()
        work.charge(units)
        if rows:
            yield rows

    def _wait(self, rows: list[Row], arrived: list[bool]) -> Iterator[list[Row]]:
        """Wait until a large message is in memory."""
        yield rows
        while not arrived:
            self._check()
            self._broker.work.charge(WORK_SLICE_UNITS)
            yield []

    def _check(self) -> None:
        if self._queue.deleted:
            raise CommandRefused(
                f"queue '{self._queue.name}' in vhost '{self._vhost.name}' was deleted meanwhile"
            )

    def _shows(self, browsed: Browsed) -> bool:
        from harebell.model.filter import FilterError

        message = browsed.message
        if message.due and message.due <= self._broker.clock.steady:
            return False
        if self._condition is None:
            return True
        self._subject.now = self._broker.clock.ms
        self._subject.is_now(
            message,
            browsed.position,
            browsed.deliveries,
            browsed.state,
            redelivered=browsed.redelivered,
        )
        try:
            return self._condition.selects(self._subject)
        except FilterError as error:
            raise CommandRefused(f"message {browsed.position}: {error}") from None

    def _row(self, browsed: Browsed, encoding: str, truncate: int) -> Row:
        from harebell.admin.message_row import message_row

        moment = browsed.message.timestamp
        return {
            "offset": browsed.position,
            "timestamp": time_text(moment) if moment else "",
            "redelivered": browsed.redelivered,
            "delivery_count": browsed.deliveries,
            "state": browsed.state,
            **message_row(self._editor, browsed.message, encoding, truncate),
        }


def time_text(ms: int) -> str:
    """Return milliseconds since 1970 as a time in UTC."""
    text = datetime.fromtimestamp(ms / _MS, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


# --- publish --------------------------------------------------------------------------------------


@EXCHANGES.over_http("POST /api/exchanges/{vhost}/{name}/publish", tag=MANAGEMENT, status=200)
def publish(
    context: AdminContext,
    vhost: str,
    name: str,
    routing_key: str,
    payload: str,
    payload_encoding: str = "string",
    properties: dict[str, Any] = NO_PROPERTIES,
) -> Row:
    """Publish a message; the answer says whether it reached a queue."""
    from harebell.front.convert.editor import composed

    where = context.vhost(vhost)
    context.check_permission(where, "write", "exchange", name)
    _, exchange = find_exchange(context, vhost, name)
    if exchange.internal:
        raise CommandRefused(f"cannot publish to internal exchange '{name}'")
    body = _decoded(payload, payload_encoding)
    try:
        message = composed(name, routing_key, body, checked_properties(context, properties))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CommandRefused(f"the message cannot be encoded: {error}") from None
    queues = where.router.route(exchange, message)
    for queue in queues:
        queue.publish(message)
    if queues and properties.get("delivery_mode") == _PERSISTENT:
        context.broker.commit.urgent = True
    return {"routed": bool(queues)}


def _decoded(payload: str, encoding: str) -> bytes:
    if encoding == "string":
        return payload.encode("utf-8", "surrogatepass")
    if encoding != "base64":
        raise CommandRefused(f"payload_encoding is '{encoding}': it is string or base64")
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CommandRefused(f"the payload is not base64: {error}") from None


def checked_properties(context: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the properties of a message; unknown ones are ignored, as in RabbitMQ."""
    from datetime import UTC, datetime

    found: dict[str, Any] = {}
    for name in _TEXTS:
        if given.get(name) is not None:
            found[name] = _text(name, given[name])
    for name in ("delivery_mode", "priority"):
        if given.get(name) is not None:
            found[name] = _number(name, given[name], _OCTET_MAX)
    if given.get("timestamp") is not None:
        seconds = _number("timestamp", given["timestamp"], 2**63)
        try:
            found["timestamp"] = datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            raise CommandRefused(f"properties.timestamp is {seconds}: give seconds") from None
    headers = given.get("headers") or {}
    if not isinstance(headers, dict):
        raise CommandRefused("properties.headers is no object")
    if headers:
        found["headers"] = headers
    user = found.get("user_id")
    if user is not None and context.actor is not None and user != context.actor.name:
        raise CommandRefused(
            f"user_id property set to '{user}' but authenticated user was '{context.actor.name}'"
        )
    return found


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise CommandRefused(f"properties.{name} is no text: {value!r}")
    return value


def _number(name: str, value: Any, limit: int) -> int:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise CommandRefused(f"properties.{name} is no number from 0 to {limit}: {value!r}")
    return value


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
) -> Slices[list[Row]]:
    """Get messages of a queue, and acknowledge, reject or requeue them.

    A negative count gets all. At most HTTP_GET_MESSAGES messages, and about HTTP_GET_BYTES of
    bodies, are returned.
    """
    where = context.vhost(vhost)
    mode = _mode(ackmode, requeue)
    if encoding not in _ENCODINGS:
        raise CommandRefused(f"encoding is '{encoding}': it is one of {', '.join(_ENCODINGS)}")
    if truncate is not None and truncate < 0:
        raise CommandRefused(f"truncate is {truncate}: give a number of bytes")
    context.check_permission(where, "read", "queue", name)
    queue = where.queue(name)
    limit = min(count, HTTP_GET_MESSAGES) if count >= 0 else HTTP_GET_MESSAGES
    return _got(queue, limit, mode, encoding, truncate)


def _mode(ackmode: str | None, requeue: bool | None) -> str:
    """Return the mode; older clients say only whether to requeue."""
    if ackmode is None and requeue is not None:
        return _ACKNOWLEDGE_REQUEUE if requeue else _ACKNOWLEDGE
    if ackmode not in _MODES:
        raise CommandRefused(f"ackmode is '{ackmode}': it is one of {', '.join(_MODES)}")
    return ackmode


def _got(
    queue: Queue, limit: int, mode: str, encoding: str, truncate: int | None
) -> Slices[list[Row]]:
    rows: list[Row] = []
    positions: list[int] = []
    size = 0
    try:
        while len(rows) < limit and size < HTTP_GET_BYTES:
            found = queue.get()
            if found is None:
                break
            message, position, redelivered = found
            positions.append(position)
            size += len(message.body)
            rows.append(_row(message, redelivered, queue.ready_count(), encoding, truncate))
            yield
    finally:
        # Also when the request is given up: a message must not stay unacknowledged.
        for position in positions:
            _settle(queue, position, mode)
        if positions:
            queue.sync_soon()
            queue.drain()
    return rows


def _settle(queue: Queue, position: int, mode: str) -> None:
    if mode == _ACKNOWLEDGE:
        queue.settle(position)
    elif mode == _ACKNOWLEDGE_REQUEUE:
        queue.give_back(position)
    elif mode == "reject_requeue_true":
        queue.requeue(position)
    else:
        queue.reject(position)


def _row(
    message: Message, redelivered: bool, ready: int, encoding: str, truncate: int | None
) -> Row:
    payload = message.body if truncate is None else message.body[:truncate]
    shown, kind = _shown(payload, encoding)
    return {
        "payload_bytes": len(message.body),
        "redelivered": redelivered,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "message_count": ready,
        "properties": _shown_properties(message),
        "payload": shown,
        "payload_encoding": kind,
    }


def _shown(payload: bytes, encoding: str) -> tuple[str, str]:
    if encoding == "auto":
        try:
            return payload.decode(), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(payload).decode(), "base64"


def _shown_properties(message: Message) -> Row:
    from harebell.admin.rows.common import as_json
    from harebell.front.convert import EDITOR, headers_of

    found = dict(EDITOR.properties_of(message))
    if "headers" in found:
        found["headers"] = as_json(dict(headers_of(message)))
    if "timestamp" in found:
        found["timestamp"] = int(found["timestamp"].timestamp())
    return found
