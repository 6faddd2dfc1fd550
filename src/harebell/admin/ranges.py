"""The arguments for samples: `lengths_age`, `lengths_incr`, `msg_rates_age`, ..."""

from __future__ import annotations

from typing import Annotated

from harebell.admin.command import Argument
from harebell.admin.context import CommandRefused
from harebell.admin.statistics import Range

_MAX_SAMPLES = 10_000

Age = Annotated[
    int | None, Argument("Show samples of this many seconds; needs the flag after it.", "SECONDS")
]
Increment = Annotated[int | None, Argument("Seconds between two samples.", "SECONDS")]


def range_of(age: int | None, increment: int | None, name: str) -> Range | None:
    """Return the range of two arguments; None if neither is given.

    Args:
        age: the argument `<name>_age`.
        increment: the argument `<name>_incr`.
        name: such as "msg_rates".

    Raises:
        CommandRefused: one is missing, or they are no range.
    """
    if age is None and increment is None:
        return None
    if age is None or increment is None:
        raise CommandRefused(f"{name}_age and {name}_incr are used together: give both")
    if age < 1 or increment < 1 or age // increment > _MAX_SAMPLES:
        raise CommandRefused(
            f"{name}_age = {age} and {name}_incr = {increment} are no range: both are at least 1 "
            f"second, for at most {_MAX_SAMPLES} samples"
        )
    return Range(age, increment)
