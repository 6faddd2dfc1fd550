"""Transitional 0-10 (2007): classes of 0-10 over the frames of 0-9, as its differences from 0-9.

`harebell.wire.v09.spec` says how to read them. Names of fields are the document's; `harebell.wire
.v09.transitional_types` has the data types that 0-9-1 lacks. Class 21 stands in the document as an
aid for the transition: it is what clients of 2007 opened channels with, and class 20 is sessions.
"""

from __future__ import annotations

from harebell.wire.v09.amqp_0_9 import PUBLISHED as PUBLISHED_0_9
from harebell.wire.v09.domains import DOMAINS
from harebell.wire.v09.spec import ProtocolSpec
from harebell.wire.v09.transitional_types import TRANSITIONAL

DIFFERENCES = """
- channel dtx

connection 10
  start           10  S   -> start-ok: octet version-major version-minor,
                          typed-table server-properties, longstr mechanisms locales
  start-ok        11  C   : typed-table client-properties, shortstr mechanism, longstr response,
                          shortstr locale

session 20
  open            10  C   -> attached: long detached-lifetime
    "Make a session and attach the channel to it."
  attached        11  S   : uuid session-id, long detached-lifetime
    "The channel is attached to the session."
  flow            20  CS  -> flow-ok: bit active
    "Ask the peer to stop sending content, or to continue."
  flow-ok         21  CS  : bit active
    "Whether the peer sends content now."
  close           40  CS  -> closed
    "Ask the peer to destroy the session."
  closed          41  CS  : short reply-code=200, shortstr reply-text
    "The session is destroyed: on request (200), or because of an error."
  resume          50  C   -> attached: uuid session-id
    "Attach the channel to a session that exists."
  ping            60  CS
    "Ask for a pong."
  pong            70  CS
    "Answer a ping."
  suspend         90  C   -> detached
    "Detach from the session without destroying it."
  detached       100  S
    "The channel is detached from the session."
  ack            110  CS  : serial cumulative-seen-mark, serials seen-frame-set
    "Frames have arrived: all up to the mark, and those of the set."
  high-water-mark 120 CS  : serial last-sent-mark
    "The number of the last frame that was sent."
  solicit-ack    130  CS
    "Ask which frames have arrived."

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
    "Ask what an exchange is."
  query-ok        31  S   : shortstr type, bit durable not-found, typed-table arguments
    "Its type and properties, or that there is none."
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
    "Put the channel into the mode of distributed transactions."
  start           20  C   -> start-ok: short ticket, longstr xid, bit join resume
    "Begin work on a branch: what follows belongs to it."
  start-ok        21  S   : short status
    "The XA return code."
  end             30  C   -> end-ok: short ticket, longstr xid, bit fail suspend
    "End work on a branch: what follows does not belong to it."
  end-ok          31  S   : short status
    "The XA return code."

dtx-coordination 105
  commit          10  C   -> commit-ok: short ticket, longstr xid, bit one-phase
    "Commit a branch."
  commit-ok       11  S   : short status
    "The XA return code."
  forget          20  C   : short ticket, longstr xid
    "Forget how a branch was completed heuristically."
  get-timeout     30  C   -> get-timeout-ok: longstr xid
    "Ask for the timeout of a branch."
  get-timeout-ok  31  S   : long timeout
    "The timeout, in seconds."
  prepare         40  C   -> prepare-ok: short ticket, longstr xid
    "Prepare a branch: it can be committed whatever happens then."
  prepare-ok      41  S   : short status
    "The XA return code."
  recover         50  C   -> recover-ok: short ticket, bit startscan endscan
    "Ask for the branches that are prepared or were completed heuristically."
  recover-ok      51  S   : typed-table in-doubt
    "The xids of these branches."
  rollback        60  C   -> rollback-ok: short ticket, longstr xid
    "Roll back a branch."
  rollback-ok     61  S   : short status
    "The XA return code."
  set-timeout     70  C   : short ticket, longstr xid, long timeout
    "Set the timeout of a branch, in seconds."

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
    "A message, whole or by reference to its body, in either direction. `mandatory` is the field
    reject-unroutable."
  consume         20  C   : short ticket, shortstr queue destination,
                          bit no-local no-ack exclusive, typed-table filter
    "Start a consumer, which is named by its destination."
  cancel          30  C   : shortstr destination
    "Cancel a consumer."
  get             40  C   : short ticket, shortstr queue destination, bit no-ack
    "Get one message from a queue."
  recover         50  C   : bit requeue
    "Deliver unacknowledged messages again."
  open            60  CS  : longstr reference
    "Begin a body that is sent in pieces, under a reference."
  close           70  CS  : longstr reference
    "End a body; its reference is free again."
  append          80  CS  : longstr reference bytes
    "The next piece of a body."
  checkpoint      90  CS  : longstr reference, shortstr identifier
    "Mark an offset in a body, to resume from if the session breaks."
  resume         100  CS  -> offset: longstr reference, shortstr identifier
    "Resume a body from its last mark."
  qos            110  C   : long prefetch-size, short prefetch-count, bit global
    "Limit the unacknowledged messages (prefetch)."
  empty          510  CS
    "The queue is empty."
  reject         520  CS  : short code, shortstr text
    "Reject messages."
  offset         530  CS  : longlong value
    "The number of octets of a body that have arrived."

binding 130
  query           10  C   -> query-ok: short ticket, shortstr exchange queue routing-key,
                          typed-table arguments
    "Ask whether a binding exists."
  query-ok        11  S   : bit exchange-not-found queue-not-found queue-not-matched
                          key-not-matched args-not-matched
    "Which parts of it do not exist."

execution 140
  flush           10  CS
    "Ask which commands are complete."
  complete        20  CS  : serial cumulative-execution-mark, serials ranged-execution-set
    "Commands are complete: all up to the mark, and those of the set."
"""

AMQP_0_10_TRANSITIONAL = ProtocolSpec(
    "0-10t",
    PUBLISHED_0_9,
    DIFFERENCES,
    types=DOMAINS | TRANSITIONAL,
    module="harebell.wire.v09.methods_transitional",
)
"""What Harebell speaks as transitional 0-10."""
