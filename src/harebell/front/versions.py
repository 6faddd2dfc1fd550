"""Which connection serves which version of AMQP.

A version is served if it is listed here: the arrival of a peer (`harebell.front.arrival`) looks up
its header's version and continues with the connection that the opener makes. The code of a version
is imported with its first peer: together it is a third of a broker that has just started, and most
brokers need one version. `harebell.front.loading` imports it in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from harebell.front.common.base_connection import BaseConnection
from harebell.wire import VERSION_1_0, Sniffed

Opener = Callable[..., BaseConnection]
"""Makes a connection; called with broker, users, registry, settings, peer and now."""


def _profiled(profile: Any) -> Opener:
    from harebell.front.amqp_0_9_1 import Connection

    return partial(Connection, profile=profile)


@cache
def _amqp_0_9_1() -> Opener:
    from harebell.front.amqp_0_9_1.profile_0_9_1 import PROFILE_0_9_1

    return _profiled(PROFILE_0_9_1)


@cache
def _amqp_0_9() -> Opener:
    from harebell.front.amqp_0_8.profiles import PROFILE_0_9

    return _profiled(PROFILE_0_9)


@cache
def _amqp_0_8() -> Opener:
    from harebell.front.amqp_0_8.profiles import PROFILE_0_8

    return _profiled(PROFILE_0_8)


@cache
def _amqp_0_10() -> Opener:
    from harebell.front.amqp_0_10.opening import open_connection

    return open_connection


@cache
def _amqp_0_10_transitional() -> Opener:
    from harebell.front.amqp_0_10_transitional.profile import PROFILE_0_10T

    return _profiled(PROFILE_0_10T)


@cache
def _amqp_1_0() -> Opener:
    from harebell.front.amqp_1_0.opening import open_connection

    return partial(open_connection, sasl=False)


@cache
def _amqp_1_0_sasl() -> Opener:
    from harebell.front.amqp_1_0.opening import open_connection

    return partial(open_connection, sasl=True)


OPENERS: dict[str, Callable[[], Opener]] = {
    "0-9-1": _amqp_0_9_1,
    "0-9": _amqp_0_9,
    "0-8": _amqp_0_8,
    "0-10": _amqp_0_10,
    "0-10t": _amqp_0_10_transitional,
    VERSION_1_0: _amqp_1_0,
}
"""Version -> what imports it and returns its opener."""


def opener_of(sniffed: Sniffed) -> Opener:
    """Return what makes the connection of a protocol header whose version is served."""
    # The header of 1.0 also says whether the SASL layer comes first.
    return _amqp_1_0_sasl() if sniffed.sasl else OPENERS[sniffed.version]()
