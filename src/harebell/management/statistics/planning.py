"""What is sampled, by the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.admin.sampling_plan import OF_OBJECTS, OF_TOTALS, Retention, Retentions, SamplingPlan
from harebell.config.values import RETENTION_AGES

if TYPE_CHECKING:
    from harebell.config import Config

_MS = 1000


def plan_of(config: Config) -> SamplingPlan:
    """Return what is sampled; a section without retention policies has the usual ones."""
    policies = config.management_sample_retention_policies
    return SamplingPlan(
        rates_mode=config.management_rates_mode,
        collect=config.collect_statistics,
        seconds=config.collect_statistics_interval / _MS,
        totals=_retentions(policies.get("global"), OF_TOTALS),
        objects=_retentions(policies.get("basic"), OF_OBJECTS),
        details=_retentions(policies.get("detailed"), OF_OBJECTS),
        disabled=config.management_disable_stats,
        queue_totals=config.management_enable_queue_totals,
    )


def _retentions(section: dict[str, int] | None, usual: Retentions) -> Retentions:
    """Return the retentions of a section, the shortest first."""
    if not section:
        return usual
    retentions = [
        Retention(RETENTION_AGES.get(age) or int(age), interval)
        for age, interval in section.items()
    ]
    return tuple(sorted(retentions))
