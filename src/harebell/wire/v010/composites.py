"""The base classes of structs, controls and commands of AMQP 0-10.

An attribute that is None, or an empty map, array or set, is not sent. A required field that a peer
omits is zero or empty, as in other brokers.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

Table = dict[str, Any]
Ranges = tuple[tuple[int, int], ...]
"""First and last number of each range."""


class Composite(msgspec.Struct):
    """A struct, control or command. `NAME` is its name in the specification: `message.transfer`."""

    NAME: ClassVar[str] = ""


class Control(Composite):
    """A message between two session or connection endpoints that is not numbered."""


class Command(Composite):
    """A message that a session numbers, completes and may repeat."""
