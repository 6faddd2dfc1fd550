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
  start           10  S   -> start-ok: octet version-major version-minor=9, table server-properties,
                          longstr mechanisms locales
    "The server states its properties and offers SASL mechanisms, separated by spaces."
  start-ok        11  C   : table client-properties, shortstr mechanism, longstr response,
                          shortstr locale
    "The client states its properties and chooses a SASL mechanism."
  secure          20  S   -> secure-ok: longstr challenge
    "The next challenge of the SASL mechanism."
  secure-ok       21  C   : longstr response
    "The client's response to the challenge."
  tune            30  S   -> tune-ok: short channel-max, long frame-max, short heartbeat
    "The limits that the server offers; 0 is no limit."
  tune-ok         31  C   : short channel-max, long frame-max, short heartbeat
    "The limits that the client chooses."
  open            40  C   -> open-ok: shortstr virtual-host=/ _capabilities, bit _insist
    "The client chooses a virtual host."
  open-ok         41  S   : shortstr _known-hosts
    "The connection is open."
  close           50  CS  -> close-ok: short reply-code=200, shortstr reply-text,
                          short class-id method-id
    "Close the connection; class and method say what failed, or are 0."
  close-ok        51  CS
    "The connection is closed; this is the last frame."

channel 20
  open            10  C   -> open-ok: shortstr _
    "Open the channel of the frame."
  open-ok         11  S   : longstr _
    "The channel is open."
  flow            20  CS  -> flow-ok: bit active
    "Ask the peer to stop sending content, or to continue."
  flow-ok         21  CS  : bit active
    "Whether the peer sends content now."
  close           40  CS  -> close-ok: short reply-code=200, shortstr reply-text,
                          short class-id method-id
    "Close the channel; class and method say what failed, or are 0."
  close-ok        41  CS
    "The channel is closed, and its number is free."

exchange 40
  declare         10  C   -> declare-ok: short _ticket, shortstr exchange type=direct,
                          bit passive durable _auto-delete _internal nowait, table arguments,
                          shortstr* alternate-exchange
    "Declare an exchange; with `passive` only check that it exists."
  declare-ok      11  S
    "The exchange exists."
  delete          20  C   -> delete-ok: short _ticket, shortstr exchange, bit if-unused nowait
    "Delete an exchange and its bindings."
  delete-ok       21  S
    "The exchange is deleted."

queue 50
  declare         10  C   -> declare-ok: short _ticket, shortstr queue,
                          bit passive durable exclusive auto-delete nowait, table arguments,
                          shortstr* alternate-exchange
    "Declare a queue, or with `passive` check that it exists; "" lets the server name it."
  declare-ok      11  S   : shortstr queue, long message-count consumer-count
    "The queue exists; the numbers of its ready messages and consumers."
  bind            20  C   -> bind-ok: short _ticket, shortstr queue exchange routing-key,
                          bit nowait, table arguments
    "Bind a queue to an exchange."
  bind-ok         21  S
    "The binding exists."
  purge           30  C   -> purge-ok: short _ticket, shortstr queue, bit nowait
    "Remove the ready messages of a queue."
  purge-ok        31  S   : long message-count
    "The number of removed messages."
  delete          40  C   -> delete-ok: short _ticket, shortstr queue,
                          bit if-unused if-empty nowait
    "Delete a queue with its messages."
  delete-ok       41  S   : long message-count
    "The number of messages that were deleted with it."
  unbind          50  C   -> unbind-ok: short _ticket, shortstr queue exchange routing-key,
                          table arguments
    "Remove a binding."
  unbind-ok       51  S
    "The binding is removed."

basic 60
  qos             10  C   -> qos-ok: long prefetch-size, short prefetch-count, bit global
    "Limit the unacknowledged messages (prefetch)."
  qos-ok          11  S
    "The limit applies."
  consume         20  C   -> consume-ok: short _ticket, shortstr queue consumer-tag,
                          bit no-local no-ack exclusive nowait, table arguments
    "Start a consumer; "" lets the server choose its tag."
  consume-ok      21  S   : shortstr consumer-tag
    "The consumer has started."
  cancel          30  C   -> cancel-ok: shortstr consumer-tag, bit nowait
    "Cancel a consumer; from the server: its queue was deleted (RabbitMQ)."
  cancel-ok       31  S   : shortstr consumer-tag
    "The consumer is cancelled."
  publish         40  C   +content: short _ticket, shortstr exchange routing-key,
                          bit mandatory immediate
    "Publish a message to an exchange; its content follows."
  return          50  S   +content: short reply-code=312,
                          shortstr reply-text=NO_ROUTE exchange routing-key
    "Return an unroutable message; its content follows."
  deliver         60  S   +content: shortstr consumer-tag, longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key
    "Deliver a message to a consumer; its content follows."
  get             70  C   -> get-ok get-empty: short _ticket, shortstr queue, bit no-ack
    "Get one message from a queue."
  get-ok          71  S   +content: longlong delivery-tag, bit redelivered,
                          shortstr exchange routing-key, long message-count
    "The message; its content follows."
  get-empty       72  S   : shortstr _
    "The queue is empty."
  ack             80  C   : longlong delivery-tag, bit multiple
    "Acknowledge deliveries; from the server: confirm publishes (RabbitMQ)."
  reject          90  C   : longlong delivery-tag, bit requeue
    "Reject a delivery."
  recover-async  100  C   : bit requeue
    "Deliver unacknowledged messages again, without a reply."
  recover        110  C   -> recover-ok: bit requeue
    "Deliver unacknowledged messages again."
  recover-ok     111  S
    "Unacknowledged messages are delivered again from now on."

tx 90
  select          10  C   -> select-ok
    "Put the channel into transaction mode, and begin a transaction."
  select-ok       11  S
    "A transaction has begun."
  commit          20  C   -> commit-ok
    "Carry out the transaction's publishes and acknowledgements."
  commit-ok       21  S
    "The transaction is committed, and the next one has begun."
  rollback        30  C   -> rollback-ok
    "Discard the transaction's publishes and acknowledgements."
  rollback-ok     31  S
    "The transaction is rolled back, and the next one has begun."
"""

PUBLISHED = ProtocolSpec("0-9-1", TABLE)
"""The standard alone. 0-8 is written as its differences from it."""

AMQP_0_9_1 = ProtocolSpec("0-9-1", PUBLISHED, EXTENSIONS, *TABLES)
"""What Harebell speaks as 0-9-1."""
