"""Qpid's own tests of brokers that Harebell does not pass, and why.

docs/protocols/amqp-0-10.md has the same list.
"""

from __future__ import annotations

_MANAGEMENT = "asks Qpid's management over messages, which is Qpid's broker's"

_WHY: dict[str, dict[str, tuple[str, ...]]] = {
    _MANAGEMENT: {
        "BrokerStatsTests": (
            "test_abandoned_alt",
            "test_discards_limit_overflow",
            "test_discards_lvq_replace",
            "test_discards_no_route",
            "test_discards_purge",
            "test_discards_reject",
            "test_discards_ring_overflow",
            "test_discards_ttl",
            "test_enqueues_dequeues",
            "test_exchange_stats",
            "test_message_release",
            "test_reroutes",
            "test_transactional_enqueues_dequeues",
        ),
        "EventTests": (
            "test_queue_autodelete_exclusive",
            "test_queue_autodelete_shared",
            "test_queue_declare",
            "test_queue_delete",
        ),
        "GeneralTests": (
            "test_ambiguous_create_1",
            "test_ambiguous_create_2",
            "test_ambiguous_delete_1",
            "test_ambiguous_delete_2",
            "test_node_disambiguation_1",
            "test_node_disambiguation_2",
        ),
        "ManagementTest": (
            "test_binding_count_on_queue",
            "test_broker_connectivity_oldAPI",
            "test_connection_close",
            "test_connection_stats",
            "test_get_objects",
            "test_immediate_method",
            "test_methods_async",
            "test_methods_sync",
            "test_move_queued_messages",
            "test_move_queued_messages_empty",
            "test_purge_queue",
            "test_reroute_alternate_exchange",
            "test_reroute_invalid_alt_exchange",
            "test_reroute_priority_queue",
            "test_reroute_queue",
            "test_self_session_id",
            "test_standard_exchanges",
            "test_timestamp_config",
        ),
        "MessageTests": ("test_ack",),
        "MultiConsumerMsgGroupTests": (
            "test_default_group_id",
            "test_move_all",
            "test_move_count",
            "test_purge_acquired",
            "test_purge_count",
            "test_purge_free",
            "test_query",
            "test_reroute",
        ),
        "ThresholdTests": (
            "test_alert_count",
            "test_alert_count_alias",
            "test_alert_on_alert_queue",
            "test_alert_size",
            "test_alert_size_alias",
            "test_hysteresis",
        ),
    },
    "publishes before a consumer has no-local: Harebell notes publishers only from then on": {
        "GeneralTests": ("test_nolocal_rerouted",),
    },
    "acquires what was transferred with the accept-mode none, which the document excludes": {
        "MessageTests": ("test_acquire_with_no_accept_and_credit_flow",),
    },
    "expects 531, where the document has invalid-argument, 542": {
        "QueueTests": ("test_purge_empty_name",),
    },
    "expects an internal error, 541, for a binding without `x-match`, which means all": {
        "ExchangeTests": ("testHeadersBindNoMatchArg",),
    },
}

KNOWN: dict[str, str] = {
    f"{group}.{name}": why
    for why, groups in _WHY.items()
    for group, names in groups.items()
    for name in names
}
"""By the names of tests: why they do not pass."""


def as_table() -> str:
    """The list for the documentation."""
    lines = ["| Qpid's tests that do not pass | why |", "|---|---|"]
    for why, groups in _WHY.items():
        for group, names in groups.items():
            lines.append(f"| `{group}`: {', '.join(f'`{name}`' for name in names)} | {why} |")
    return "\n".join(lines) + "\n"
