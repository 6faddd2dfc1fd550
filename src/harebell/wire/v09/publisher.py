"""The class publisher: publishers whose repeats are dropped.

docs/protocols/extensions-publishing.md explains it.

After publisher.declare every basic.publish on the channel carries a header `x-publishing-id`, an
integer from 0 on. One that is not above the last that was taken is confirmed and dropped. `next` is
the smallest that is above it. A client that knows a next number gives it with the eras that it got
before (`harebell.base.eras`): a broker that has lost some of the numbers refuses then.
"""

from __future__ import annotations

NAME = "publisher"
VERSION = 2
CLASS_ID = 0xF003

TABLE = """
publisher 61443
  declare         10  C   -> declare-ok: shortstr publisher, longlong next, longstr eras
    "Publish on this channel as a named publisher; eras are those of the numbers below `next`."
  declare-ok      11  S   : longlong next, longstr eras
    "The smallest publishing id that was not used yet, and the eras of those before it."
  forget          20  C   -> forget-ok: shortstr publisher
    "Forget what a publisher has published and staged: its name is not used again."
  forget-ok       21  S
    "The publisher is forgotten."
"""
