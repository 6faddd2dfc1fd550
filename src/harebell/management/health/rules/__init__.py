"""The rules, in the order in which findings are shown: what stops clients comes first.

Each file has one rule as `RULE`. Its thresholds are keys of the configuration.
"""

from __future__ import annotations

NAMES = (
    *("blocked_publishers", "trend", "queue_fills", "no_consumer", "all_unacknowledged"),
    *("redelivery_loop", "old_messages", "dead_letters", "queries", "slow_syncs"),
    *("certificates", "connection_churn", "standby"),
)
