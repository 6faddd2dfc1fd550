"""All loads."""

from collections.abc import Iterator

from bench.hostile import (
    amqp_1_0,
    bodies,
    consuming,
    doors,
    extensions,
    routing,
    settling,
    topology,
    web,
)
from bench.hostile.side import LOADS, Side, load

IDLE = "idle"


@load()
def idle(_: Side) -> Iterator[None]:
    """Nothing: the pair is alone."""
    yield


__all__ = [
    "IDLE",
    "LOADS",
    "amqp_1_0",
    "bodies",
    "consuming",
    "doors",
    "extensions",
    "routing",
    "settling",
    "topology",
    "web",
]
