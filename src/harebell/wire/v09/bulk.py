"""The class `bulk`: ranges of a queue's log as Arrow record batches.

    span      positions of a queue's log, and the position of a time
    queues    names of the queues that may be read, sorted, after a given one
    letters   those of them that dead letters of a queue go to
    read      messages: only the wanted columns, of those that pass a filter

The content of a `batch` is one encapsulated record batch of Arrow's IPC format; what it has for
columns was asked for (`harebell.wire.arrow.columns`), so no schema is sent with it. Many reads may
be pending on a channel; they are answered in order. A read removes nothing from the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

from harebell.base.errors import ProtocolError
from harebell.wire.v09.method import Method, Table

NAME = "bulk"
VERSION = 1
CLASS = 0xF001
READ = 20

TABLE = """
bulk 61441
  span            10  C   -> span-ok: shortstr queue, longlong time
  span-ok         11  S   : shortstr generation kind,
                            longlong first end messages octets position
  read            20  C   -> batch: shortstr queue generation group, longlong epoch claim,
                            longlong first end, longstr columns, long rows octets,
                            shortstr compression, table filter, bit skip-lost
  batch           21  S   +content: longlong next, long rows, longlong lost
  queues          30  C   -> queues-ok: shortstr after
  queues-ok       31  S   : longstr names, bit more
  letters         40  C   -> queues-ok: shortstr queue
"""


class BulkSpan(Method):
    """Ask where a queue's log begins and ends; a time is in milliseconds since 1970, 0 is none."""

    queue: str = ""
    time: int = 0


class BulkSpanOk(Method):
    """The log, its positions, and the first position of the asked time or later."""

    generation: str = ""
    kind: str = ""
    first: int = 0
    end: int = 0
    messages: int = 0
    octets: int = 0
    position: int = 0


class BulkRead(Method):
    """Ask for the messages of some positions, or of a claim."""

    queue: str = ""
    generation: str = ""
    group: str = ""
    epoch: int = 0
    claim: int = 0
    first: int = 0
    end: int = 0
    columns: bytes = b""
    rows: int = 0
    octets: int = 0
    compression: str = ""
    filter: Table = {}
    skip_lost: bool = False


class BulkBatch(Method):
    """A record batch, the position to continue from, and the number of lost positions."""

    next: int = 0
    rows: int = 0
    lost: int = 0


class BulkQueues(Method):
    """Ask for the names of the queues that may be read."""

    after: str = ""


class BulkLetters(Method):
    """Ask for the queues that get dead letters of a queue, as far as they may be read."""

    queue: str = ""


class BulkQueuesOk(Method):
    """The names, each with its size in one octet before it, and whether there are more."""

    names: bytes = b""
    more: bool = False


def encode_names(names: Iterable[str], room: int) -> tuple[bytes, int]:
    """Encode `names` of queues-ok: as many as fit, but at least one. Return it and their number."""
    encoded: list[bytes] = []
    size = 0
    for name in names:
        octets = name.encode(errors="surrogateescape")
        size += 1 + len(octets)
        if encoded and size > room:
            break
        encoded.append(bytes([len(octets)]) + octets)
    return b"".join(encoded), len(encoded)


def decode_names(octets: bytes) -> list[str]:
    """Decode `names` of queues-ok.

    Raises:
        ProtocolError: 502, it is cut short.
    """
    names: list[str] = []
    at = 0
    while at < len(octets):
        end = at + 1 + octets[at]
        if end > len(octets):
            text = "bulk.queues-ok: the last of the field 'names' is cut short"
            raise ProtocolError(502, text, CLASS, 31)
        names.append(octets[at + 1 : end].decode(errors="surrogateescape"))
        at = end
    return names
