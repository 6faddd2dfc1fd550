"""What RabbitMQ added to AMQP 0-9-1, as a table that is laid over the standard's.

Clients count on these, so they are part of the version that Harebell speaks. A method that stands
in both tables is meant as it stands here: bits that 0-9-1 reserved got a use, and some methods may
travel both ways.
"""

from __future__ import annotations

EXTENSIONS = """
connection 10
  blocked         60  S   : shortstr reason
    "The server blocks publishers (RabbitMQ)."
  unblocked       61  S
    "The server does not block publishers any more (RabbitMQ)."
  update-secret   70  C   -> update-secret-ok: longstr new-secret, shortstr reason
    "The client renews the credentials of a running connection (RabbitMQ)."
  update-secret-ok 71 S
    "The server has accepted the new credentials (RabbitMQ)."

# Class 30 left the standard with 0-9-1, but older clients still ask for their ticket.
access 30
  request         10  C   -> request-ok: shortstr realm=/data,
                          bit exclusive passive=1 active=1 write=1 read=1
    "Ask for an access ticket (before 0-9-1; still accepted)."
  request-ok      11  S   : short ticket=1
    "The ticket. In 0-9-1 nothing checks it."

exchange 40
  declare         10  C   -> declare-ok: short _, shortstr exchange type,
                          bit passive durable auto-delete internal nowait, table arguments
  bind            30  C   -> bind-ok: short _, shortstr destination source routing-key,
                          bit nowait, table arguments
    "Bind the destination exchange to the source exchange (RabbitMQ)."
  bind-ok         31  S
    "The binding exists (RabbitMQ)."
  unbind          40  C   -> unbind-ok: short _, shortstr destination source routing-key,
                          bit nowait, table arguments
    "Remove a binding between exchanges (RabbitMQ)."
# Not 41: the number has been 51 since the first implementation.
  unbind-ok       51  S
    "The binding is removed (RabbitMQ)."

basic 60
# The server cancels consumers whose queue is gone, and settles publishes in confirm mode.
  cancel          30  CS  -> cancel-ok: shortstr consumer-tag, bit nowait
  cancel-ok       31  CS  : shortstr consumer-tag
  ack             80  CS  : longlong delivery-tag, bit multiple
  nack           120  CS  : longlong delivery-tag, bit multiple requeue
    "Reject deliveries; from the server: publishes failed (RabbitMQ)."

confirm 85
  select          10  C   -> select-ok: bit nowait
    "Confirm publishes on this channel from now on (RabbitMQ)."
  select-ok       11  S
    "Publishes are confirmed; the next one has number 1 (RabbitMQ)."
"""
