"""The class `bulk`: ranges of a queue's log as Arrow record batches.

    span   where the log of a queue begins and ends, and where in it a time stands
    read   some of it: only the wanted columns, of those messages that pass a filter

The content of a `batch` is one encapsulated record batch of Arrow's IPC format; what it has for
columns was asked for (`harebell.wire.arrow.columns`), so no schema comes with it. Many reads may be
under way on a channel; they are answered in their order. Nothing is taken from the queue.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table

NAME = "bulk"
VERSION = 1
CLASS = 0xF001
SPAN = 10
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
    """A record batch, where to go on, and how many positions were lost on the way."""

    next: int = 0
    rows: int = 0
    lost: int = 0
