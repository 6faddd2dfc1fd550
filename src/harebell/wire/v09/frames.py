"""Frame types, the scanner that finds frames, and the buffer that they are written into.

`harebell.kernels.frames` draws the layouts.
"""

from __future__ import annotations

from harebell.kernels.frames import FrameScanner, FrameSink
from harebell.kernels.output import OutBuffer

METHOD = 1
HEADER = 2
BODY = 3
HEARTBEAT = 8

MANDATORY = 1
IMMEDIATE = 2

__all__ = [
    "BODY",
    "HEADER",
    "HEARTBEAT",
    "IMMEDIATE",
    "MANDATORY",
    "METHOD",
    "FrameScanner",
    "FrameSink",
    "OutBuffer",
]
