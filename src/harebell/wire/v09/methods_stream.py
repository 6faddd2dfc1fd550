"""The methods of class `stream` as typed values; see `harebell.wire.v09.methods`.

The class is one of 0-8, 0-9 and transitional 0-10: packets of data without acknowledgements, at a
rate that their consumer chooses.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table


class StreamQos(Method):
    """Limit what is queued for a consumer, and its octets per second; 0 is no limit."""

    prefetch_size: int = 0
    prefetch_count: int = 0
    consume_rate: int = 0
    global_: bool = False


class StreamQosOk(Method):
    """The limits apply."""


class StreamConsume(Method):
    """Start a consumer of packets."""

    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    exclusive: bool = False
    nowait: bool = False
    filter: Table = {}
    ticket: int = 0


class StreamConsumeOk(Method):
    """The consumer has started."""

    consumer_tag: str = ""


class StreamCancel(Method):
    """Cancel a consumer of packets."""

    consumer_tag: str = ""
    nowait: bool = False


class StreamCancelOk(Method):
    """The consumer is cancelled."""

    consumer_tag: str = ""


class StreamPublish(Method):
    """Publish a packet; its content follows."""

    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False
    ticket: int = 0


class StreamReturn(Method):
    """Return a packet that was unroutable or not delivered, with its content."""

    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""


class StreamDeliver(Method):
    """Deliver a packet to a consumer; its content follows."""

    consumer_tag: str = ""
    delivery_tag: int = 0
    exchange: str = ""
    queue: str = ""
