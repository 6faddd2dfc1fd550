"""The method handlers and error codes that 0-8 and 0-9 share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.errors import ErrorKind
from harebell.front.amqp_0_8 import access as older_access
from harebell.front.amqp_0_8 import basic as older_basic
from harebell.front.amqp_0_8 import dtx, test
from harebell.front.amqp_0_8 import exchange as older_exchange
from harebell.front.amqp_0_8 import flow as older_flow
from harebell.front.amqp_0_8 import queue as older_queue
from harebell.front.amqp_0_9_1 import dispatch, file, stream, tunnel
from harebell.front.amqp_0_9_1.connection_states import (
    CONNECTION,
    METHOD_EVENTS,
    ConnectionTable,
    without,
)
from harebell.front.common.errors import Errors
from harebell.wire.v09.reply_codes import HARD, NAMES
from harebell.wire.v09.spec import ProtocolSpec

Handler = Callable[[Any, Any], object]
HANDLERS: dict[type, Handler] = {}
for _file in (
    *(dispatch, older_access, older_basic, older_exchange, older_flow, older_queue),
    *(dtx, file, stream, test, tunnel),
):
    HANDLERS.update(_file.HANDLERS)

ERRORS = Errors(
    {code: name for code, name in NAMES.items() if code != 505} | {507: HARD[530]},
    # There is no code for a frame out of order; that of a wrong sequence is the nearest.
    changes={505: (503, True)},
    # Without a declared queue, an empty name breaks a rule of the specification.
    kinds={ErrorKind.NO_QUEUE_NAMED: (530, True)},
)
"""Errors as 0-8 has them, and 0-9; 406 is in neither document, and every broker sends it."""


def handlers_of(spec: ProtocolSpec, handlers: Mapping[type, Handler]) -> dict[type, Handler]:
    """Return the handlers of the methods that clients of a version send."""
    types = {each.type for each in spec.methods if each.from_client}
    return {kind: handler for kind, handler in handlers.items() if kind in types}


def states_of(spec: ProtocolSpec) -> ConnectionTable:
    """Return the states of a connection, with the methods that a version has."""
    names = {each.name for each in spec.methods}
    return without(
        CONNECTION, [event for name, event in METHOD_EVENTS.items() if name not in names]
    )
