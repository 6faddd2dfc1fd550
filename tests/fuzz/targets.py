"""What is fuzzed: each target takes any octets and fails with an exception when something is
wrong.

They are ordinary functions, so that the corpus can be run without a fuzzer too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from harebell.base.errors import ProtocolError
from harebell.base.limits import FRAME_OVERHEAD_BYTES
from harebell.client.url import URL, URLError
from harebell.config import ConfigError, load
from harebell.kernels.limits import FRAME_FUDGE_BYTES
from harebell.wire import sniff
from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import decode_properties, encode_properties
from harebell.wire.v09.fields import decode_table, encode_table
from harebell.wire.v09.states import ConnectionState
from tests.fuzz.batches import TARGETS as BATCHES
from tests.fuzz.connections1 import TARGETS as CONNECTIONS1
from tests.fuzz.contents import TARGETS as CONTENTS
from tests.fuzz.conversations1 import TARGETS as CONVERSATIONS1
from tests.fuzz.conversions1 import conversions, conversions1
from tests.fuzz.messages010t import messages010t
from tests.fuzz.performatives import TARGETS as PERFORMATIVES
from tests.fuzz.row_batches import row_batches
from tests.fuzz.segments import composites, connection010, segments
from tests.fuzz.splits import anyhow, singly
from tests.fuzz.transfers import references, transfer
from tests.fuzz.transitional import connection010t, typed
from tests.fuzz.twins import KERNELS, scan, seen
from tests.model.memory import MemoryBroker
from tests.model.peer import FRAME_MAX, Reader, call, login
from tests.unit.kernels.twins import twin, used

_PROPERTY_KERNELS = (used("properties"), twin("properties"))

_FRAME_HEAD = 7

REFUSED = 2
"""Length of the outcome of a refusal: code and text."""


def _expect(holds: bool, what: object) -> None:
    if not holds:
        raise AssertionError(what)


def frames(data: bytes) -> None:
    """However the octets arrive and whoever scans them, the calls are the same."""
    if not data:
        return
    mode, data = data[0], data[1:]
    client = bool(mode & 1)
    whole = scan(KERNELS["chosen"], [data], fast=False, client=client)
    for kernel in KERNELS.values():
        for parts in ([data], singly(data), anyhow(data, mode)):
            assert scan(kernel, parts, fast=False, client=client) == whole
    for parts in ([data], singly(data), anyhow(data, mode)):
        one, other = (scan(k, parts, fast=True, client=client) for k in KERNELS.values())
        assert one == other, "the compiled scanner and its twin differ"


def tables(data: bytes) -> None:
    """A table is refused, or it survives being written and read again."""
    try:
        table, end = decode_table(data)
    except ProtocolError as error:
        _expect(error.code in (501, 502), error)
        return
    assert 4 <= end <= len(data)
    again, _ = decode_table(encode_table(table))
    assert repr(again) == repr(table)


def properties(data: bytes) -> None:
    """A property list is refused by all, or read alike by all, and can be written again."""
    outcomes = []
    for kernel in _PROPERTY_KERNELS:
        try:
            outcomes.append(seen(kernel.parse_properties(data)))
        except ProtocolError as error:
            outcomes.append((error.code, error.text))
    assert outcomes[0] == outcomes[1], "the compiled parser and its twin differ"
    try:
        decoded = decode_properties(data)
    except ProtocolError as error:
        _expect(error.code == 505, error)
        _expect(len(outcomes[0]) == REFUSED, f"parsed, but not decoded: {error}")
        return
    assert len(outcomes[0]) > REFUSED, "decoded, but not parsed"
    assert repr(decode_properties(encode_properties(decoded))) == repr(decoded)


def method(data: bytes) -> None:
    """A method is refused with a code of the specification, or survives a round trip."""
    try:
        decoded = AMQP_0_9_1.decode(data)
    except ProtocolError as error:
        _expect(error.code in (501, 502, 503, 540), error)
        return
    assert repr(AMQP_0_9_1.decode(AMQP_0_9_1.encode(decoded))) == repr(decoded)


def header(data: bytes) -> None:
    """What the sniffer says of a beginning it never takes back."""
    said = sniff(b"")
    for size in range(1, min(len(data), 12) + 1):
        now = sniff(data[:size])
        assert said.incomplete or now == said
        assert now.incomplete + bool(now.version) + bool(now.answer) == 1
        said = now
    assert len(data) < 8 or not said.incomplete


def _talk(parts: list[bytes]) -> tuple[list[object], MemoryBroker]:
    broker = MemoryBroker(seed=1)
    connection = broker.accept()
    reader = Reader()
    events: list[object] = []
    connection.receive(login(heartbeat=10) + call(1, methods.ChannelOpen()), 0.0)
    reader.feed(connection.take_output(0.0))
    for part in parts:
        connection.receive(part, 1.0)
        events += reader.feed(connection.take_output(1.0))
    assert not reader.partial, "the output ends inside a frame"
    for now in (20.0, 40.0, 60.0):
        connection.tick(now)
        reader.feed(connection.take_output(now))
    assert connection.closing, "a silent peer is still connected"
    connection.eof()
    assert not broker.registry.connections
    assert not broker.vhost.queues or all(not q.consumers for q in broker.vhost.queues.values())
    # How many confirms leave together depends on the reads, and so does how many of several
    # connection.close are read before the output side of the socket is shut down.
    uneven = (methods.BasicAck, methods.ConnectionCloseOk)
    return [e for e in events if not isinstance(e.method, uneven)], broker  # type: ignore[attr-defined]


def _without_begun_frame(data: bytes) -> bytes:
    """All but a last frame whose end is missing.

    A publish whose header has begun is answered with the header: whether it was answered before
    depends on whether its own frame came by itself.
    """
    at = 0
    while len(data) - at >= _FRAME_HEAD:
        size = int.from_bytes(data[at + 3 : at + 7]) + FRAME_OVERHEAD_BYTES
        if len(data) - at < size:
            return data if size > FRAME_MAX + FRAME_FUDGE_BYTES else data[:at]
        at += size
    return data[:at]


def connection(data: bytes) -> None:
    """Anything after login ends in frames of the protocol, the same however it arrives."""
    _, broker = _talk([data])
    assert not broker.internal_errors(), broker.internal_errors()
    data = _without_begun_frame(data)
    whole, broker = _talk([data])
    assert not broker.internal_errors(), broker.internal_errors()
    for parts in (anyhow(data, len(data)), singly(data) if len(data) < 2000 else [data]):
        events, other = _talk(parts)
        assert not other.internal_errors(), other.internal_errors()
        assert events == whole, "the answers depend on how the octets arrived"


def before_login(data: bytes) -> None:
    """Anything instead of a login ends the connection in time, and nothing escapes."""
    broker = MemoryBroker(seed=1)
    peer = broker.accept()
    for part in anyhow(data, len(data)):
        peer.receive(part, 0.0)
        peer.take_output(0.0)
    for now in (11.0, 22.0, 33.0):
        peer.tick(now)
    assert peer.closing or peer.state is ConnectionState.OPEN, "it may stay without logging in"
    assert not broker.internal_errors(), broker.internal_errors()


def url(data: bytes) -> None:
    """An address is refused with a sentence, or read; its text never shows the password."""
    text = data.decode("utf-8", "replace")
    try:
        read = URL.parse(text)
    except URLError as error:
        _expect(str(error) != "", "an error without a sentence")
        return
    assert 1 <= read.port <= 65_535
    assert "***" in str(read)


def config(data: bytes) -> None:
    """A configuration file is refused with a sentence that names it, or read."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "harebell.toml"
        path.write_bytes(data)
        try:
            load({}, environ={}, config_file=path)
        except ConfigError as error:
            _expect(str(error) != "", "an error without a sentence")


def canary(data: bytes) -> None:
    """Wrong on purpose: a fuzzer that does not find this one finds nothing."""
    if data[:1] == b"A" and data[1:2] == b"M" and data[2:3] == b"Q" and data[3:4] == b"P":
        raise AssertionError("the canary sings")


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        frames,
        tables,
        properties,
        method,
        header,
        connection,
        before_login,
        url,
        config,
        transfer,
        references,
        messages010t,
        segments,
        composites,
        connection010,
        typed,
        connection010t,
        *CONTENTS,
        *BATCHES,
        *PERFORMATIVES,
        *CONNECTIONS1,
        *CONVERSATIONS1,
        conversions,
        conversions1,
        row_batches,
        canary,
    )
}
