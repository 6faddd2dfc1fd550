"""Why keys of RabbitMQ have no effect in Harebell: the ends of the warnings about them.

`REASONS` has prefixes of keys, where `$name` is any segment. The longest prefix that fits a key
decides.
"""

from __future__ import annotations

_ERLANG = "it is about the Erlang runtime, and Harebell runs on Python"
_CLUSTER = "a Harebell broker is a cluster of one node"
_MIRRORS = "there are no mirrored queues"
_LOGS = "a queue is a log in segment files, whose size segment_bytes sets"
_CLIENTS = "Harebell opens no connections to other brokers"
_ONLY_AMQP = "Harebell serves AMQP 0-8 to 0-10, no other protocol"
_AMQP_1 = "Harebell does not serve AMQP 1.0"
_BUILT_IN = "it is built in, without settings"
_CERT_LOGIN = "the name of a certificate is its distinguished_name or common_name"
_OPENSSL = "OpenSSL, which Python uses for TLS, decides this itself"
_SOCKETS = "of sockets, backlog, nodelay, keepalive, linger, sndbuf and recbuf can be set"
_TLS_FILES = "certificates and keys are read from PEM files: certfile, keyfile, cacertfile"

REASONS: dict[str, str] = {
    "amqp10_client": _CLIENTS,
    "amqp1_0": _AMQP_1,
    "amqp_client": _CLIENTS,
    "auth_cache": "the cache is in the memory of the broker",
    "auth_http": "its files and timeouts are the keys that there are",
    "auth_mechanism_ssl": _BUILT_IN,
    "auth_oauth2": "one resource server and one issuer are configured",
    "auth_ldap": "there is no LDAP backend of users",
    "aws": _CLUSTER,
    "background_gc_enabled": _ERLANG,
    "background_gc_target_interval": _ERLANG,
    "channel_interceptor": "there are no plugins that intercept channels",
    "classic_queue": _LOGS,
    "cluster_formation": _CLUSTER,
    "cluster_keepalive_interval": _CLUSTER,
    "cluster_partition_handling": _CLUSTER,
    "consistent_hash": _BUILT_IN,
    "consumer_disconnected_timeout": "a consumer ends with its connection",
    "default_policies.operator.$id.classic_queues": _MIRRORS,
    "default_worker_pool_size": _ERLANG,
    "definitions.hashing": "definitions are compared by their SHA-256",
    "definitions.tls": _OPENSSL,
    "delayed_message": _BUILT_IN,
    "delegate_count": _ERLANG,
    "distribution": _ERLANG,
    "deprecated_features": "nothing of RabbitMQ's list is switched off here",
    "distributed_cookie": _ERLANG,
    "erlang": _ERLANG,
    "event_exchange": _BUILT_IN,
    "federation": _CLIENTS,
    "hipe_compile": _ERLANG,
    "inet_dist_listen_max": _ERLANG,
    "inet_dist_listen_min": _ERLANG,
    "k8s": _CLUSTER,
    "link_max_per_session": _AMQP_1,
    "log.console.color_esc_seqs": "lines on the console have no colors",
    "log.console.use_colors": "lines on the console have no colors",
    "log.error_logger_format_depth": _ERLANG,
    "log.exchange.formatter.json.verbosity_map": "JSON lines have no verbosity",
    "log.console.formatter.json.verbosity_map": "JSON lines have no verbosity",
    "log.file.formatter.json.verbosity_map": "JSON lines have no verbosity",
    "log.default.rotation": "log.file.rotation sets how the log file is rotated",
    "log.journald.fields": "entries of the journal have category and process beside its fields",
    "log.syslog.formatter.json.verbosity_map": "JSON lines have no verbosity",
    "log.syslog.multiline_mode": "a line of the log has no line breaks",
    "log.syslog.ssl_options": "syslog over TLS is left to the syslog daemon",
    "log.summarize_process_state": _ERLANG,
    "management": "the HTTP API has no such setting",
    "management.http_log_dir": "requests to the HTTP API are in the log at level debug",
    "management.oauth_client_secret": "the web interface is a public client: it sends PKCE",
    "management.oauth_initiated_logon_type": "people sign in from the web interface",
    "management.oauth_response_type": "the web interface asks for a code",
    "management_agent": "the HTTP API has no such setting",
    "memory_monitor_interval": "memory is compared with its limit at every publish",
    "message_interceptors": "the interceptors are set_header_timestamp and set_header_routing_node",
    "message_store_shutdown_timeout": "shutdown_grace_seconds is the time that a stop may take",
    "metadata_store": "definitions are in a database of the data directory, without replicas",
    "mirroring_sync_batch_size": _MIRRORS,
    "mirroring_sync_max_throughput": _MIRRORS,
    "mnesia_table_loading_retry_limit": _CLUSTER,
    "mnesia_table_loading_retry_timeout": _CLUSTER,
    "motd_file": "the broker prints no banner",
    "mqtt": _ONLY_AMQP,
    "net_ticktime": _CLUSTER,
    "nodename": "node_name of harebell.toml is the name of the broker",
    "num_acceptors": _ERLANG,
    "peer_discovery": _CLUSTER,
    "prevent_startup_if_node_was_reset": _CLUSTER,
    "prometheus": "the metrics have no such setting",
    "queue_index_embed_msgs_below": _LOGS,
    "queue_leader_locator": _CLUSTER,
    "queue_master_locator": _CLUSTER,
    "quorum_queue": "a quorum queue has one replica, in segment files as other queues",
    "raft": "a quorum queue has one replica, and there is no Raft log",
    "reverse_dns_lookups": "addresses are shown as they are, so that no login waits for DNS",
    "runtime_parameters": "the number of parameters has no limit",
    "session_max_per_connection": _AMQP_1,
    "sharding": "there is no exchange of type x-modulus-hash that makes its queues",
    "shovel": _CLIENTS,
    "socket_writer": _ERLANG,
    "ssl_allow_poodle_attack": "SSL 3.0 is not served",
    "ssl_handshake_timeout": "handshake_timeout counts from the accept, TLS handshake included",
    "ssl_cert_login_san_index": _CERT_LOGIN,
    "ssl_cert_login_san_type": _CERT_LOGIN,
    "ssl_options": _OPENSSL,
    "ssl_options.crl_sources": "certificates are not compared with revocation lists",
    "ssl_options.key": _TLS_FILES,
    "ssl_options.depth": "Python has no setting of it; OpenSSL accepts chains of up to 100",
    "stomp": _ONLY_AMQP,
    "stream": _ONLY_AMQP,
    "stream.data_dir": "streams are in the data directory of the broker",
    "stream.read_ahead": "streams are read as the operating system reads ahead",
    "stream.read_ahead_limit": "streams are read as the operating system reads ahead",
    "stream.replication": _CLUSTER,
    "sysmon_handler": _ERLANG,
    "tcp_listen_options": _SOCKETS,
    "tcp_listen_options.send_timeout": "a peer that does not read its output is not waited for",
    "tracing": "the exchange amq.rabbitmq.trace has copies of messages, without files of traces",
    "trust_store": "tls_ca is read again when it changes; authorities are its PEM blocks",
    "vhost_restart_strategy": "a vhost has no process of its own that could fail",
    "vm_memory_calculation_strategy": "memory is the memory of queued messages",
    "vm_memory_high_watermark_paging_ratio": "durable messages are on disk from the start",
    "web_mqtt": _ONLY_AMQP,
    "web_stomp": _ONLY_AMQP,
}
"""The reason by the prefix of a key."""


def reason_of(segments: tuple[str, ...]) -> str:
    """Return why a key of RabbitMQ has no effect; "" if no reason is known."""
    for count in range(len(segments), 0, -1):
        for prefix, reason in _BY_LENGTH.get(count, ()):
            if all(
                part.startswith("$") or part == segment
                for part, segment in zip(prefix, segments, strict=False)
            ):
                return reason
    return ""


_BY_LENGTH: dict[int, list[tuple[tuple[str, ...], str]]] = {}
for _prefix, _reason in REASONS.items():
    _parts = tuple(_prefix.split("."))
    _BY_LENGTH.setdefault(len(_parts), []).append((_parts, _reason))
