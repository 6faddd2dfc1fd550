"""Verbs of RabbitMQ that Harebell cannot do, and why."""

from __future__ import annotations

_ERLANG = "it is about the Erlang runtime, and Harebell runs on Python"
_CLUSTER = "a Harebell broker is a cluster of one node"
_MIRRORS = "Harebell has no mirrored queues"
_REPLICAS = "a queue of Harebell has one replica"
_APP = (
    "a Harebell broker has no application apart from its process: use `rabbitmqctl shutdown`, and "
    "start it again with `harebell serve`"
)
_RESET = (
    "a running broker keeps its data: stop it, and delete its data directory, which "
    "`rabbitmqctl status` names"
)
_MEMORY = "memory_high_watermark and disk_free_limit are set in the configuration of the broker"
_SECRETS = (
    "values of the configuration are not encrypted: name a file, such as tls_key_password_file"
)

REASONS: dict[str, str] = {
    **dict.fromkeys(("stop_app", "start_app"), _APP),
    **dict.fromkeys(("reset", "force_reset"), _RESET),
    **dict.fromkeys(
        (
            *("eval", "eval_file", "exec", "force_gc", "erlang_version", "erlang_cookie_hash"),
            *("erlang_cookie_sources", "observer", "remote_shell", "runtime_thread_stats"),
            *("maybe_stuck", "list_ciphers", "list_hashes", "resolver_info"),
            *("command_line_arguments", "consume_event_stream"),
        ),
        _ERLANG,
    ),
    **dict.fromkeys(
        (
            *("join_cluster", "forget_cluster_node", "rename_cluster_node"),
            *("update_cluster_nodes", "force_boot", "force_standalone_khepri_boot"),
            *("discover_peers", "drain", "revive", "post_upgrade", "change_cluster_node_type"),
            *("await_online_quorum_plus_one", "has_reached_target_cluster_size"),
        ),
        _CLUSTER,
    ),
    **dict.fromkeys(
        (
            *("cancel_sync_queue", "sync_queue", "remove_classic_queue_mirroring_from_policies"),
            *("check_if_cluster_has_classic_queue_mirroring_policy",),
            *("check_if_node_is_mirror_sync_critical",),
        ),
        _MIRRORS,
    ),
    **dict.fromkeys(
        (
            *("add_member", "delete_member", "grow", "grow_to_count", "shrink", "quorum_status"),
            *("rebalance", "reclaim_quorum_memory", "transfer_leadership", "peek"),
            *("add_replica", "delete_replica", "restart_stream", "stream_status"),
            *("coordinator_status", "force_checkpoint", "check_if_node_is_quorum_critical"),
            *("check_for_quorum_queues_without_an_elected_leader",),
            *("check_if_new_quorum_queue_replicas_have_finished_initial_sync",),
        ),
        _REPLICAS,
    ),
    **dict.fromkeys(
        (
            *("set_disk_free_limit", "set_vm_memory_high_watermark"),
            *("activate_free_disk_space_monitoring", "deactivate_free_disk_space_monitoring"),
        ),
        _MEMORY,
    ),
    **dict.fromkeys(("encode", "decode", "encrypt_conf_value", "decrypt_conf_value"), _SECRETS),
}
"""The reason by verb."""

OTHERS = (
    *("list_channel_interceptors", "list_deprecated_features", "reconcile_vhosts"),
    *("restart_vhost", "resume_listeners", "suspend_listeners"),
    *("set_channel_interceptor_priorities", "certificates", "cipher_suites"),
    *("check_if_any_deprecated_features_are_used", "check_if_metadata_store_is_initialized"),
    *("check_if_metadata_store_is_initialized_with_data", "metadata_store_status"),
    *("disable_auth_attempt_source_tracking", "enable_auth_attempt_source_tracking"),
    *("list_network_interfaces", "list_node_auth_attempt_stats", "list_policies_that_match"),
    *("log_location", "log_tail", "log_tail_stream", "message_size_stats", "os_env"),
    *("reset_node_auth_attempt_metrics", "resolve_hostname", "tls_versions"),
    *("list_operator_policies_with_classic_queue_mirroring",),
    *("list_policies_with_classic_queue_mirroring",),
)
"""Verbs of RabbitMQ that are not made yet."""


def reason_of(name: str) -> str | None:
    """Return why a verb of RabbitMQ is refused; None if RabbitMQ has no such verb."""
    if name in REASONS:
        return REASONS[name]
    return "Harebell does not have it" if name in OTHERS else None
