"""AMQP 0-10 as published in 2008, as a table (`harebell.wire.v010.spec` documents its format).

The errata are included: `dtx.xid` has a code and a size of four octets. In one place the table
allows more than the specification: priority and delivery-mode, which it requires and which peers
have always omitted, are optional.
"""

from __future__ import annotations

from harebell.wire.v010.spec import ProtocolSpec

STANDARD = """
connection 1
  start             1 S  -> start-ok : map server-properties, array mechanisms! locales!
    "Start of the handshake: the server's properties and SASL mechanisms."
  start-ok          2 C : map client-properties, str8 mechanism!, vbin32 response!, str8 locale!
    "The client's properties, its SASL mechanism and first response."
  secure            3 S  -> secure-ok : vbin32 challenge!
    "A SASL challenge of the server."
  secure-ok         4 C : vbin32 response!
    "The client's SASL response."
  tune              5 S  -> tune-ok : uint16 channel-max max-frame-size heartbeat-min
        heartbeat-max
    "The limits that the server offers."
  tune-ok           6 C : uint16 channel-max! max-frame-size heartbeat
    "The limits that the client chooses."
  open              7 C  -> open-ok redirect : str8 virtual-host!, array capabilities, bit
        insist
    "The virtual host that the client opens."
  open-ok           8 S : array known-hosts
    "The connection is open."
  redirect          9 S : str16 host!, array known-hosts
    "The client must connect to another server."
  heartbeat        10 CS
    "A heartbeat."
  close            11 CS -> close-ok : uint16 reply-code!, str8 reply-text
    "Close the connection."
  close-ok         12 CS
    "Confirm connection.close."

session 2
  struct header - 1 1 : bit sync
    "The header of every command."
  struct command-fragment - 0 0 : sequence-no command-id!, byte-ranges byte-ranges!
    "The parts of a command that have arrived."
  attach            1 CS -> attached detached : vbin16 name!, bit force
    "Attach a session to this channel."
  attached          2 CS : vbin16 name!
    "Confirm session.attach."
  detach            3 CS -> detached : vbin16 name!
    "Detach the session from this channel."
  detached          4 CS : vbin16 name!, uint8 code!
    "The session is detached; a code other than 0 is the reason."
  request-timeout   5 CS -> timeout : uint32 timeout
    "Request the time that the session lives without a channel, in seconds."
  timeout           6 CS : uint32 timeout
    "The time that the session lives without a channel, in seconds."
  command-point     7 CS : sequence-no command-id!, uint64 command-offset!
    "The number of the next command."
  expected          8 CS : sequence-set commands!, array fragments
    "The commands that a receiver expects."
  confirmed         9 CS : sequence-set commands, array fragments
    "The commands that a receiver has stored."
  completed        10 CS : sequence-set commands, bit timely-reply
    "The commands that a receiver has executed."
  known-completed  11 CS : sequence-set commands
    "The commands that the sender knows to be completed."
  flush            12 CS : bit expected confirmed completed
    "Request expected, confirmed or completed at once."
  gap              13 CS : sequence-set commands
    "Commands that will never be sent."

execution 3
  sync              1 CS
    "Wait for the completion of all commands up to this one."
  result            2 CS : sequence-no command-id!, struct32 value
    "The result of a command."
  exception         3 CS : uint16 error-code!, sequence-no command-id, uint8 class-code
        command-code field-index, str16 description, map error-info
    "The error of a command; it ends the session."

message 4
  struct delivery-properties 1 4 2 : bit discard-unroutable immediate redelivered, uint8
        priority delivery-mode, uint64 ttl, datetime timestamp expiration, str8 exchange
        routing-key, str16 resume-id, uint64 resume-ttl
    "Properties for brokers: how to deliver a message."
  struct fragment-properties 2 4 2 : bit first last, uint64 fragment-size
    "The part of a message in this transfer."
  struct reply-to - 2 2 : str8 exchange routing-key
    "The exchange and routing key for replies."
  struct message-properties 3 4 2 : uint64 content-length, uuid message-id, vbin16
        correlation-id, message.reply-to reply-to, str8 content-type content-encoding, vbin16
        user-id app-id, map application-headers
    "Properties for applications."
  struct acquired 4 4 2 : sequence-set transfers!
    "The messages that a peer has acquired."
  struct message-resume-result 5 4 2 : uint64 offset
    "The offset at which a message is resumed."
  transfer          1 CS +delivery-properties fragment-properties message-properties : str8
        destination, uint8 accept-mode! acquire-mode!
    "Transfer a message, in either direction."
  accept            2 CS : sequence-set transfers!
    "Accept messages: the receiver takes responsibility for them."
  reject            3 CS : sequence-set transfers!, uint16 code!, str8 text
    "Reject messages that the receiver cannot process."
  release           4 CS : sequence-set transfers!, bit set-redelivered
    "Release messages: the receiver returns them to the queue."
  acquire           5 C  => acquired : sequence-set transfers!
    "Acquire messages that were delivered unacquired."
  resume            6 CS => message-resume-result : str8 destination, str16 resume-id!
    "Resume an interrupted transfer."
  subscribe         7 C : str8 queue! destination, uint8 accept-mode! acquire-mode!, bit
        exclusive, str16 resume-id, uint64 resume-ttl, map arguments
    "Subscribe to a queue."
  cancel            8 C : str8 destination!
    "Cancel a subscription."
  set-flow-mode     9 CS : str8 destination, uint8 flow-mode!
    "Set the credit mode of a subscription: credit by hand, or a window."
  flow             10 CS : str8 destination, uint8 unit!, uint32 value
    "Add credit."
  flush            11 C : str8 destination
    "Deliver what is ready, then discard the credit."
  stop             12 CS : str8 destination
    "Discard the credit."

tx 5
  select            1 C
    "Make publishing and accepting transactional."
  commit            2 C
    "Commit the transaction."
  rollback          3 C
    "Roll back the transaction."

dtx 6
  struct xa-result 1 4 2 : uint16 status!
    "The result of an operation on a branch."
  struct xid 4 4 2 : uint32 format!, vbin8 global-id! branch-id!
    "The identifier of a transaction branch."
  struct get-timeout-result 2 4 2 : uint32 timeout!
    "The timeout of a branch, in seconds."
  struct recover-result 3 4 2 : array in-doubt!
    "The branches that are prepared or heuristically completed."
  select            1 C
    "Make the session use transaction branches."
  start             2 C  => xa-result : dtx.xid xid!, bit join resume
    "Start work for a branch."
  end               3 C  => xa-result : dtx.xid xid!, bit fail suspend
    "End work for a branch."
  commit            4 C  => xa-result : dtx.xid xid!, bit one-phase
    "Commit a branch."
  forget            5 C : dtx.xid xid!
    "Forget a heuristically completed branch."
  get-timeout       6 C  => get-timeout-result : dtx.xid xid!
    "Get the timeout of a branch."
  prepare           7 C  => xa-result : dtx.xid xid!
    "Prepare a branch for commit."
  recover           8 C  => recover-result
    "List prepared branches."
  rollback          9 C  => xa-result : dtx.xid xid!
    "Roll back a branch."
  set-timeout      10 C : dtx.xid xid!, uint32 timeout!
    "Set the timeout of a branch, in seconds."

exchange 7
  struct exchange-query-result 1 4 2 : str8 type, bit durable not-found, map arguments
    "The result of exchange.query."
  struct exchange-bound-result 2 4 2 : bit exchange-not-found queue-not-found queue-not-matched
        key-not-matched args-not-matched
    "The result of exchange.bound: what does not exist or match."
  declare           1 C : str8 exchange! type! alternate-exchange, bit passive durable
        auto-delete, map arguments
    "Create an exchange unless it exists."
  delete            2 C : str8 exchange!, bit if-unused
    "Delete an exchange."
  query             3 C  => exchange-query-result : str8 name
    "Query an exchange."
  bind              4 C : str8 queue! exchange! binding-key!, map arguments
    "Bind a queue to an exchange."
  unbind            5 C : str8 queue! exchange! binding-key!
    "Remove a binding."
  bound             6 C  => exchange-bound-result : str8 exchange queue! binding-key, map
        arguments
    "Query a binding."

queue 8
  struct queue-query-result 1 4 2 : str8 queue! alternate-exchange, bit durable exclusive
        auto-delete, map arguments, uint32 message-count! subscriber-count!
    "The result of queue.query."
  declare           1 C : str8 queue! alternate-exchange, bit passive durable exclusive
        auto-delete, map arguments
    "Create a queue unless it exists."
  delete            2 C : str8 queue!, bit if-unused if-empty
    "Delete a queue."
  purge             3 C : str8 queue!
    "Remove the messages of a queue that no session has acquired."
  query             4 C  => queue-query-result : str8 queue!
    "Query a queue."

file 9
  struct file-properties 1 4 2 : str8 content-type content-encoding, map headers, uint8
        priority, str8 reply-to message-id filename, datetime timestamp, str8 cluster-id
    "The properties of a file message."
  qos               1 C  -> qos-ok : uint32 prefetch-size, uint16 prefetch-count, bit global
    "Set the prefetch limits."
  qos-ok            2 S
    "Confirm file.qos."
  consume           3 C  -> consume-ok : str8 queue consumer-tag, bit no-local no-ack exclusive
        nowait, map arguments
    "Subscribe to a queue."
  consume-ok        4 S : str8 consumer-tag
    "Confirm file.consume, with the consumer tag."
  cancel            5 C : str8 consumer-tag
    "Cancel a subscription."
  open              6 CS -> open-ok : str8 identifier, uint64 content-size
    "Request to stage a message."
  open-ok           7 CS -> stage : uint64 staged-size
    "Accept the message for staging, from an offset on."
  stage             8 CS +file-properties
    "Send content to the staging area."
  publish           9 C : str8 exchange routing-key, bit mandatory immediate, str8 identifier
    "Publish a message to an exchange."
  return           10 S  +file-properties : uint16 reply-code, str8 reply-text exchange
        routing-key
    "Return a message."
  deliver          11 S : str8 consumer-tag, uint64 delivery-tag, bit redelivered, str8 exchange
        routing-key identifier
    "Deliver a message to a consumer."
  ack              12 C : uint64 delivery-tag, bit multiple
    "Acknowledge deliveries."
  reject           13 C : uint64 delivery-tag, bit requeue
    "Reject a delivery."

stream 10
  struct stream-properties 1 4 2 : str8 content-type content-encoding, map headers, uint8
        priority, datetime timestamp
    "The properties of a stream message."
  qos               1 C  -> qos-ok : uint32 prefetch-size, uint16 prefetch-count, uint32
        consume-rate, bit global
    "Set the prefetch limits."
  qos-ok            2 S
    "Confirm stream.qos."
  consume           3 C  -> consume-ok : str8 queue consumer-tag, bit no-local exclusive nowait,
        map arguments
    "Subscribe to a queue."
  consume-ok        4 S : str8 consumer-tag
    "Confirm stream.consume, with the consumer tag."
  cancel            5 C : str8 consumer-tag
    "Cancel a subscription."
  publish           6 C  +stream-properties : str8 exchange routing-key, bit mandatory immediate
    "Publish a message to an exchange."
  return            7 S  +stream-properties : uint16 reply-code, str8 reply-text exchange
        routing-key
    "Return a message."
  deliver           8 S  +stream-properties : str8 consumer-tag, uint64 delivery-tag, str8
        exchange queue!
    "Deliver a message to a consumer."
"""

AMQP_0_10 = ProtocolSpec(STANDARD)
