"""Brokers for the tests of applications.

`RunningBroker` is a broker in a process of its own, as in production. `VirtualBroker` is one in the
process of the test, whose time passes only when the test says so, whose traffic is recorded, and
whose network can fail. With pytest, both are fixtures: see `harebell.testing.plugin` and
docs/guides/testing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.testing.record import Frame, Transfer
    from harebell.testing.running import DidNotStart, RunningBroker
    from harebell.testing.stream_calls import Checkpoint, StreamCalls
    from harebell.testing.virtual import VirtualBroker

__all__ = [
    "Checkpoint",
    "DidNotStart",
    "Frame",
    "RunningBroker",
    "StreamCalls",
    "Transfer",
    "VirtualBroker",
]

_ROOMS = {
    "Checkpoint": "stream_calls",
    "DidNotStart": "running",
    "Frame": "record",
    "RunningBroker": "running",
    "StreamCalls": "stream_calls",
    "Transfer": "record",
    "VirtualBroker": "virtual",
}


def __getattr__(name: str) -> Any:
    # A process that only starts a broker does not import one.
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
