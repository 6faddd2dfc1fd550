"""Fuzzed: message.transfer of transitional 0-10, and references driven by any operations."""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.errors import ProtocolError
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.work import Work
from harebell.front.amqp_0_10_transitional.references import References
from harebell.front.common.checkpoints import Checkpoints, Key
from harebell.front.convert.transitional import from_basic, to_basic
from harebell.front.limits import CHECKPOINT_COST_BYTES
from harebell.wire.v09.transfer import (
    HEAD,
    Transfer,
    TransferProperties,
    decode_transfer,
    encode_transfer,
    parse_transfer,
    read_transfer,
    write_transfer,
)

_MAX = 3_000
_NAMES = 4


def _expect(holds: bool, what: object) -> None:
    if not holds:
        raise AssertionError(what)


def transfer(data: bytes) -> None:
    """A transfer is refused, or it is written as it was read and can be had by every consumer."""
    try:
        found = read_transfer(HEAD + data)
    except ProtocolError as error:
        _expect(error.code in (501, 502), error)
        return
    # Bits that the document does not have are not kept.
    again = read_transfer(write_transfer(found))
    assert again == found, (again, found)
    message = Message(found.exchange, found.routing_key, parse_transfer(found.raw), found.value)
    there = to_basic(message)
    back = decode_transfer(from_basic(there).raw)
    given = decode_transfer(found.raw)
    # What follows from the rest, and what has other types in basic, need not come back.
    back.expiration, back.application_headers = given.expiration, given.application_headers
    if not {"x-amqp-transaction-id", "x-amqp-security-token"} & set(given.application_headers):
        assert repr(back) == repr(given)


def references(data: bytes) -> None:
    """Whatever is done with references, bodies are what was appended, and memory is counted."""
    gauge = Gauge()
    checkpoints = Checkpoints(gauge, lambda: 0)

    def key(identifier: str) -> Key:
        return ("/", "", identifier)

    session = References(gauge, checkpoints, key, _MAX)
    bodies: dict[bytes, bytes] = {}
    for at in range(0, len(data) - 2, 3):
        what, which, size = data[at : at + 3]
        name = bytes((which % _NAMES,))
        piece = bytes((at % 251,)) * (size * 8)
        if what % 8 == 0:
            session.release(Work())
            session = References(gauge, checkpoints, key, _MAX)
            bodies.clear()
            continue
        act(session, bodies, what, name, piece)
        assert gauge.unread == sum(map(len, bodies.values()))
        saved = sum(checkpoints.size(key(str(number))) for number in range(_NAMES))
        assert gauge.used == gauge.unread + saved + len(checkpoints) * CHECKPOINT_COST_BYTES


def act(
    session: References, bodies: dict[bytes, bytes], what: int, name: bytes, piece: bytes
) -> None:
    """One operation on the session and on what it should come to."""
    identifier = str(name[0] ^ (what >> 7))
    is_open = name in bodies
    operation = what % 8
    calls: dict[int, tuple[Callable[[], object], bool]] = {
        1: (lambda: session.open(name), not is_open),
        2: (
            lambda: session.append(name, piece),
            is_open and len(bodies.get(name, b"")) + len(piece) <= _MAX,
        ),
        3: (lambda: session.checkpoint(name, identifier), is_open),
        4: (lambda: session.resume(name, identifier), not is_open),
        5: (lambda: session.close(name), is_open),
    }
    call, allowed = calls.get(operation, calls[2])
    try:
        call()
    except ProtocolError as error:
        _expect(not allowed and error.code in (503, 311), error)
        return
    assert allowed, (operation, name)
    if operation in (1, 4):
        bodies[name] = session.get(name, 0).body()
    elif operation == 5:
        bodies.pop(name)
    elif operation != 3:
        bodies[name] += piece
    if name in bodies:
        assert session.get(name, 0).body() == bodies[name]


def transfer_seeds() -> list[bytes]:
    """Valid transfers."""
    full = TransferProperties(
        ttl=1,
        priority=2,
        timestamp=3,
        delivery_mode=2,
        message_id="m",
        content_type="text/plain",
        transaction_id="t",
        security_token=b"s",
        application_headers={"a": 1, "b": "two", "c": [True, {"d": None}]},
    )
    whole = Transfer(1, "d", True, True, True, "e", "k", 4, encode_transfer(full), 0, b"body")
    return [write_transfer(each)[len(HEAD) :] for each in (Transfer(), whole, Transfer(kind=1))]


def reference_seeds() -> list[bytes]:
    """Sessions: open, append, checkpoint, lose the session, resume, append, close."""
    once = bytes((1, 0, 0, 2, 0, 9, 3, 0, 0, 0, 0, 0, 4, 0, 0, 2, 0, 5, 5, 0, 0))
    return [once, once * 3, bytes((1, 1, 0, 2, 1, 255, 2, 1, 255, 5, 1, 0))]
