"""AMQP 0-8 as its differences from 0-9-1 (`harebell.wire.v09.spec` says how to read them).

0-8 has tickets, plain field tables, and the classes access, file, stream, dtx, tunnel and test.

Two layouts share one protocol header: the published one (`PUBLISHED`), and that of Qpid (`QPID`
over it). The octets tell them apart: the arguments of basic.consume are read if there are any, and
a peer that sends exchange.bound knows the layout of Qpid.

The only types that a 0-8 peer knows in a field table are S, I, D, T and F, so nothing else is
written (`harebell.wire.v09.plain_fields`); what Qpid's and later peers write is read.
"""

from __future__ import annotations

from harebell.wire.v09.amqp_0_9_1 import PUBLISHED as PUBLISHED_0_9_1
from harebell.wire.v09.spec import ProtocolSpec

METHODS_OLDER = "harebell.wire.v09.methods_older"
"""The module of the methods that 0-9-1 lacks."""

DIFFERENCES = """
connection 10
  start            10  S  -> start-ok: octet version-major version-minor,
                          plain-table server-properties, longstr mechanisms locales
  start-ok         11  C  : plain-table client-properties, shortstr mechanism, longstr response,
                          shortstr locale
  open             40  C  -> open-ok redirect: shortstr virtual-host capabilities, bit insist
  open-ok          41  S  : shortstr known-hosts
  redirect         50  S  : shortstr host known-hosts
    "Refer the client to another server (before 0-9-1)."
  close            60  CS -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok         61  CS

channel 20
  open-ok          11  S
  alert            30  S  : short reply-code, shortstr reply-text, plain-table details
    "Warn of an error that does not close the channel (0-8)."

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
    "Limit the unacknowledged deliveries (prefetch); 0 is no limit."
  qos-ok           11  S
    "The limits apply."
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table* filter
    "Start a consumer of files."
  consume-ok       21  S  : shortstr consumer-tag
    "The consumer has started."
  cancel           30  C  -> cancel-ok: shortstr consumer-tag, bit nowait
    "Cancel a consumer of files."
  cancel-ok        31  S  : shortstr consumer-tag
    "The consumer is cancelled."
  open             40  CS -> open-ok: shortstr identifier, longlong content-size
    "Ask how much of a file the recipient has already."
  open-ok          41  CS -> stage: longlong staged-size
    "The offset from which on the file is to be sent."
  stage            50  CS +content
    "Send the file, or the rest of it, as content."
  publish          60  C  : short ticket, shortstr exchange routing-key, bit mandatory immediate,
                          shortstr identifier
    "Publish a staged file."
  return           70  S  +content: short reply-code, shortstr reply-text exchange routing-key
    "Return a file that was unroutable or not delivered, with its content."
  deliver          80  S  : shortstr consumer-tag, longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key identifier
    "Deliver a file that was staged at the client to a consumer."
  ack              90  C  : longlong delivery-tag, bit multiple
    "Acknowledge deliveries of files."
  reject          100  C  : longlong delivery-tag, bit requeue
    "Reject a delivery of a file."

stream 80
  qos              10  C  -> qos-ok: long prefetch-size, short prefetch-count, long consume-rate,
                          bit global
    "Limit what is queued for a consumer, and its octets per second; 0 is no limit."
  qos-ok           11  S
    "The limits apply."
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local exclusive nowait, plain-table* filter
    "Start a consumer of packets."
  consume-ok       21  S  : shortstr consumer-tag
    "The consumer has started."
  cancel           30  C  -> cancel-ok: shortstr consumer-tag, bit nowait
    "Cancel a consumer of packets."
  cancel-ok        31  S  : shortstr consumer-tag
    "The consumer is cancelled."
  publish          40  C  +content: short ticket, shortstr exchange routing-key,
                          bit mandatory immediate
    "Publish a packet; its content follows."
  return           50  S  +content: short reply-code, shortstr reply-text exchange routing-key
    "Return a packet that was unroutable or not delivered, with its content."
  deliver          60  S  +content: shortstr consumer-tag, longlong delivery-tag,
                          shortstr exchange queue
    "Deliver a packet to a consumer; its content follows."

dtx 100
  select           10  C  -> select-ok
    "Put the channel into the mode of distributed transactions."
  select-ok        11  S
    "The channel is in this mode."
  start            20  C  -> start-ok: shortstr dtx-identifier
    "Begin work on a transaction: what follows on the channel is part of it."
  start-ok         21  S
    "The transaction has started."

tunnel 110
  request          10  C  +content: plain-table meta-data
    "Send a block of another protocol as content, with metadata for its recipient."

test 120
  integer          10  CS -> integer-ok: octet integer-1, short integer-2, long integer-3,
                          longlong integer-4, octet operation
    "Ask for the sum, the minimum or the maximum of four integers."
  integer-ok       11  CS : longlong result
    "The result."
  string           20  CS -> string-ok: shortstr string-1, longstr string-2, octet operation
    "Ask for two strings concatenated, the shorter or the longer of them."
  string-ok        21  CS : longstr result
    "The result."
  table            30  CS -> table-ok: plain-table table, octet integer-op string-op
    "Ask for the same of the integers, and of the strings, in a field table."
  table-ok         31  CS : longlong integer-result, longstr string-result
    "Both results."
  content          40  CS +content -> content-ok
    "Send content, and ask for its checksum."
  content-ok       41  CS +content: long content-checksum
    "The sum of the content's octets, with the same content."
"""

QPID = """
exchange 40
  bound            22  C  -> bound-ok: shortstr exchange routing-key queue
    "Ask whether an exchange has a binding, with the given queue and key if any (Qpid)."
  bound-ok         23  S  : short reply-code, shortstr reply-text
    "Code 0 if it has; other codes say what is missing (Qpid)."

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

PUBLISHED = ProtocolSpec("0-8", PUBLISHED_0_9_1, DIFFERENCES, module=METHODS_OLDER)
"""The document alone. 0-9 is written as its differences from it."""

AMQP_0_8 = ProtocolSpec("0-8", PUBLISHED, QPID, RABBITMQ, module=METHODS_OLDER)
"""What Harebell speaks as 0-8."""
