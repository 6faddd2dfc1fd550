"""Verbs of RabbitMQ that Harebell cannot do, and why."""

from __future__ import annotations

_ERLANG = "it is about the Erlang runtime, and Harebell runs on Python"
_CLUSTER = "a Harebell broker is a cluster of one node"
_MIRRORS = "Harebell has no mirrored queues"
_REPLICAS = "a queue of Harebell has one replica"
_SECRETS = (
    "values of the configuration are not encrypted: name a file, such as tls_key_password_file"
)

_EVENTS = "the log of events is the exchange amq.rabbitmq.event: bind a queue to it"
_INTERCEPTORS = "there are no plugins that could have a channel interceptor"
_SOURCES = "the addresses and users of the latest logins are always counted"
_WAL = "a quorum queue has no Raft log: its segment files are removed when they are read"
_PEEK = "use `harebell queues browse`, which shows messages of any queue from any place"

REASONS: dict[str, str] = {
    **dict.fromkeys(
        (
            *("eval", "eval_file", "exec", "force_gc", "erlang_version", "erlang_cookie_hash"),
            *("erlang_cookie_sources", "observer", "remote_shell", "runtime_thread_stats"),
            *("maybe_stuck", "list_ciphers", "list_hashes"),
        ),
        _ERLANG,
    ),
    **dict.fromkeys(
        (
            *("join_cluster", "forget_cluster_node", "rename_cluster_node"),
            *("update_cluster_nodes", "force_boot", "force_standalone_khepri_boot"),
            *("discover_peers", "change_cluster_node_type"),
        ),
        _CLUSTER,
    ),
    **dict.fromkeys(("cancel_sync_queue", "sync_queue"), _MIRRORS),
    **dict.fromkeys(
        (
            *("add_member", "delete_member", "grow", "grow_to_count", "shrink"),
            *("transfer_leadership", "add_replica", "delete_replica", "restart_stream"),
            "coordinator_status",
        ),
        _REPLICAS,
    ),
    **dict.fromkeys(("reclaim_quorum_memory", "force_checkpoint"), _WAL),
    **dict.fromkeys(("encode", "decode", "encrypt_conf_value", "decrypt_conf_value"), _SECRETS),
    "consume_event_stream": _EVENTS,
    "disable_auth_attempt_source_tracking": _SOURCES,
    "message_size_stats": "use the histogram rabbitmq_message_size_bytes of the metrics",
    "peek": _PEEK,
    "set_channel_interceptor_priorities": _INTERCEPTORS,
}
"""The reason by verb."""


def reason_of(name: str) -> str | None:
    """Return why a verb of RabbitMQ is refused; None if RabbitMQ has no such verb."""
    return REASONS.get(name)
