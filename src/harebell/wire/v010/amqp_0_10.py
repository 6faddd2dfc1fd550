"""AMQP 0-10 as published in 2008, as a table (`harebell.wire.v010.spec` documents its format).

The errata are included: `dtx.xid` has a code and a size of four octets. In one place the table
allows more than the specification: priority and delivery-mode, which it requires and which peers
have always omitted, are optional.
"""

from __future__ import annotations

from harebell.wire.v010 import commands, controls
from harebell.wire.v010.spec import ProtocolSpec

_CLASSES = (controls, commands)  # to import them is to make their classes known

STANDARD = """
connection 1
  start             1 S  -> start-ok : map server-properties, array mechanisms! locales!
  start-ok          2 C : map client-properties, str8 mechanism!, vbin32 response!, str8 locale!
  secure            3 S  -> secure-ok : vbin32 challenge!
  secure-ok         4 C : vbin32 response!
  tune              5 S  -> tune-ok : uint16 channel-max max-frame-size heartbeat-min
        heartbeat-max
  tune-ok           6 C : uint16 channel-max! max-frame-size heartbeat
  open              7 C  -> open-ok redirect : str8 virtual-host!, array capabilities, bit
        insist
  open-ok           8 S : array known-hosts
  redirect          9 S : str16 host!, array known-hosts
  heartbeat        10 CS
  close            11 CS -> close-ok : uint16 reply-code!, str8 reply-text
  close-ok         12 CS

session 2
  struct header - 1 1 : bit sync
  struct command-fragment - 0 0 : sequence-no command-id!, byte-ranges byte-ranges!
  attach            1 CS -> attached detached : vbin16 name!, bit force
  attached          2 CS : vbin16 name!
  detach            3 CS -> detached : vbin16 name!
  detached          4 CS : vbin16 name!, uint8 code!
  request-timeout   5 CS -> timeout : uint32 timeout
  timeout           6 CS : uint32 timeout
  command-point     7 CS : sequence-no command-id!, uint64 command-offset!
  expected          8 CS : sequence-set commands!, array fragments
  confirmed         9 CS : sequence-set commands, array fragments
  completed        10 CS : sequence-set commands, bit timely-reply
  known-completed  11 CS : sequence-set commands
  flush            12 CS : bit expected confirmed completed
  gap              13 CS : sequence-set commands

execution 3
  sync              1 CS
  result            2 CS : sequence-no command-id!, struct32 value
  exception         3 CS : uint16 error-code!, sequence-no command-id, uint8 class-code
        command-code field-index, str16 description, map error-info

message 4
  struct delivery-properties 1 4 2 : bit discard-unroutable immediate redelivered, uint8
        priority delivery-mode, uint64 ttl, datetime timestamp expiration, str8 exchange
        routing-key, str16 resume-id, uint64 resume-ttl
  struct fragment-properties 2 4 2 : bit first last, uint64 fragment-size
  struct reply-to - 2 2 : str8 exchange routing-key
  struct message-properties 3 4 2 : uint64 content-length, uuid message-id, vbin16
        correlation-id, message.reply-to reply-to, str8 content-type content-encoding, vbin16
        user-id app-id, map application-headers
  struct acquired 4 4 2 : sequence-set transfers!
  struct message-resume-result 5 4 2 : uint64 offset
  transfer          1 CS +delivery-properties fragment-properties message-properties : str8
        destination, uint8 accept-mode! acquire-mode!
  accept            2 CS : sequence-set transfers!
  reject            3 CS : sequence-set transfers!, uint16 code!, str8 text
  release           4 CS : sequence-set transfers!, bit set-redelivered
  acquire           5 C  => acquired : sequence-set transfers!
  resume            6 CS => message-resume-result : str8 destination, str16 resume-id!
  subscribe         7 C : str8 queue! destination, uint8 accept-mode! acquire-mode!, bit
        exclusive, str16 resume-id, uint64 resume-ttl, map arguments
  cancel            8 C : str8 destination!
  set-flow-mode     9 CS : str8 destination, uint8 flow-mode!
  flow             10 CS : str8 destination, uint8 unit!, uint32 value
  flush            11 C : str8 destination
  stop             12 CS : str8 destination

tx 5
  select            1 C
  commit            2 C
  rollback          3 C

dtx 6
  struct xa-result 1 4 2 : uint16 status!
  struct xid 4 4 2 : uint32 format!, vbin8 global-id! branch-id!
  struct get-timeout-result 2 4 2 : uint32 timeout!
  struct recover-result 3 4 2 : array in-doubt!
  select            1 C
  start             2 C  => xa-result : dtx.xid xid!, bit join resume
  end               3 C  => xa-result : dtx.xid xid!, bit fail suspend
  commit            4 C  => xa-result : dtx.xid xid!, bit one-phase
  forget            5 C : dtx.xid xid!
  get-timeout       6 C  => get-timeout-result : dtx.xid xid!
  prepare           7 C  => xa-result : dtx.xid xid!
  recover           8 C  => recover-result
  rollback          9 C  => xa-result : dtx.xid xid!
  set-timeout      10 C : dtx.xid xid!, uint32 timeout!

exchange 7
  struct exchange-query-result 1 4 2 : str8 type, bit durable not-found, map arguments
  struct exchange-bound-result 2 4 2 : bit exchange-not-found queue-not-found queue-not-matched
        key-not-matched args-not-matched
  declare           1 C : str8 exchange! type! alternate-exchange, bit passive durable
        auto-delete, map arguments
  delete            2 C : str8 exchange!, bit if-unused
  query             3 C  => exchange-query-result : str8 name
  bind              4 C : str8 queue! exchange! binding-key!, map arguments
  unbind            5 C : str8 queue! exchange! binding-key!
  bound             6 C  => exchange-bound-result : str8 exchange queue! binding-key, map
        arguments

queue 8
  struct queue-query-result 1 4 2 : str8 queue! alternate-exchange, bit durable exclusive
        auto-delete, map arguments, uint32 message-count! subscriber-count!
  declare           1 C : str8 queue! alternate-exchange, bit passive durable exclusive
        auto-delete, map arguments
  delete            2 C : str8 queue!, bit if-unused if-empty
  purge             3 C : str8 queue!
  query             4 C  => queue-query-result : str8 queue!

file 9
  struct file-properties 1 4 2 : str8 content-type content-encoding, map headers, uint8
        priority, str8 reply-to message-id filename, datetime timestamp, str8 cluster-id
  qos               1 C  -> qos-ok : uint32 prefetch-size, uint16 prefetch-count, bit global
  qos-ok            2 S
  consume           3 C  -> consume-ok : str8 queue consumer-tag, bit no-local no-ack exclusive
        nowait, map arguments
  consume-ok        4 S : str8 consumer-tag
  cancel            5 C : str8 consumer-tag
  open              6 CS -> open-ok : str8 identifier, uint64 content-size
  open-ok           7 CS -> stage : uint64 staged-size
  stage             8 CS +file-properties
  publish           9 C : str8 exchange routing-key, bit mandatory immediate, str8 identifier
  return           10 S  +file-properties : uint16 reply-code, str8 reply-text exchange
        routing-key
  deliver          11 S : str8 consumer-tag, uint64 delivery-tag, bit redelivered, str8 exchange
        routing-key identifier
  ack              12 C : uint64 delivery-tag, bit multiple
  reject           13 C : uint64 delivery-tag, bit requeue

stream 10
  struct stream-properties 1 4 2 : str8 content-type content-encoding, map headers, uint8
        priority, datetime timestamp
  qos               1 C  -> qos-ok : uint32 prefetch-size, uint16 prefetch-count, uint32
        consume-rate, bit global
  qos-ok            2 S
  consume           3 C  -> consume-ok : str8 queue consumer-tag, bit no-local exclusive nowait,
        map arguments
  consume-ok        4 S : str8 consumer-tag
  cancel            5 C : str8 consumer-tag
  publish           6 C  +stream-properties : str8 exchange routing-key, bit mandatory immediate
  return            7 S  +stream-properties : uint16 reply-code, str8 reply-text exchange
        routing-key
  deliver           8 S  +stream-properties : str8 consumer-tag, uint64 delivery-tag, str8
        exchange queue!
"""

AMQP_0_10 = ProtocolSpec(STANDARD)
