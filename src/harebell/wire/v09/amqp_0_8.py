"""AMQP 0-8 as its differences from 0-9-1 (`harebell.wire.v09.spec` says how to read them).

0-8 has tickets, plain field tables, and the classes access, file, stream, dtx, tunnel and test.

Two layouts share one protocol header: the published one (`PUBLISHED`), and that of Qpid (`QPID`
over it). The octets tell them apart: the arguments of basic.consume are read if there are any, and
a peer that sends exchange.bound knows the layout of Qpid.

The only types that a 0-8 peer knows in a field table are S, I, D, T and F, so nothing else is
written (`harebell.wire.v09.plain_fields`); what Qpid's and later peers write is read.
"""

from __future__ import annotations

from harebell.wire.v09 import methods_file, methods_older, methods_peers, methods_stream
from harebell.wire.v09.amqp_0_9_1 import PUBLISHED as PUBLISHED_0_9_1
from harebell.wire.v09.spec import ProtocolSpec

USED = (methods_file, methods_older, methods_peers, methods_stream)
"""Modules whose classes the tables name."""

DIFFERENCES = """
connection 10
  start            10  S  -> start-ok: octet version-major version-minor,
                          plain-table server-properties, longstr mechanisms locales
  start-ok         11  C  : plain-table client-properties, shortstr mechanism, longstr response,
                          shortstr locale
  open             40  C  -> open-ok redirect: shortstr virtual-host capabilities, bit insist
  open-ok          41  S  : shortstr known-hosts
  redirect         50  S  : shortstr host known-hosts
  close            60  CS -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok         61  CS

channel 20
  open-ok          11  S
  alert            30  S  : short reply-code, shortstr reply-text, plain-table details

access 30
  request          10  C  -> request-ok: shortstr realm, bit exclusive passive active write read
  request-ok       11  S  : short ticket

exchange 40
  declare          10  C  -> declare-ok: short ticket, shortstr exchange type,
                          bit passive durable auto-delete internal nowait, plain-table arguments
  delete           20  C  -> delete-ok: short ticket, shortstr exchange, bit if-unused nowait

queue 50
  declare          10  C  -> declare-ok: short ticket, shortstr queue,
                          bit passive durable exclusive auto-delete nowait, plain-table arguments
  bind             20  C  -> bind-ok: short ticket, shortstr queue exchange routing-key,
                          bit nowait, plain-table arguments
  purge            30  C  -> purge-ok: short ticket, shortstr queue, bit nowait
  delete           40  C  -> delete-ok: short ticket, shortstr queue, bit if-unused if-empty nowait
  - unbind unbind-ok

basic 60
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait
  publish          40  C  +content: short ticket, shortstr exchange routing-key,
                          bit mandatory immediate
  get              70  C  -> get-ok get-empty: short ticket, shortstr queue, bit no-ack
  recover         100  C  : bit requeue
  - recover-async recover-ok

file 70
  qos              10  C  -> qos-ok: long prefetch-size, short prefetch-count, bit global
  qos-ok           11  S
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait
  consume-ok       21  S  : shortstr consumer-tag
  cancel           30  C  -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok        31  S  : shortstr consumer-tag
  open             40  CS -> open-ok: shortstr identifier, longlong content-size
  open-ok          41  CS -> stage: longlong staged-size
  stage            50  CS +content
  publish          60  C  : short ticket, shortstr exchange routing-key, bit mandatory immediate,
                          shortstr identifier
  return           70  S  +content: short reply-code, shortstr reply-text exchange routing-key
  deliver          80  S  : shortstr consumer-tag, longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key identifier
  ack              90  C  : longlong delivery-tag, bit multiple
  reject          100  C  : longlong delivery-tag, bit requeue

stream 80
  qos              10  C  -> qos-ok: long prefetch-size, short prefetch-count, long consume-rate,
                          bit global
  qos-ok           11  S
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local exclusive nowait
  consume-ok       21  S  : shortstr consumer-tag
  cancel           30  C  -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok        31  S  : shortstr consumer-tag
  publish          40  C  +content: short ticket, shortstr exchange routing-key,
                          bit mandatory immediate
  return           50  S  +content: short reply-code, shortstr reply-text exchange routing-key
  deliver          60  S  +content: shortstr consumer-tag, longlong delivery-tag,
                          shortstr exchange queue

dtx 100
  select           10  C  -> select-ok
  select-ok        11  S
  start            20  C  -> start-ok: shortstr dtx-identifier
  start-ok         21  S

tunnel 110
  request          10  C  +content: plain-table meta-data

test 120
  integer          10  CS -> integer-ok: octet integer-1, short integer-2, long integer-3,
                          longlong integer-4, octet operation
  integer-ok       11  CS : longlong result
  string           20  CS -> string-ok: shortstr string-1, longstr string-2, octet operation
  string-ok        21  CS : longstr result
  table            30  CS -> table-ok: plain-table table, octet integer-op string-op
  table-ok         31  CS : longlong integer-result, longstr string-result
  content          40  CS +content -> content-ok
  content-ok       41  CS +content: long content-checksum
"""

QPID = """
exchange 40
  bound            22  C  -> bound-ok: shortstr exchange routing-key queue
  bound-ok         23  S  : short reply-code, shortstr reply-text

basic 60
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table? arguments
  recover         100  C  -> recover-ok: bit requeue
  recover-ok      101  S
"""

# RabbitMQ takes this from clients of every version, and some libraries for 0-8 have it.
RABBITMQ = """
queue 50
  unbind           50  C  -> unbind-ok: short ticket, shortstr queue exchange routing-key,
                          plain-table arguments
  unbind-ok        51  S
"""

PUBLISHED = ProtocolSpec("0-8", PUBLISHED_0_9_1, DIFFERENCES)
"""The document alone. 0-9 is written as its differences from it."""

AMQP_0_8 = ProtocolSpec("0-8", PUBLISHED, QPID, RABBITMQ)
"""What Harebell speaks as 0-8."""
