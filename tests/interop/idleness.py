"""How long connections are left alone that heartbeats have to keep open.

A peer is given up when nothing came from it for two intervals, and it sends twice in each. So one
that stands still for a moment is none that is given up, and one that sends nothing is, long before
the end.
"""

from __future__ import annotations

BEAT_SECONDS = 3
"""The interval that is agreed on: six seconds of silence are too many, and four are not."""

IDLE_SECONDS = 9
"""Longer than either side lives without the other's heartbeats."""
