"""Decode the traffic between a client and a broker, frame by frame, for display.

`Dissector` decodes one connection: bytes of either direction in, events out. Malformed input
becomes an event that says so, and the rest of that direction is only counted. `harebell dump` is
the proxy that uses it.
"""

from __future__ import annotations

from harebell.wire.dissect.connection import Dissector
from harebell.wire.dissect.event import Event

__all__ = ["Dissector", "Event"]
