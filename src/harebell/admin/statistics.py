"""Rates and histories in the answers of commands, as RabbitMQ's HTTP API has them.

    "publish": 120, "publish_details": {"rate": 4.0}

and for a range of the last 60 seconds, a sample every 5 seconds, also

    "publish_details": {"rate": 4.0, "samples": [{"sample": 120, "timestamp": 1764000000000}, ...],
                        "avg_rate": 3.8, "avg": 100.0}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harebell.admin.sampling_plan import SamplingPlan
from harebell.base.counters import NAMES

if TYPE_CHECKING:
    from harebell.base.counters import Counters

_MS = 1000
QUEUE_STATS = (
    *("publish", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty"),
    *("redeliver", "ack", "deliver_get"),
)
"""The message statistics of a queue."""
CHANNEL_STATS = (*NAMES, "deliver_get")
"""The message statistics of a channel, a vhost and the broker."""


class Range(NamedTuple):
    """Which samples are wanted.

    Args:
        age: the seconds up to now.
        increment: the seconds between two samples.
    """

    age: int
    increment: int


class Series(Protocol):
    """The samples of one thing."""

    def rate(self, name: str) -> float:
        """Return the change per second between the last two samples."""

    def trend(self, name: str, seconds: int) -> float:
        """Return the change per second over the last seconds, as far as samples are kept."""

    def samples(self, name: str, period: Range, value: int) -> list[tuple[int, int]]:
        """Return samples as (milliseconds since 1970, value), the newest first.

        Args:
            name: of the counter.
            period: the range.
            value: its value now, for a thing that has not changed in the range.
        """


class Statistics(Protocol):
    """The samples of a broker; `harebell.management.statistics` takes them.

    Attributes:
        plan: what is sampled.
    """

    @property
    def plan(self) -> SamplingPlan:
        """What is sampled, and how long samples are kept."""

    def series(self, resource: object) -> Series:
        """Return the samples of a queue, exchange, channel, connection or vhost."""

    def broker(self) -> Series:
        """Return the samples of the whole broker."""

    def node(self) -> Series:
        """Return the samples of the process."""

    def idle_since(self, moved_at: int) -> int | None:
        """Return since when a thing is idle, in milliseconds since 1970; None if it is not.

        Args:
            moved_at: when it has last changed; 0 for never.
        """


class NoSeries:
    """No samples: all rates are 0."""

    def rate(self, name: str) -> float:
        """Return 0."""
        return 0.0

    def trend(self, name: str, seconds: int) -> float:
        """Return 0."""
        return 0.0

    def samples(self, name: str, period: Range, value: int) -> list[tuple[int, int]]:
        """Return no samples."""
        return []


NO_SERIES = NoSeries()
NO_RATES = NoSeries()
"""Stands for samples that are switched off: answers have no rates then."""


class NoStatistics:
    """The statistics of a broker that takes no samples."""

    plan = SamplingPlan()

    def series(self, resource: object) -> Series:
        """Return no samples."""
        return NO_SERIES

    def broker(self) -> Series:
        """Return no samples."""
        return NO_SERIES

    def node(self) -> Series:
        """Return no samples."""
        return NO_SERIES

    def idle_since(self, moved_at: int) -> int | None:
        """Return None: it is not known."""
        return None


def details(series: Series, name: str, period: Range | None, value: int) -> dict[str, Any]:
    """Return the member `<name>_details` for a value; empty if samples are switched off."""
    if series is NO_RATES:
        return {}
    details: dict[str, Any] = {"rate": series.rate(name)}
    if period is not None:
        samples = series.samples(name, period, value)
        details["samples"] = [{"sample": value, "timestamp": at} for at, value in samples]
        details["avg_rate"] = _average_rate(samples)
        details["avg"] = sum(value for _, value in samples) / len(samples) if samples else 0.0
    return details


def _average_rate(samples: Sequence[tuple[int, int]]) -> float:
    if len(samples) < 2:
        return 0.0
    (newest, last), (oldest, first) = samples[0], samples[-1]
    return (last - first) * _MS / (newest - oldest)


def with_details(
    values: Mapping[str, int], series: Series, period: Range | None = None
) -> dict[str, Any]:
    """Return values, each with its details."""
    row: dict[str, Any] = {}
    for name, value in values.items():
        row[name] = value
        if series is not NO_RATES:
            row[f"{name}_details"] = details(series, name, period, value)
    return row


def message_stats(
    counters: Counters,
    series: Series,
    names: Sequence[str] = CHANNEL_STATS,
    period: Range | None = None,
) -> dict[str, Any]:
    """Return the member `message_stats`, with zeros for what has not happened."""
    return with_details({name: value_of(counters, name) for name in names}, series, period)


def value_of(counters: Counters, name: str) -> int:
    """Return a counter, or `deliver_get`: the sum of all deliveries and gets."""
    if name == "deliver_get":
        return counters.deliver + counters.deliver_no_ack + counters.get + counters.get_no_ack
    value: int = getattr(counters, name)
    return value
