"""RabbitMQ's extensions of AMQP 0-9-1. They replace or add to what the standard's table says."""

from __future__ import annotations

EXTENSIONS = """
class connection 10
s 60 blocked                    reason:shortstr
s 61 unblocked
c 70 update-secret ? update-secret-ok  new-secret:longstr reason:shortstr
s 71 update-secret-ok

class access 30
c 10 request     ? request-ok   realm:shortstr exclusive:bit passive:bit active:bit write:bit read:bit
s 11 request-ok                 ticket:short

class exchange 40
c 30 bind        ? bind-ok      -:short destination:shortstr source:shortstr routing-key:shortstr nowait:bit arguments:table
s 31 bind-ok
c 40 unbind      ? unbind-ok    -:short destination:shortstr source:shortstr routing-key:shortstr nowait:bit arguments:table
s 51 unbind-ok

class basic 60
b 30 cancel      ? cancel-ok    consumer-tag:shortstr nowait:bit
b 31 cancel-ok                  consumer-tag:shortstr
b 80 ack                        delivery-tag:longlong multiple:bit
b 120 nack                      delivery-tag:longlong multiple:bit requeue:bit

class confirm 85
c 10 select      ? select-ok    nowait:bit
s 11 select-ok
"""
