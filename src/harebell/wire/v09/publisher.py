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
    """Publish on this channel as the publisher of a name."""

    publisher: str = ""


class PublisherDeclareOk(Method):
    """The smallest publishing id that was not used yet."""

    next: int = 0


class PublisherForget(Method):
    """Forget what a publisher has published and staged: its name is not used again."""

    publisher: str = ""


class PublisherForgetOk(Method):
    """The publisher is forgotten."""
