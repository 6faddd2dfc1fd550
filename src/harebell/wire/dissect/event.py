"""An event on a connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HEADER = "protocol-header"
METHOD = "method"
COMMAND = "command"
CONTROL = "control"
PERFORMATIVE = "performative"
CONTENT = "content-header"
BODY = "body"
HEARTBEAT = "heartbeat"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Event:
    """A protocol header, a frame, or malformed bytes.

    Args:
        kind: one of the constants of this module.
        from_client: whether the client sent it.
        octets: its length in bytes.
        name: of the method, command, control or performative, "queue.declare"; of a content
            header's class; of the version in a protocol header.
        channel: the channel; None where there is none.
        fields: by their names in the specification, secrets masked.
        text: an error, or a description.
        body: bytes of a message's body.
        raw: the whole frame, secrets masked; empty if they cannot be located.
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


_SECRET_FIELDS = {
    "connection.start-ok": ("response",),
    "connection.secure": ("challenge",),
    "connection.secure-ok": ("response",),
    "connection.update-secret": ("new-secret",),
    "sasl-init": ("initial-response",),
    "sasl-challenge": ("challenge",),
    "sasl-response": ("response",),
}


def masked(name: str, fields: dict[str, Any], raw: bytes) -> tuple[dict[str, Any], bytes]:
    """Mask the secrets in the fields and bytes of a method: passwords, challenges, tokens.

    Args:
        name: of the method, command, control or performative.
        fields: by their names in the specification.
        raw: the whole frame.
    """
    for secret_field in _SECRET_FIELDS.get(name, ()):
        secret = fields.get(secret_field)
        if not secret:
            continue
        octets = secret.encode() if isinstance(secret, str) else bytes(secret)
        # Short secrets may occur elsewhere in the frame, too: mask all of it.
        raw = raw.replace(octets, b"*" * len(octets))
        fields = {**fields, secret_field: f"*** ({len(octets)} octets)"}
    return fields, raw
