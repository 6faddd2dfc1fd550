"""The classes file and stream (classes 70 and 80): as in 0-9, with the tickets of this version."""

from __future__ import annotations

from harebell.front.amqp_0_9_1 import file, stream
from harebell.front.amqp_0_10_transitional.access import ticketed
from harebell.front.common.access_tickets import READ, WRITE
from harebell.wire.v09 import methods_older as old

HANDLERS = {
    old.FileConsume: ticketed(READ, (70, 20), file.consume),
    old.FilePublish: ticketed(WRITE, (70, 60), file.publish),
    old.StreamConsume: ticketed(READ, (80, 20), stream.consume),
    old.StreamPublish: ticketed(WRITE, (80, 40), stream.publish),
}
