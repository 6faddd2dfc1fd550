"""What must not be read in a trace: whatever proves who somebody is."""

from __future__ import annotations

from typing import Any

_FIELDS = {
    "connection.start-ok": ("response",),
    "connection.secure": ("challenge",),
    "connection.secure-ok": ("response",),
    "connection.update-secret": ("new-secret",),
}


def masked(name: str, fields: dict[str, Any], raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The fields and the octets of a method without its secrets.

    Args:
        name: of the method, command or control.
        fields: by their names in the specification.
        raw: the whole frame.
    """
    for field in _FIELDS.get(name, ()):
        secret = fields.get(field)
        if not secret:
            continue
        octets = secret.encode() if isinstance(secret, str) else bytes(secret)
        # Short secrets may occur elsewhere in the frame, too: all of it goes.
        raw = raw.replace(octets, b"*" * len(octets))
        fields = {**fields, field: f"*** ({len(octets)} octets)"}
    return fields, raw
