"""Frames of AMQP 1.0, which `harebell.kernels.performatives` draws."""

from __future__ import annotations

from harebell.base.errors import FramingError
from harebell.kernels.performatives import (
    AMQP,
    HEAD,
    SASL,
    PerformativeScanner,
    PerformativeSink,
)

MIN_MAX_FRAME_SIZE = 512
"""Octets that every peer accepts in a frame (AMQP 1.0 2.8.2)."""
DOFF = 2
EMPTY = b"\0\0\0\x08\2\0\0\0"
"""A frame without a body: it keeps the connection alive."""

__all__ = [
    "AMQP",
    "DOFF",
    "EMPTY",
    "HEAD",
    "MIN_MAX_FRAME_SIZE",
    "SASL",
    "PerformativeScanner",
    "PerformativeSink",
    "encode_frame",
    "unexpected_type",
]


def encode_frame(body: bytes, channel: int = 0, kind: int = AMQP) -> bytes:
    """Return a frame with a body, which is a performative and its payload, or empty."""
    return (len(body) + HEAD).to_bytes(4) + bytes((DOFF, kind)) + channel.to_bytes(2) + body


def unexpected_type(kind: int, expected: int) -> FramingError:
    """Return the error for a frame of a type that may not come now."""
    mode = "amqp" if expected == AMQP else "sasl"
    return FramingError(f"unexpected frame type {kind} in {mode} mode (expected {expected})")
