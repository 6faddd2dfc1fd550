"""What RabbitMQ added to AMQP 0-9-1, as a table that is laid over the standard's.

Clients count on these, so they are part of the version that Harebell speaks. A method that stands
in both tables is meant as it stands here: bits that 0-9-1 reserved got a use, and some methods may
travel both ways.
"""

from __future__ import annotations

EXTENSIONS = """
connection 10
  blocked         60  S   : shortstr reason
  unblocked       61  S
  update-secret   70  C   -> update-secret-ok: longstr new-secret, shortstr reason
  update-secret-ok 71 S

# Class 30 left the standard with 0-9-1, but older clients still ask for their ticket.
access 30
  request         10  C   -> request-ok: shortstr realm, bit exclusive passive active write read
  request-ok      11  S   : short ticket

exchange 40
  declare         10  C   -> declare-ok: short _, shortstr exchange type,
                          bit passive durable auto-delete internal nowait, table arguments
  bind            30  C   -> bind-ok: short _, shortstr destination source routing-key,
                          bit nowait, table arguments
  bind-ok         31  S
  unbind          40  C   -> unbind-ok: short _, shortstr destination source routing-key,
                          bit nowait, table arguments
# Not 41: the number has been 51 since the first implementation.
  unbind-ok       51  S

basic 60
# The server cancels consumers whose queue is gone, and settles publishes in confirm mode.
  cancel          30  CS  -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok       31  CS  : shortstr consumer-tag
  ack             80  CS  : longlong delivery-tag, bit multiple
  nack           120  CS  : longlong delivery-tag, bit multiple requeue

confirm 85
  select          10  C   -> select-ok: bit nowait
  select-ok       11  S
"""
