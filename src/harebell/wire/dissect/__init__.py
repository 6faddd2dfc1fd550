"""What passes between a client and a broker, frame by frame, in the words of the specification.

`Dissector` is one connection seen from between the two: octets of either direction in, events out.
It believes nothing: what cannot be read becomes an event that says so, and what follows it in that
direction is only counted. `harebell dump` is the proxy that feeds it.
"""

from __future__ import annotations

from harebell.wire.dissect.connection import Dissector
from harebell.wire.dissect.event import Event

__all__ = ["Dissector", "Event"]
