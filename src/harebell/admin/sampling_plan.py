"""What is sampled, how often, and how long samples are kept.

The keys are RabbitMQ's: `collect_statistics`, `collect_statistics_interval`,
`management.rates_mode` and `management.sample_retention_policies`.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from harebell.admin.limits import STATISTICS_SECONDS

BASIC, DETAILED, NONE = "basic", "detailed", "none"
"""Values of `rates_mode`."""
COARSE, FINE = "coarse", "fine"
"""Further values of `collect_statistics`."""


class Retention(NamedTuple):
    """How long samples are kept.

    Args:
        seconds: the age of the oldest.
        interval: seconds between two.
    """

    seconds: int
    interval: int


Retentions = tuple[Retention, ...]

OF_OBJECTS: Retentions = (Retention(605, 5),)
"""Retention of queues, exchanges, channels and connections."""
OF_TOTALS: Retentions = (
    *(Retention(605, 5), Retention(3_660, 60)),
    *(Retention(29_400, 600), Retention(86_400, 1_800)),
)
"""Retention of the broker, the node and vhosts: as RabbitMQ's, for 10 minutes to 24 hours."""


class SamplingPlan(Struct, frozen=True):
    """What is sampled.

    Args:
        rates_mode: BASIC, DETAILED or NONE.
        collect: NONE, COARSE or FINE.
        seconds: the interval of the samples.
        totals: the retention of the broker, the node and vhosts (`global`).
        objects: that of queues, exchanges, channels and connections (`basic`).
        details: that of what passes between a channel and a queue or exchange (`detailed`).
        disabled: whether the HTTP API leaves out what is counted.
        queue_totals: whether its queues have their numbers of messages then.
    """

    rates_mode: str = BASIC
    collect: str = FINE
    seconds: float = STATISTICS_SECONDS
    totals: Retentions = OF_TOTALS
    objects: Retentions = OF_OBJECTS
    details: Retentions = OF_OBJECTS
    disabled: bool = False
    queue_totals: bool = False

    @property
    def samples(self) -> bool:
        """Whether anything is sampled."""
        return NONE not in (self.rates_mode, self.collect)

    @property
    def samples_details(self) -> bool:
        """Whether the counters of channels by exchange and by queue are sampled."""
        return self.samples and self.collect == FINE

    @property
    def retention_of_details(self) -> Retentions:
        """How long samples of details are kept: () for the last two, which is enough for rates."""
        return self.details if self.rates_mode == DETAILED else ()
