"""Addresses of AMQP 1.0: what the address of a source, of a target or of a message names.

    version 2    /queues/Q    /exchanges/X/K    /exchanges/X         each name percent-encoded
    version 1    /amq/queue/Q  /queue/Q  /exchange/X/K  /topic/K     RabbitMQ's before 4.0
    bare         Q                                                   a name without a slash in front

No form of one version begins as a form of another does, so all of them are understood. Version 1
and bare names can be switched off (`Addressing`).
"""

from __future__ import annotations

import enum
from urllib.parse import quote

from msgspec import Struct

from harebell.front.amqp_1_0.errors import INVALID_FIELD, LinkError

_QUEUES = "/queues/"
_EXCHANGES = "/exchanges/"
_TOPIC_EXCHANGE = "amq.topic"
_HEX = frozenset("0123456789abcdefABCDEF")
_DEFAULT_EXCHANGE = "amq.default"


class Addressing(enum.Enum):
    """What an address that is not of version 2 means.

    `RABBITMQ`: version 1; a bare name is a queue, which is made if it is missing.
    `BARE`: as other brokers have it: a bare name is a queue or an exchange that exists, and
    `exchange/key` an exchange with a routing key.
    `STRICT`: nothing: only version 2 is understood.
    """

    RABBITMQ = "rabbitmq"
    BARE = "bare"
    STRICT = "v2"


class Address(Struct, frozen=True):
    """What an address names.

    Args:
        queue: the name of a queue; "" for an exchange.
        exchange: the name of an exchange, "" for the default exchange; unused with a queue.
        key: the routing key; None if each message has its own in its subject.
        makes: whether the queue is made if it is missing.
        either: whether the name may be one of an exchange, if there is no such queue.
    """

    queue: str = ""
    exchange: str = ""
    key: str | None = ""
    makes: bool = False
    either: bool = False


def queue_address(name: str) -> str:
    """Return the address of a queue, of version 2."""
    return _QUEUES + quote(name, safe="")


def queue_of(address: str) -> str | None:
    """Return the queue that an address of version 2 names; None for any other address."""
    if not address.startswith(_QUEUES) or "/" in address[len(_QUEUES) :]:
        return None
    try:
        return unquoted(address[len(_QUEUES) :], address)
    except LinkError:
        return None


def exchange_address(exchange: str, key: str) -> str:
    """Return the address of an exchange and a routing key, of version 2."""
    address = _EXCHANGES + quote(exchange, safe="")
    return f"{address}/{quote(key, safe='')}" if key else address


def target(address: str, addressing: Addressing = Addressing.RABBITMQ) -> Address:
    """Return what the address of a target names.

    Raises:
        LinkError: invalid-field, it is malformed or of a version that is switched off.
    """
    if address.startswith(_QUEUES):
        return Address(queue=_queue_name(address))
    if address.startswith(_EXCHANGES):
        return _exchange(address)
    if addressing is Addressing.STRICT:
        raise _not_permitted(address)
    if addressing is Addressing.BARE:
        return _bare(address)
    if address == "/queue":
        return Address(key=None)
    if address.startswith("/topic/"):
        return Address(exchange=_TOPIC_EXCHANGE, key=_slashes(address[len("/topic/") :]))
    return _version_1(address)


def source(address: str, addressing: Addressing = Addressing.RABBITMQ) -> Address:
    """Return what the address of a source names.

    Raises:
        LinkError: invalid-field, it is malformed, of a version that is switched off, or names
            nothing to read from.
    """
    if address.startswith(_QUEUES):
        return Address(queue=_queue_name(address))
    if address.startswith(_EXCHANGES):
        # RabbitMQ: a queue is made and bound over the management node first.
        raise _bad(address)
    if addressing is Addressing.STRICT:
        raise _not_permitted(address)
    if addressing is Addressing.BARE:
        return _bare(address)
    if address.startswith("/topic/"):
        return Address(exchange=_TOPIC_EXCHANGE, key=_slashes(address[len("/topic/") :]))
    found = _version_1(address)
    if found.key is None and not found.queue:
        # Without a key a target has it in each message; a source binds with the empty one.
        return Address(exchange=found.exchange, key="")
    return found


def message_to(address: str, addressing: Addressing = Addressing.RABBITMQ) -> Address:
    """Return where a message on an anonymous link goes, by its field `to`.

    Raises:
        LinkError: precondition-failed, the address is malformed.
    """
    if address.startswith(_QUEUES):
        return Address(queue=_queue_name(address))
    if address.startswith(_EXCHANGES):
        return _exchange(address)
    if addressing is Addressing.BARE:
        return _bare(address)
    if addressing is Addressing.RABBITMQ and address:
        found = target(address, addressing)
        # A message declares nothing.
        return Address(found.queue, found.exchange, found.key)
    raise _bad(address)


def _queue_name(address: str) -> str:
    name = address[len(_QUEUES) :]
    if not name or "/" in name:
        raise _bad(address)
    return unquoted(name, address)


def _exchange(address: str) -> Address:
    name, slash, key = address[len(_EXCHANGES) :].partition("/")
    if not name or "/" in key:
        raise _bad(address)
    exchange = unquoted(name, address)
    if exchange == _DEFAULT_EXCHANGE:
        # It routes to queues by their names, for which there is /queues/.
        raise _bad(address)
    return Address(exchange=exchange, key=unquoted(key, address) if slash else "")


def _version_1(address: str) -> Address:
    parts = address.split("/")
    if not address.startswith("/"):
        if not address:
            raise _bad(address)
        return Address(queue=_slashes(address), makes=True)
    match parts[1:]:
        case ["amq", "queue", name] if name:
            return Address(queue=_slashes(name))
        case ["queue", name] if name:
            return Address(queue=_slashes(name), makes=True)
        case ["exchange", name] if name:
            return Address(exchange=_slashes(name), key=None)
        case ["exchange", name, key] if name:
            return Address(exchange=_slashes(name), key=_slashes(key))
    raise _bad(address)


def _bare(address: str) -> Address:
    if not address or address.startswith("/"):
        raise _bad(address)
    name, slash, key = address.partition("/")
    if slash:
        return Address(exchange=name, key=key)
    return Address(queue=name, exchange=name, key=None, either=True)


def _slashes(name: str) -> str:
    """Return a name of version 1, in which only the slash is escaped."""
    return name.replace("%2F", "/").replace("%2f", "/")


def unquoted(name: str, address: str) -> str:
    """Return a percent-encoded name of version 2.

    Raises:
        LinkError: an escape or the UTF-8 of the name is malformed.
    """
    if "%" not in name:
        return name
    data = bytearray()
    at = 0
    while at < len(name):
        if name[at] != "%":
            data += name[at].encode(errors="surrogatepass")
            at += 1
            continue
        digits = name[at + 1 : at + 3]
        if len(digits) < 2 or not _HEX.issuperset(digits):
            raise _bad(address)
        data.append(int(digits, 16))
        at += 3
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _bad(address) from None


def _bad(address: str) -> LinkError:
    # RabbitMQ's text, an Erlang term: clients show it, and its tests look for it.
    return LinkError(INVALID_FIELD, f'{{bad_address_string,<<"{address}">>}}')


def _not_permitted(address: str) -> LinkError:
    return LinkError(INVALID_FIELD, f'{{amqp_address_v1_not_permitted,<<"{address}">>}}')
