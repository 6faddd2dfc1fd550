"""The class publisher: publishers whose repeats are dropped.

docs/protocols/extensions.md explains it.

After publisher.declare every basic.publish on the channel carries a header `x-publishing-id`, an
integer from 0 on. One that is not above the last that was taken is confirmed and dropped. `next` is
the smallest that is above it.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method

NAME = "publisher"
VERSION = 1
CLASS_ID = 0xF003

TABLE = """
publisher 61443
  declare         10  C   -> declare-ok: shortstr publisher
  declare-ok      11  S   : longlong next
  forget          20  C   -> forget-ok: shortstr publisher
  forget-ok       21  S
"""


class PublisherDeclare(Method):
    """What this channel publishes comes from a publisher of that name."""

    publisher: str = ""


class PublisherDeclareOk(Method):
    """The smallest publishing id that was not taken yet."""

    next: int = 0


class PublisherForget(Method):
    """The name will not be used again: forget what it published and staged."""

    publisher: str = ""


class PublisherForgetOk(Method):
    """It is forgotten."""
