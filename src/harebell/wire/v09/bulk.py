"""The class `bulk`: ranges of a queue's log as Arrow record batches.

    span      positions of a queue's log, and the position of a time
    queues    names of the queues that may be read, sorted, after a given name
    letters   names of the queues that dead letters of a queue go to, if they may be read
    read      the selected columns of the messages that pass a filter

    queues-ok   names    length(1) name | length(1) name | ...
    batch       content  one encapsulated record batch of Arrow's IPC format

The client has selected the columns of a batch (`harebell.wire.arrow.columns`), so no schema is sent
with it. Many reads may be pending on a channel; they are answered in order. A read removes nothing
from the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

from harebell.base.errors import ProtocolError

NAME = "bulk"
VERSION = 1
CLASS = 0xF001
READ = 20

TABLE = """
bulk 61441
  span            10  C   -> span-ok: shortstr queue, longlong time
    "Ask where a queue's log begins and ends; a time is in milliseconds since 1970, 0 is none."
  span-ok         11  S   : shortstr generation kind,
                            longlong first end messages octets position
    "The log, its positions, and the first position of the asked time or later."
  read            20  C   -> batch: shortstr queue generation group, longlong epoch claim,
                            longlong first end, longstr columns, long rows octets,
                            shortstr compression, table filter, bit skip-lost
    "Ask for the messages of some positions, or of a claim."
  batch           21  S   +content: longlong next, long rows, longlong lost
    "A record batch, the position to continue from, and the number of lost positions."
  queues          30  C   -> queues-ok: shortstr after
    "Ask for the names of the queues that may be read."
  queues-ok       31  S   : longstr names, bit more
    "The names, each with its size in one octet before it, and whether there are more."
  letters         40  C   -> queues-ok: shortstr queue
    "Ask for the queues that get dead letters of a queue, as far as they may be read."
"""


def encode_names(names: Iterable[str], room: int) -> tuple[bytes, int]:
    """Encode `names` of queues-ok: as many as fit, but at least one. Return it and their number."""
    encoded: list[bytes] = []
    size = 0
    for name in names:
        octets = name.encode(errors="surrogateescape")
        size += 1 + len(octets)
        # At least one, or a client that continues after the last name would never end.
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
    offset = 0
    while offset < len(octets):
        end = offset + 1 + octets[offset]
        if end > len(octets):
            text = "bulk.queues-ok: the last of the field 'names' is cut short"
            raise ProtocolError(502, text, CLASS, 31)
        names.append(octets[offset + 1 : end].decode(errors="surrogateescape"))
        offset = end
    return names
