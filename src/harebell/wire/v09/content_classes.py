"""The content classes beside `basic`, and what else 0-8 has that 0-9-1 left out, as tables.

    file     70   staged before it is published and delivered
    stream   80   packets that nobody acknowledges
    dtx     100   transactions that somebody else coordinates
    tunnel  110   blocks of another protocol
    test    120   whether both peers read and write data alike

`OTHER_CLASSES` is how 0-8 has them. 0-9 and transitional 0-10 add a filter to both methods
`consume` (`FILTERS`, to be laid over the first); `file`, `stream` and `tunnel` are otherwise alike
there. `harebell.wire.v09.spec` says how a table is read, and `property_list` has the properties.
"""

from __future__ import annotations

# Their methods have to be known before a table that names them is read.
from harebell.wire.v09 import methods_file, methods_peers, methods_stream

__all__ = [
    "DTX",
    "FILE",
    "FILTERS",
    "OTHER_CLASSES",
    "STREAM",
    "TEST",
    "TUNNEL",
    "methods_file",
    "methods_peers",
    "methods_stream",
]

FILE = """
file 70
  qos             10  C   -> qos-ok: long prefetch-size, short prefetch-count, bit global
  qos-ok          11  S
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait
  consume-ok      21  S   : shortstr consumer-tag
  cancel          30  C   -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok       31  S   : shortstr consumer-tag
  open            40  CS  -> open-ok: shortstr identifier, longlong content-size
  open-ok         41  CS  -> stage: longlong staged-size
  stage           50  CS  +content
  publish         60  C   : short ticket, shortstr exchange routing-key,
                          bit mandatory immediate, shortstr identifier
  return          70  S   +content: short reply-code, shortstr reply-text exchange routing-key
  deliver         80  S   : shortstr consumer-tag, longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key identifier
  ack             90  C   : longlong delivery-tag, bit multiple
  reject         100  C   : longlong delivery-tag, bit requeue
"""

STREAM = """
stream 80
  qos             10  C   -> qos-ok: long prefetch-size, short prefetch-count,
                          long consume-rate, bit global
  qos-ok          11  S
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local exclusive nowait
  consume-ok      21  S   : shortstr consumer-tag
  cancel          30  C   -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok       31  S   : shortstr consumer-tag
  publish         40  C   +content: short ticket, shortstr exchange routing-key,
                          bit mandatory immediate
  return          50  S   +content: short reply-code, shortstr reply-text exchange routing-key
  deliver         60  S   +content: shortstr consumer-tag, longlong delivery-tag,
                          shortstr exchange queue
"""

DTX = """
dtx 100
  select          10  C   -> select-ok
  select-ok       11  S
  start           20  C   -> start-ok: shortstr dtx-identifier
  start-ok        21  S
"""

TUNNEL = """
tunnel 110
  request         10  CS  +content: table meta-data
"""

TEST = """
test 120
  integer         10  CS  -> integer-ok: octet integer-1, short integer-2, long integer-3,
                          longlong integer-4, octet operation
  integer-ok      11  CS  : longlong result
  string          20  CS  -> string-ok: shortstr string-1, longstr string-2, octet operation
  string-ok       21  CS  : longstr result
  table           30  CS  -> table-ok: table table, octet integer-op string-op
  table-ok        31  CS  : longlong integer-result, longstr string-result
  content         40  CS  +content -> content-ok
  content-ok      41  CS  +content: long content-checksum
"""

OTHER_CLASSES = FILE + STREAM + DTX + TUNNEL + TEST
"""All of them as in 0-8."""

FILTERS = """
file 70
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, table filter

stream 80
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local exclusive nowait, table filter
"""
"""Both methods consume as 0-9 and transitional 0-10 have them."""
