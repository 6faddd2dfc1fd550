"""Transitional 0-10 (2007): classes of 0-10 over the frames of 0-9, as its differences from 0-9.

`harebell.wire.v09.spec` says how to read them. Names of fields are the document's; `harebell.wire
.v09.transitional_types` has the data types that 0-9-1 lacks. Class 21 stands in the document as an
aid for the transition: it is what clients of 2007 opened channels with, and class 20 is sessions.
"""

from __future__ import annotations

from harebell.wire.v09 import methods_message, methods_session
from harebell.wire.v09.amqp_0_9 import PUBLISHED as PUBLISHED_0_9
from harebell.wire.v09.domains import DOMAINS
from harebell.wire.v09.spec import ProtocolSpec
from harebell.wire.v09.transitional_types import TRANSITIONAL

USED = (methods_message, methods_session)
"""Modules whose classes the table names."""

DIFFERENCES = """
- channel dtx

connection 10
  start           10  S   -> start-ok: octet version-major version-minor,
                          typed-table server-properties, longstr mechanisms locales
  start-ok        11  C   : typed-table client-properties, shortstr mechanism, longstr response,
                          shortstr locale

session 20
  open            10  C   -> attached: long detached-lifetime
  attached        11  S   : uuid session-id, long detached-lifetime
  flow            20  CS  -> flow-ok: bit active
  flow-ok         21  CS  : bit active
  close           40  CS  -> closed
  closed          41  CS  : short reply-code, shortstr reply-text
  resume          50  C   -> attached: uuid session-id
  ping            60  CS
  pong            70  CS
  suspend         90  C   -> detached
  detached       100  S
  ack            110  CS  : serial cumulative-seen-mark, serials seen-frame-set
  high-water-mark 120 CS  : serial last-sent-mark
  solicit-ack    130  CS

channel 21
  open            10  C   -> open-ok: shortstr _
  open-ok         11  S
  flow            20  CS  -> flow-ok: bit active
  flow-ok         21  CS  : bit active
  close           40  CS  -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok        41  CS

exchange 40
  declare         10  C   : short ticket, shortstr exchange type alternate-exchange,
                          bit passive durable auto-delete, typed-table arguments
  delete          20  C   : short ticket, shortstr exchange, bit if-unused
  query           30  C   -> query-ok: short ticket, shortstr name
  query-ok        31  S   : shortstr type, bit durable not-found, typed-table arguments
  - declare-ok delete-ok

queue 50
  declare         10  C   -> declare-ok: short ticket, shortstr queue alternate-exchange,
                          bit passive durable exclusive auto-delete nowait, typed-table arguments
  bind            20  C   : short ticket, shortstr queue exchange routing-key,
                          typed-table arguments
  unbind          50  C   : short ticket, shortstr queue exchange routing-key,
                          typed-table arguments
  - bind-ok unbind-ok

basic 60
  qos             10  C   : long prefetch-size, short prefetch-count, bit global
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, typed-table arguments
  publish         40  C   +content: short ticket, shortstr exchange routing-key,
                          bit reject-unroutable immediate
  recover        100  C   : bit requeue
  - qos-ok return recover-async

file 70
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, typed-table filter

stream 80
  consume         20  C   -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local exclusive nowait, typed-table filter

tx 90
  select          10  C
  commit          20  C
  rollback        30  C
  - select-ok commit-ok rollback-ok

dtx-demarcation 100
  select          10  C
  start           20  C   -> start-ok: short ticket, longstr xid, bit join resume
  start-ok        21  S   : short status
  end             30  C   -> end-ok: short ticket, longstr xid, bit fail suspend
  end-ok          31  S   : short status

dtx-coordination 105
  commit          10  C   -> commit-ok: short ticket, longstr xid, bit one-phase
  commit-ok       11  S   : short status
  forget          20  C   : short ticket, longstr xid
  get-timeout     30  C   -> get-timeout-ok: longstr xid
  get-timeout-ok  31  S   : long timeout
  prepare         40  C   -> prepare-ok: short ticket, longstr xid
  prepare-ok      41  S   : short status
  recover         50  C   -> recover-ok: short ticket, bit startscan endscan
  recover-ok      51  S   : typed-table in-doubt
  rollback        60  C   -> rollback-ok: short ticket, longstr xid
  rollback-ok     61  S   : short status
  set-timeout     70  C   : short ticket, longstr xid, long timeout

tunnel 110
  request         10  C   +content: typed-table meta-data

message 120
  transfer        10  CS  : short ticket, shortstr destination,
                          bit redelivered reject-unroutable immediate, longlong ttl,
                          octet priority, timestamp timestamp, octet delivery-mode,
                          timestamp expiration, shortstr exchange routing-key message-id
                          correlation-id reply-to content-type content-encoding,
                          longlong content-length, shortstr type user-id app-id transaction-id,
                          longstr security-token, typed-table application-headers, body body
  consume         20  C   : short ticket, shortstr queue destination,
                          bit no-local no-ack exclusive, typed-table filter
  cancel          30  C   : shortstr destination
  get             40  C   : short ticket, shortstr queue destination, bit no-ack
  recover         50  C   : bit requeue
  open            60  CS  : longstr reference
  close           70  CS  : longstr reference
  append          80  CS  : longstr reference bytes
  checkpoint      90  CS  : longstr reference, shortstr identifier
  resume         100  CS  -> offset: longstr reference, shortstr identifier
  qos            110  C   : long prefetch-size, short prefetch-count, bit global
  empty          510  CS
  reject         520  CS  : short code, shortstr text
  offset         530  CS  : longlong value

binding 130
  query           10  C   -> query-ok: short ticket, shortstr exchange queue routing-key,
                          typed-table arguments
  query-ok        11  S   : bit exchange-not-found queue-not-found queue-not-matched
                          key-not-matched args-not-matched

execution 140
  flush           10  CS
  complete        20  CS  : serial cumulative-execution-mark, serials ranged-execution-set
"""

AMQP_0_10_TRANSITIONAL = ProtocolSpec(
    "0-10t", PUBLISHED_0_9, DIFFERENCES, types=DOMAINS | TRANSITIONAL
)
"""What Harebell speaks as transitional 0-10."""
