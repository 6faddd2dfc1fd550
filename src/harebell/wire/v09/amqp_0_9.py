"""AMQP 0-9 as its differences from 0-8 (`harebell.wire.v09.spec` says how to read them).

0-9 stands between 0-8 and 0-9-1, and its numbers collide with neither. So it also has the
extensions that RabbitMQ accepts from clients of 0-9-1, and those of Qpid's clients of 0-9.
basic.consume calls its table `filter` in the document. basic.recover, which has no answer, is named
basic.recover-async here, as in 0-9-1, which has the answered one under a number of its own. The
class `message` of the document is not served.
"""

from __future__ import annotations

from harebell.wire.v09.amqp_0_8 import METHODS_OLDER
from harebell.wire.v09.amqp_0_8 import PUBLISHED as PUBLISHED_0_8
from harebell.wire.v09.rabbitmq import EXTENSIONS
from harebell.wire.v09.spec import ProtocolSpec

DIFFERENCES = """
- test

connection 10
  redirect         42  S  : shortstr host known-hosts
  close            50  CS -> close-ok: short reply-code, shortstr reply-text,
                          short class-id method-id
  close-ok         51  CS

channel 20
  open-ok          11  S  : longstr _
  resume           50  C  -> ok: longstr channel-id
    "Resume a channel of a connection that broke (0-9)."
  ping             60  CS -> ok
    "Ask for a pong (0-9)."
  pong             70  CS -> ok
    "Answer a ping (0-9)."
  ok               80  CS
    "The answer to resume, ping and pong (0-9)."
  - alert

queue 50
  unbind           50  C  -> unbind-ok: short ticket, shortstr queue exchange routing-key,
                          plain-table arguments
  unbind-ok        51  S

basic 60
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table arguments
  recover-async   100  C  : bit requeue
  - recover

file 70
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table filter

stream 80
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local exclusive nowait, plain-table filter
"""

QPID = """
exchange 40
  bound            22  C  -> bound-ok: shortstr exchange routing-key queue
  bound-ok         23  S  : short reply-code, shortstr reply-text

basic 60
  consume          20  C  -> consume-ok: short ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, plain-table? arguments
  recover-sync    102  C  -> recover-sync-ok: bit requeue
    "Deliver unacknowledged messages again, with a reply (Qpid's 0-9)."
  recover-sync-ok 101  S
    "Unacknowledged messages are delivered again from now on (Qpid's 0-9)."
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

PUBLISHED = ProtocolSpec("0-9", PUBLISHED_0_8, DIFFERENCES, module=METHODS_OLDER)
"""The document alone. Transitional 0-10 is written as its differences from it."""

AMQP_0_9 = ProtocolSpec("0-9", PUBLISHED, EXTENSIONS, QPID, LATER, module=METHODS_OLDER)
"""What Harebell speaks as 0-9."""
