"""Publish and get messages over HTTP, for tests and operators."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.admin.catalog import API_MESSAGES
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.base.limits import HTTP_GET_BYTES, HTTP_GET_MESSAGES
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.model.queue.contract import Queue

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


# --- publish --------------------------------------------------------------------------------------


@API_MESSAGES.command("POST /api/exchanges/{vhost}/{name}/publish", tag=MANAGEMENT, status=200)
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
    exchange = where.exchanges.get(name)
    if exchange is None:
        raise missing(f"no exchange '{name}' in vhost '{where.name}'")
    if exchange.internal:
        raise CommandRefused(f"cannot publish to internal exchange '{name}'")
    body = _body(payload, payload_encoding)
    try:
        message = composed(name, routing_key, body, _properties(context, properties))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CommandRefused(f"the message cannot be encoded: {error}") from None
    queues = where.router.route(exchange, message)
    for queue in queues:
        queue.publish(message)
    if queues and properties.get("delivery_mode") == _PERSISTENT:
        context.broker.commit.urgent = True
    return {"routed": bool(queues)}


def _body(payload: str, encoding: str) -> bytes:
    if encoding == "string":
        return payload.encode("utf-8", "surrogatepass")
    if encoding != "base64":
        raise CommandRefused(f"payload_encoding is '{encoding}': it is string or base64")
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CommandRefused(f"the payload is not base64: {error}") from None


def _properties(context: AdminContext, given: Mapping[str, Any]) -> dict[str, Any]:
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


def _number(name: str, value: Any, most: int) -> int:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise CommandRefused(f"properties.{name} is no number from 0 to {most}: {value!r}")
    return value


# --- get ------------------------------------------------------------------------------------------


@API_MESSAGES.command("POST /api/queues/{vhost}/{name}/get", tag=MANAGEMENT, status=200)
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
    most = min(count, HTTP_GET_MESSAGES) if count >= 0 else HTTP_GET_MESSAGES
    return _got(queue, most, mode, encoding, truncate)


def _mode(ackmode: str | None, requeue: bool | None) -> str:
    """Return the mode; older clients say only whether to requeue."""
    if ackmode is None and requeue is not None:
        return _ACKNOWLEDGE_REQUEUE if requeue else _ACKNOWLEDGE
    if ackmode not in _MODES:
        raise CommandRefused(f"ackmode is '{ackmode}': it is one of {', '.join(_MODES)}")
    return ackmode


def _got(
    queue: Queue, most: int, mode: str, encoding: str, truncate: int | None
) -> Slices[list[Row]]:
    rows: list[Row] = []
    positions: list[int] = []
    size = 0
    try:
        while len(rows) < most and size < HTTP_GET_BYTES:
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
