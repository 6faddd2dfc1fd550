"""AMQP 0-9 as tables (`harebell.wire.v09.spec` says how to read them).

0-9 stands between 0-8 and 0-9-1, and its numbers collide with neither. So it also has the
extensions that RabbitMQ accepts from clients of 0-9-1, and those of Qpid's clients of 0-9.
basic.consume calls its table `filter` in the document. basic.recover, which has no answer, is named
basic.recover-async here, as in 0-9-1, which has the answered one under a number of its own. The
class `message` of the document is not served.
"""

from __future__ import annotations

from harebell.wire.v09 import methods_file, methods_older, methods_peers, methods_stream
from harebell.wire.v09.rabbitmq import EXTENSIONS
from harebell.wire.v09.spec import ProtocolSpec

USED = (methods_file, methods_older, methods_peers, methods_stream)
"""Modules whose classes the tables name."""

STANDARD = """
connection 10
  start            10  S  -> start-ok: octet version-major version-minor,
                          plain-table server-properties, longstr mechanisms locales
  start-ok         11  C  : plain-table client-properties, shortstr mechanism, longstr response,
                          shortstr locale
  secure           20  S  -> secure-ok: longstr challenge
  secure-ok        21  C  : longstr response
  tune             30  S  -> tune-ok: short channel-max, long frame-max, short heartbeat
  tune-ok          31  C  : short channel-max, long frame-max, short heartbeat
  open             40  C  -> open-ok redirect: shortstr virtual-host capabilities, bit insist
  open-ok          41  S  : shortstr known-hosts
  redirect         42  S  : shortstr host known-hosts
  close            50  CS -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok         51  CS

channel 20
  open             10  C  -> open-ok: shortstr _
  open-ok          11  S  : longstr _
  flow             20  CS -> flow-ok: bit active
  flow-ok          21  CS : bit active
  close            40  CS -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok         41  CS
  resume           50  C  -> ok: longstr channel-id
  ping             60  CS -> ok
  pong             70  CS -> ok
  ok               80  CS

access 30
  request          10  C  -> request-ok: shortstr realm, bit exclusive passive active write read
  request-ok       11  S  : short ticket

exchange 40
  declare          10  C  -> declare-ok: short ticket, shortstr exchange type,
                          bit passive durable auto-delete internal nowait, plain-table arguments
  declare-ok       11  S
  delete           20  C  -> delete-ok: short ticket, shortstr exchange, bit if-unused nowait
  delete-ok        21  S

queue 50
  declare          10  C  -> declare-ok: short ticket, shortstr queue,
                          bit passive durable exclusive auto-delete nowait, plain-table arguments
  declare-ok       11  S  : shortstr queue, long message-count consumer-count
  bind             20  C  -> bind-ok: short ticket, shortstr queue exchange routing-key,
                          bit nowait, plain-table arguments
  bind-ok          21  S
  unbind           50  C  -> unbind-ok: short ticket, shortstr queue exchange routing-key,
                          plain-table arguments
  unbind-ok        51  S
  purge            30  C  -> purge-ok: short ticket, shortstr queue, bit nowait
  purge-ok         31  S  : long message-count
  delete           40  C  -> delete-ok: short ticket, shortstr queue, bit if-unused if-empty nowait
  delete-ok        41  S  : long message-count

basic 60
  qos              10  C  -> qos-ok: long prefetch-size, short prefetch-count, bit global
  qos-ok           11  S
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table arguments
  consume-ok       21  S  : shortstr consumer-tag
  cancel           30  C  -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok        31  S  : shortstr consumer-tag
  publish          40  C  +content: short ticket, shortstr exchange routing-key,
                          bit mandatory immediate
  return           50  S  +content: short reply-code, shortstr reply-text exchange routing-key
  deliver          60  S  +content: shortstr consumer-tag, longlong delivery-tag,
                          bit redelivered, shortstr exchange routing-key
  get              70  C  -> get-ok get-empty: short ticket, shortstr queue, bit no-ack
  get-ok           71  S  +content: longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key, long message-count
  get-empty        72  S  : shortstr _
  ack              80  C  : longlong delivery-tag, bit multiple
  reject           90  C  : longlong delivery-tag, bit requeue
  recover-async   100  C  : bit requeue

file 70
  qos              10  C  -> qos-ok: long prefetch-size, short prefetch-count, bit global
  qos-ok           11  S
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table filter
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
                          bit no-local exclusive nowait, plain-table filter
  consume-ok       21  S  : shortstr consumer-tag
  cancel           30  C  -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok        31  S  : shortstr consumer-tag
  publish          40  C  +content: short ticket, shortstr exchange routing-key,
                          bit mandatory immediate
  return           50  S  +content: short reply-code, shortstr reply-text exchange routing-key
  deliver          60  S  +content: shortstr consumer-tag, longlong delivery-tag,
                          shortstr exchange queue

tx 90
  select           10  C  -> select-ok
  select-ok        11  S
  commit           20  C  -> commit-ok
  commit-ok        21  S
  rollback         30  C  -> rollback-ok
  rollback-ok      31  S

dtx 100
  select           10  C  -> select-ok
  select-ok        11  S
  start            20  C  -> start-ok: shortstr dtx-identifier
  start-ok         21  S

tunnel 110
  request          10  C  +content: plain-table meta-data
"""

QPID = """
exchange 40
  bound            22  C  -> bound-ok: shortstr exchange routing-key queue
  bound-ok         23  S  : short reply-code, shortstr reply-text

basic 60
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table? arguments
  recover-sync    102  C  -> recover-sync-ok: bit requeue
  recover-sync-ok 101  S
"""

LATER = """
exchange 40
  declare          10  C  -> declare-ok: short ticket, shortstr exchange type,
                          bit passive durable auto-delete internal nowait, plain-table arguments

basic 60
  recover         110  C  -> recover-ok: bit requeue
  recover-ok      111  S
"""
"""What 0-9-1 has and RabbitMQ takes from 0-9 clients."""

AMQP_0_9 = ProtocolSpec("0-9", STANDARD, EXTENSIONS, QPID, LATER)
"""What Harebell speaks as 0-9."""
