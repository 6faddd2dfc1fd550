"""Conditions of AMQP 1.0 as the errors of the client, which have reply codes in every version.

| condition | closes the connection | ends a session or a link |
|---|---|---|
| amqp:not-found | 530, of the virtual host | 404 |
| amqp:unauthorized-access | 530 | 403 |
| amqp:resource-limit-exceeded | 506 | 506 |
| amqp:connection:forced, amqp:link:detach-forced | 320 | 320 |
| others | see `_CODES` | see `_CODES` |

The text of the error begins with the condition.
"""

from __future__ import annotations

from harebell.client.errors import (
    AMQPConnectionClosed,
    ChannelClosed,
    closed_channel,
    closed_connection,
)
from harebell.wire.v09.reply_codes import NAMES
from harebell.wire.v1.composites import Error

UNAUTHORIZED = "amqp:unauthorized-access"
NOT_FOUND = "amqp:not-found"
_INTERNAL = 541
_NOT_ALLOWED = 530

_CODES = {
    "amqp:internal-error": _INTERNAL,
    NOT_FOUND: 404,
    UNAUTHORIZED: 403,
    "amqp:decode-error": 502,
    "amqp:resource-limit-exceeded": 506,
    "amqp:not-allowed": _NOT_ALLOWED,
    "amqp:invalid-field": 502,
    "amqp:not-implemented": 540,
    "amqp:resource-locked": 405,
    "amqp:precondition-failed": 406,
    "amqp:resource-deleted": 404,
    "amqp:illegal-state": 503,
    "amqp:frame-size-too-small": 501,
    "amqp:connection:forced": 320,
    "amqp:connection:framing-error": 501,
    "amqp:session:window-violation": 503,
    "amqp:session:errant-link": 503,
    "amqp:session:handle-in-use": 504,
    "amqp:session:unattached-handle": 504,
    "amqp:link:detach-forced": 320,
    "amqp:link:transfer-limit-exceeded": 503,
    "amqp:link:message-size-exceeded": 311,
    "amqp:link:stolen": 405,
    "amqp:transaction:unknown-id": 406,
    "amqp:transaction:rollback": 406,
    "amqp:transaction:timeout": 406,
}
_STATUS = {400: 406, 403: 403, 404: 404, 405: 405, 409: 406}
"""Codes for the status of a refused request to the management node."""


def text_of(error: Error | None) -> str:
    """Return the condition and the description."""
    if error is None:
        return "the broker gave no reason"
    return f"{error.condition} - {error.description}" if error.description else error.condition


def ended_connection(error: Error | None) -> AMQPConnectionClosed:
    """Return the exception for a close of the broker."""
    condition = "" if error is None else str(error.condition)
    code = _CODES.get(condition, _INTERNAL)
    if condition in (NOT_FOUND, UNAUTHORIZED):
        code = _NOT_ALLOWED
    return closed_connection(code, text_of(error))


def ended_channel(error: Error | None) -> ChannelClosed:
    """Return the exception for an end or a detach of the broker."""
    condition = "" if error is None else str(error.condition)
    return closed_channel(_CODES.get(condition, _INTERNAL), text_of(error))


def refused_request(status: int, text: str) -> ChannelClosed:
    """Return the exception for a request that the management node has refused."""
    code = _STATUS.get(status, status)
    name = NAMES.get(code)
    return closed_channel(code, f"{name} - {text}" if name else text)
