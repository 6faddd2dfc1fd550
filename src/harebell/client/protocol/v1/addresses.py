"""Addresses of exchanges and queues, as RabbitMQ has them in AMQP 1.0.

    version   publish                                            consume
    2         /exchanges/X/K, or /queues/K by the default        /queues/Q
              exchange; also as the `to` of a message
    1         /exchange/X; the message's subject is the key      /amq/queue/Q
              /queue for the default exchange

RabbitMQ before 4.0 has version 1 only, and no management node.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

_FIRST_WITH_V2 = 4
_DIGITS = 9
_CACHE_ENTRIES = 256
_QUEUES = "/queues/"


class Route(NamedTuple):
    """The way of a message.

    Args:
        target: the address of its link; None is the anonymous terminus.
        to: the `to` of the message, an address.
        subject: the subject of the message, which v1 takes as its routing key.
    """

    target: str | None
    to: str | None = None
    subject: str | None = None


class AddressesV2:
    """Percent-encoded names."""

    has_management = True

    def route(self, exchange: str, key: str) -> Route:
        """Return the way to an exchange, "" for the default one, with a routing key."""
        return _route_v2(exchange, key)

    def anonymous(self, route: Route) -> Route:
        """Return the way by the anonymous terminus."""
        return Route(None, to=route.target)

    def source(self, queue: str) -> str:
        """Return the address of a queue for consumers."""
        return queue_address(queue)


class AddressesV1:
    """Names in which only `/` is encoded."""

    has_management = False

    def route(self, exchange: str, key: str) -> Route:
        """Return the way to an exchange, "" for the default one, with a routing key."""
        return Route(f"/exchange/{_v1(exchange)}" if exchange else "/queue", subject=key)

    def anonymous(self, route: Route) -> Route:
        """Return the same way: one link serves all keys of an exchange."""
        return route

    def source(self, queue: str) -> str:
        """Return the address of a queue for consumers."""
        return f"/amq/queue/{_v1(queue)}"


Addresses = AddressesV1 | AddressesV2


def addresses_of(properties: Mapping[Any, Any]) -> Addresses:
    """Return the addresses that a broker understands, by the properties of its open."""
    major = str(properties.get("version", "")).partition(".")[0]
    is_old = major.isascii() and major.isdigit() and int(major[:_DIGITS]) < _FIRST_WITH_V2
    return AddressesV1() if is_old and properties.get("product") == "RabbitMQ" else AddressesV2()


@lru_cache(_CACHE_ENTRIES)
def _route_v2(exchange: str, key: str) -> Route:
    """Return a way; most messages of a program go by few."""
    return Route(address_of(exchange, key))


def _v1(name: str) -> str:
    return name.replace("/", "%2F")


def quoted(name: str) -> str:
    """Percent-encode everything but RFC 3986's unreserved characters."""
    return quote(name, safe="")


def queue_address(queue: str) -> str:
    """Return the address of a queue."""
    return _QUEUES + quoted(queue)


def address_of(exchange: str, key: str) -> str:
    """Return the address of an exchange and a routing key."""
    if not exchange:
        return queue_address(key)
    if not key:
        return f"/exchanges/{quoted(exchange)}"
    return f"/exchanges/{quoted(exchange)}/{quoted(key)}"


def queue_of(address: str) -> str:
    """Return the queue of an address; an address of another form unchanged."""
    return unquote(address.removeprefix(_QUEUES)) if address.startswith(_QUEUES) else address
