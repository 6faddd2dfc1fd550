"""AMQP 0-9-1 as published in 2008, as a table (`harebell.wire.v09.spec` says how to read it).

`AMQP_0_9_1` is what the broker and the client speak: the standard with RabbitMQ's extensions laid
over it, and Harebell's own classes beside them.
"""

from __future__ import annotations

from harebell.wire.v09.extensions import TABLES
from harebell.wire.v09.rabbitmq import EXTENSIONS
from harebell.wire.v09.spec import ProtocolSpec

TABLE = """
connection 10
  start           10  S   -> start-ok: octet version-major version-minor, table server-properties,
                          longstr mechanisms locales
  start-ok        11  C   : table client-properties, shortstr mechanism, longstr response,
                          shortstr locale
  secure          20  S   -> secure-ok: longstr challenge
  secure-ok       21  C   : longstr response
  tune            30  S   -> tune-ok: short channel-max, long frame-max, short heartbeat
  tune-ok         31  C   : short channel-max, long frame-max, short heartbeat
  open            40  C   -> open-ok: shortstr virtual-host _, bit _
  open-ok         41  S   : shortstr _
  close           50  CS  -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok        51  CS

channel 20
  open            10  C   -> open-ok: shortstr _
  open-ok         11  S   : longstr _
  flow            20  CS  -> flow-ok: bit active
  flow-ok         21  CS  : bit active
  close           40  CS  -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok        41  CS

exchange 40
  declare         10  C   -> declare-ok: short _, shortstr exchange type,
                          bit passive durable _ _ nowait, table arguments
  declare-ok      11  S
  delete          20  C   -> delete-ok: short _, shortstr exchange, bit if-unused nowait
  delete-ok       21  S

queue 50
  declare         10  C   -> declare-ok: short _, shortstr queue,
                          bit passive durable exclusive auto-delete nowait, table arguments
  declare-ok      11  S   : shortstr queue, long message-count consumer-count
  bind            20  C   -> bind-ok: short _, shortstr queue exchange routing-key, bit nowait,
                          table arguments
  bind-ok         21  S
  purge           30  C   -> purge-ok: short _, shortstr queue, bit nowait
  purge-ok        31  S   : long message-count
  delete          40  C   -> delete-ok: short _, shortstr queue, bit if-unused if-empty nowait
  delete-ok       41  S   : long message-count
  unbind          50  C   -> unbind-ok: short _, shortstr queue exchange routing-key,
                          table arguments
  unbind-ok       51  S

basic 60
  qos             10  C   -> qos-ok: long prefetch-size, short prefetch-count, bit global
  qos-ok          11  S
  consume         20  C   -> consume-ok: short _, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, table arguments
  consume-ok      21  S   : shortstr consumer-tag
  cancel          30  C   -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok       31  S   : shortstr consumer-tag
  publish         40  C   +content: short _, shortstr exchange routing-key,
                          bit mandatory immediate
  return          50  S   +content: short reply-code, shortstr reply-text exchange routing-key
  deliver         60  S   +content: shortstr consumer-tag, longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key
  get             70  C   -> get-ok get-empty: short _, shortstr queue, bit no-ack
  get-ok          71  S   +content: longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key, long message-count
  get-empty       72  S   : shortstr _
  ack             80  C   : longlong delivery-tag, bit multiple
  reject          90  C   : longlong delivery-tag, bit requeue
  recover-async  100  C   : bit requeue
  recover        110  C   -> recover-ok: bit requeue
  recover-ok     111  S

tx 90
  select          10  C   -> select-ok
  select-ok       11  S
  commit          20  C   -> commit-ok
  commit-ok       21  S
  rollback        30  C   -> rollback-ok
  rollback-ok     31  S
"""

PUBLISHED = ProtocolSpec("0-9-1", TABLE)
"""The standard alone. 0-8 is written as its differences from it."""

AMQP_0_9_1 = ProtocolSpec("0-9-1", PUBLISHED, EXTENSIONS, *TABLES)
"""What Harebell speaks as 0-9-1."""
