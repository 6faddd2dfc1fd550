"""The keys of RabbitMQ's configuration file, for warnings about keys without an effect.

`_TREE` has those of 4.3, `_EARLIER` those that only earlier versions from 3.8 have. The text is a
tree: `log(console!(level stdio))` stands for `log.console`, `log.console.level` and
`log.console.stdio`; without the `!`, `log.console` is no key itself. `$name` is any segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_TREE = """
amqp10_client(ssl_options!(cacertfile cacerts($name) cert certfile crl_check depth
key(DSAPrivateKey PrivateKeyInfo RSAPrivateKey) keyfile log_alert password psk_identity
reuse_sessions secure_renegotiate sni verify versions($version)))
amqp_client(ssl_options!(cacertfile cacerts($name) cert certfile crl_check depth
key(DSAPrivateKey PrivateKeyInfo RSAPrivateKey) keyfile log_alert password psk_identity
reuse_sessions secure_renegotiate sni verify versions($version))) anonymous_login_pass
anonymous_login_user auth_backends($num!(authn authz)) auth_mechanisms($name)
background_gc_enabled background_gc_target_interval channel_interceptor(priorities($name))
channel_max_per_node classic_queue(default_version) cluster_exchange_limit
cluster_formation(classic_config(nodes($node)) discovery_retry_interval discovery_retry_limit
dns(hostname) internal_lock_retries lock_retry_limit lock_retry_timeout node_type
peer_discovery_backend registration(enabled) target_cluster_size_hint)
cluster_keepalive_interval cluster_name
cluster_partition_handling!(pause_if_all_down(nodes($name) recover)) cluster_queue_limit
cluster_tags($tag) collect_statistics collect_statistics_interval consumer_disconnected_timeout
consumer_max_per_channel consumer_timeout credential_validator(min_length regexp
validation_backend) default_limits(vhosts($id(max_connections max_queues pattern))) default_pass
default_permissions(configure read write) default_policies(operator($id(apply_to
classic_queues(ha_mode ha_params ha_sync_mode queue_version) delivery_limit expires
max_in_memory_bytes max_in_memory_length max_length max_length_bytes message_ttl queue_pattern
vhost_pattern))) default_queue_type default_user default_user_tags($tag)
default_users($name(configure password read tags vhost_pattern write)) default_vhost
default_worker_pool_size definitions(hashing(algorithm) https(url) import_backend local(path)
skip_if_unchanged tls(cacertfile cert certfile ciphers($cipher) crl_check depth dh
fail_if_no_peer_cert keyfile log_alert log_level password reuse_session reuse_sessions
secure_renegotiate verify versions($version))) delegate_count disk_free_limit(absolute relative)
distribution(listener(interface port_range(max min))) erlang(K)
exchange_types(local_random(enabled)) frame_max handshake_timeout heartbeat hipe_compile
initial_frame_max link_max_per_session listeners(ssl!($name) tcp!($name)) load_definitions
log(channel(file level rotation(compress count date size)) connection(file level
rotation(compress count date size)) console!(color_esc_seqs(alert critical debug emergency error
info notice warning) formatter!(json(field_map verbosity_map) level_format plaintext(format)
single_line time_format) level stdio use_colors) default(level rotation(compress count date
size)) dir error_logger_format_depth exchange!(formatter!(json(field_map verbosity_map)
level_format plaintext(format) single_line time_format) level) federation(file level
rotation(compress count date size)) file!(formatter!(json(field_map verbosity_map) level_format
plaintext(format) single_line time_format) level rotation(compress count date size))
journald!(fields level) mirroring(file level rotation(compress count date size)) queue(file
level rotation(compress count date size)) ra(file level rotation(compress count date size))
summarize_process_state syslog!(facility formatter!(json(field_map verbosity_map) level_format
plaintext(format) single_line time_format) host identity ip level multiline_mode port protocol
ssl_options(cacertfile cert certfile client_renegotiation crl_check depth dh dhfile
fail_if_no_peer_cert honor_cipher_order honor_ecc_order key(DSAPrivateKey PrivateKeyInfo
RSAPrivateKey) keyfile log_alert password psk_identity reuse_sessions secure_renegotiate verify
versions($version)) transport) upgrade(file level rotation(compress count date size)) user(file
level rotation(compress count date size))) loopback_users!($user) max_channels_per_connection
max_connections max_message_size memory_monitor_interval
message_interceptors($stage($name($key))) message_store_shutdown_timeout
metadata_store(khepri(default_timeout snapshot_interval)) mirroring_sync_batch_size
mirroring_sync_max_throughput mnesia_table_loading_retry_limit
mnesia_table_loading_retry_timeout motd_file net_ticktime node_tags($tag) num_acceptors(ssl tcp)
password_hashing_module prevent_startup_if_node_was_reset product(name version) proxy_protocol
queue_index_embed_msgs_below queue_leader_locator queue_master_locator
queue_types(classic(enabled) quorum(enabled) stream(enabled)) quorum_queue(commands_soft_limit
compress_mem_tables compute_checksums continuous_membership_reconciliation(auto_remove enabled
interval target_group_size trigger_interval) initial_cluster_size
max_append_entries_rpc_batch_size member_placement_tag
property_equivalence(relaxed_checks_on_redeclaration) segment_compute_checksums
segment_max_entries segment_max_size_bytes snapshot_chunk_size wal_compute_checksums
wal_max_batch_size wal_max_entries wal_max_size_bytes)
raft(adaptive_failure_detector(detection_threshold heartbeat_interval poll_interval
scaling_factor) data_dir segment_max_entries snapshot_chunk_size wal_hibernate_after
wal_max_batch_size wal_max_entries wal_max_size_bytes) ranch_connection_max reverse_dns_lookups
runtime_parameters(limits($category)) session_max_per_connection socket_writer(gc_threshold)
ssl_allow_poodle_attack ssl_cert_login_from ssl_cert_login_san_index ssl_cert_login_san_type
ssl_handshake_timeout ssl_options(bypass_pem_cache client_renegotiation crl_sources($index!(path
timeout)) honor_cipher_order honor_ecc_order key(DSAPrivateKey PrivateKeyInfo RSAPrivateKey)
log_level) stream(data_dir read_ahead read_ahead_limit replication(address_family port_range(max
min))) sysmon_handler(thresholds(busy_ports busy_processes) triggers(distribution_port port
process(garbage_collection heap_size long_scheduled_execution)))
total_memory_available_override_value vhost_max vhost_restart_strategy
vm_memory_calculation_strategy vm_memory_high_watermark(absolute relative)
vm_memory_high_watermark_paging_ratio
"""

_EARLIER = """
connection_max deprecated_features(permit($name)) definitions(tls(cacerts($name)))
distributed_cookie erlang(W async_threads!(stack_size) crash_dump distribution(interface
net_ticktime port_range(maximum minimum)) distribution_buffer_size fullsweep_after
max_ets_tables max_ports process_limit schedulers(compaction_of_load force_wakeup_interval online
total utilization_balancing) smp) event_exchange(vhost) inet_dist_listen_max inet_dist_listen_min
log(syslog(ssl_options(cacerts($name)))) nodename ssl_options!(cacertfile cacerts($name) cert
certfile ciphers($cipher) crl_check depth dh dhfile fail_if_no_peer_cert keyfile log_alert password
psk_identity reuse_sessions secure_renegotiate verify versions($version))
tcp_listen_options!(backlog buffer delay_send dontroute exit_on_close fd high_msgq_watermark
high_watermark keepalive linger(on timeout) low_msgq_watermark low_watermark nodelay port priority
recbuf send_timeout send_timeout_close sndbuf tos)
"""

PLUGINS = (
    *("amqp1_0", "auth_http", "auth_ldap", "auth_oauth2", "auth_cache", "auth_mechanism_ssl"),
    *("aws", "cluster_formation", "consistent_hash", "delayed_message", "federation", "k8s"),
    *("management", "management_agent", "mqtt", "peer_discovery", "prometheus", "sharding"),
    *("shovel", "stomp", "stream", "tracing", "trust_store", "web_mqtt", "web_stomp"),
)
"""First segments of the keys of RabbitMQ's plugins."""


@cache
def known_keys() -> tuple[str, ...]:
    """Return the keys of RabbitMQ's core, those of 4.3 first."""
    keys = (key for tree in (_TREE, _EARLIER) for key in _walk(re.findall(r"[^\s()]+|[()]", tree)))
    return tuple(dict.fromkeys(keys))


def _walk(tokens: list[str]) -> Iterator[str]:
    path: list[str] = []
    for word, after in zip(tokens, [*tokens[1:], ")"], strict=True):
        if word == ")":
            path.pop()
        elif word != "(":
            name = word.removesuffix("!")
            if after != "(" or word != name:
                yield ".".join((*path, name))
            if after == "(":
                path.append(name)


def is_known(segments: tuple[str, ...]) -> bool:
    """True if RabbitMQ's core, or one of its plugins, has the key."""
    return segments[0] in PLUGINS or any(fits(key, segments) for key in known_keys())


def fits(pattern: str, segments: tuple[str, ...]) -> bool:
    """True if a key has the form of a pattern; `$name` stands for one segment."""
    parts = pattern.split(".")
    return len(parts) == len(segments) and all(
        part.startswith("$") or part == segment
        for part, segment in zip(parts, segments, strict=True)
    )
