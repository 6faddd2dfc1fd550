"""Which connection serves which version of AMQP.

A version is served if it is listed here: the arrival of a peer (`harebell.front.arrival`) looks up
its header's version and continues with the connection that the opener makes. The code of a version
other than 0-9-1 is imported with its first peer: together it is a third of a broker that has just
started, and most brokers never need it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harebell.front.amqp_0_9_1 import Connection
from harebell.front.amqp_0_9_1.profile_0_9_1 import PROFILE_0_9_1
from harebell.front.common.base_connection import BaseConnection
from harebell.wire import VERSION_1_0, Sniffed

_connection: Callable[..., BaseConnection] = Connection


def _amqp_0_9(*about: Any) -> BaseConnection:
    from harebell.front.amqp_0_8.profiles import PROFILE_0_9

    return _connection(*about, profile=PROFILE_0_9)


def _amqp_0_8(*about: Any) -> BaseConnection:
    from harebell.front.amqp_0_8.profiles import PROFILE_0_8

    return _connection(*about, profile=PROFILE_0_8)


def _amqp_0_10(*about: Any) -> BaseConnection:
    from harebell.front.amqp_0_10 import open_connection

    return open_connection(*about)


def _amqp_0_10_transitional(*about: Any) -> BaseConnection:
    from harebell.front.amqp_0_10_transitional.profile import PROFILE_0_10T

    return _connection(*about, profile=PROFILE_0_10T)


def _amqp_1_0(*about: Any) -> BaseConnection:
    from harebell.front.amqp_1_0 import open_connection

    return open_connection(*about, sasl=False)


def _amqp_1_0_sasl(*about: Any) -> BaseConnection:
    from harebell.front.amqp_1_0 import open_connection

    return open_connection(*about, sasl=True)


OPENERS: dict[str, Callable[..., BaseConnection]] = {
    "0-9-1": partial(_connection, profile=PROFILE_0_9_1),
    "0-9": _amqp_0_9,
    "0-8": _amqp_0_8,
    "0-10": _amqp_0_10,
    "0-10t": _amqp_0_10_transitional,
    VERSION_1_0: _amqp_1_0,
}
"""Version -> the connection, called with broker, users, registry, settings, peer and now."""


def opener_of(sniffed: Sniffed) -> Callable[..., BaseConnection] | None:
    """Return what makes the connection of a protocol header; None if it is not served."""
    opener = OPENERS.get(sniffed.version)
    # The header of 1.0 also says whether the SASL layer comes first.
    return _amqp_1_0_sasl if opener is not None and sniffed.sasl else opener
