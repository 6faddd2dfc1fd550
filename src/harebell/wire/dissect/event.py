"""One thing that was seen on a connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HEADER = "protocol-header"
METHOD = "method"
COMMAND = "command"
CONTROL = "control"
CONTENT = "content-header"
BODY = "body"
HEARTBEAT = "heartbeat"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Event:
    """A protocol header, a frame, or octets that are neither.

    Args:
        kind: one of the constants of this module.
        from_client: whether the client sent it.
        octets: how long it is on the wire.
        name: of the method, command or control, "queue.declare"; of a content header's class; of
            the version in a protocol header.
        channel: the channel; None where there is none.
        fields: by their names in the specification, secrets masked.
        text: in words what is wrong with it, or what it is.
        body: octets of a message's body.
        raw: the whole frame, secrets masked; empty where they cannot be told from the rest.
        version: as in `harebell connections`, "" until it is known.
    """

    kind: str
    from_client: bool
    octets: int
    name: str = ""
    channel: int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    body: bytes = b""
    raw: bytes = b""
    version: str = ""
