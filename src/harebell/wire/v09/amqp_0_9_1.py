"""AMQP 0-9-1: every method of the standard. The table's form is described in `harebell.wire.v09.spec`."""

from __future__ import annotations

from harebell.wire.v09.rabbitmq import EXTENSIONS
from harebell.wire.v09.spec import ProtocolSpec

STANDARD = """
class connection 10
s 10 start       ? start-ok     version-major:octet version-minor:octet server-properties:table mechanisms:longstr locales:longstr
c 11 start-ok                   client-properties:table mechanism:shortstr response:longstr locale:shortstr
s 20 secure      ? secure-ok    challenge:longstr
c 21 secure-ok                  response:longstr
s 30 tune        ? tune-ok      channel-max:short frame-max:long heartbeat:short
c 31 tune-ok                    channel-max:short frame-max:long heartbeat:short
c 40 open        ? open-ok      virtual-host:shortstr -:shortstr -:bit
s 41 open-ok                    -:shortstr
b 50 close       ? close-ok     reply-code:short reply-text:shortstr class-id:short method-id:short
b 51 close-ok

class channel 20
c 10 open        ? open-ok      -:shortstr
s 11 open-ok                    -:longstr
b 20 flow        ? flow-ok      active:bit
b 21 flow-ok                    active:bit
b 40 close       ? close-ok     reply-code:short reply-text:shortstr class-id:short method-id:short
b 41 close-ok

class exchange 40
c 10 declare     ? declare-ok   -:short exchange:shortstr type:shortstr passive:bit durable:bit auto-delete:bit internal:bit nowait:bit arguments:table
s 11 declare-ok
c 20 delete      ? delete-ok    -:short exchange:shortstr if-unused:bit nowait:bit
s 21 delete-ok

class queue 50
c 10 declare     ? declare-ok   -:short queue:shortstr passive:bit durable:bit exclusive:bit auto-delete:bit nowait:bit arguments:table
s 11 declare-ok                 queue:shortstr message-count:long consumer-count:long
c 20 bind        ? bind-ok      -:short queue:shortstr exchange:shortstr routing-key:shortstr nowait:bit arguments:table
s 21 bind-ok
c 30 purge       ? purge-ok     -:short queue:shortstr nowait:bit
s 31 purge-ok                   message-count:long
c 40 delete      ? delete-ok    -:short queue:shortstr if-unused:bit if-empty:bit nowait:bit
s 41 delete-ok                  message-count:long
c 50 unbind      ? unbind-ok    -:short queue:shortstr exchange:shortstr routing-key:shortstr arguments:table
s 51 unbind-ok

class basic 60
c 10 qos         ? qos-ok       prefetch-size:long prefetch-count:short global:bit
s 11 qos-ok
c 20 consume     ? consume-ok   -:short queue:shortstr consumer-tag:shortstr no-local:bit no-ack:bit exclusive:bit nowait:bit arguments:table
s 21 consume-ok                 consumer-tag:shortstr
c 30 cancel      ? cancel-ok    consumer-tag:shortstr nowait:bit
s 31 cancel-ok                  consumer-tag:shortstr
c 40 publish     +              -:short exchange:shortstr routing-key:shortstr mandatory:bit immediate:bit
s 50 return      +              reply-code:short reply-text:shortstr exchange:shortstr routing-key:shortstr
s 60 deliver     +              consumer-tag:shortstr delivery-tag:longlong redelivered:bit exchange:shortstr routing-key:shortstr
c 70 get         ? get-ok,get-empty  -:short queue:shortstr no-ack:bit
s 71 get-ok      +              delivery-tag:longlong redelivered:bit exchange:shortstr routing-key:shortstr message-count:long
s 72 get-empty                  -:shortstr
c 80 ack                        delivery-tag:longlong multiple:bit
c 90 reject                     delivery-tag:longlong requeue:bit
c 100 recover-async             requeue:bit
c 110 recover    ? recover-ok   requeue:bit
s 111 recover-ok

class tx 90
c 10 select      ? select-ok
s 11 select-ok
c 20 commit      ? commit-ok
s 21 commit-ok
c 30 rollback    ? rollback-ok
s 31 rollback-ok
"""

AMQP_0_9_1 = ProtocolSpec("0-9-1", 0, 9, STANDARD + EXTENSIONS)
"""What Harebell speaks as 0-9-1: the standard with RabbitMQ's extensions."""
