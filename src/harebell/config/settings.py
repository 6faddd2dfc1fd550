"""The keys of the configuration: each is declared once, as a field of `Config`.

The annotation of a field has the type, how a value is read and checked, what a reload does with a
new value, the names in `rabbitmq.conf` and the help (`harebell.config.setting`). Everything else
comes from it: the flags and variables, the checks, the reference, `config show` and reloads.

A key has one name everywhere: `tls_port` in the TOML file, `HAREBELL_TLS_PORT` in the environment
and `--tls-port` on the command line. A reader converts the input (TOML values are typed, the others
are text) to the value in `Config`. It raises ValueError with the allowed values; the caller adds
the source and the key.
"""

# Without `from __future__ import annotations`: the annotations of `Config` are read as objects.

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harebell.admin import limits as admin_limits
from harebell.base import limits as base_limits
from harebell.base.hash_names import SCRYPT, SHA256, SHA512
from harebell.config import limits
from harebell.config.auth_backends import backend_entries, backend_entry
from harebell.config.auth_values import (
    algorithms,
    prefix,
    scope_aliases,
    signing_keys,
    web_address,
    words,
)
from harebell.config.setting import SECRET, Alias, RabbitMQ, Reload, Setting, declared
from harebell.config.values import (
    COUNT_MAX,
    PORT_MAX,
    SHORT_MAX,
    TIMEOUT_MAX_SECONDS,
    TIMEOUT_MIN_SECONDS,
    address,
    backup_place,
    choice,
    ciphers,
    definitions,
    directory,
    field_map,
    free_space,
    header,
    host_and_port,
    https_url,
    levels,
    listening,
    mechanisms,
    names,
    optional,
    origins,
    password_file,
    path_prefix,
    pattern,
    pem_file,
    plaintext_format,
    port_or_none,
    retention_policies,
    rotation_date,
    rows,
    schema,
    seconds,
    size,
    storage_url,
    switch,
    text,
    texts,
    version,
    watermark,
    whole,
)
from harebell.front import limits as front_limits
from harebell.front.common.settings import COMPATIBLE_PRODUCT, COMPATIBLE_VERSION
from harebell.server import limits as server_limits
from harebell.server.net.certificate import DISTINGUISHED_NAME, LOGIN_NAMES
from harebell.store import limits as store_limits

CONFIG_VARIABLE = "HAREBELL_CONFIG"
"""Names the configuration file."""
PASSWORD_HASHING = (SCRYPT, SHA256, SHA512)
"""Hash algorithms for new passwords, the strongest one first."""
PLAINTEXT = "$time [$level] $pid $msg"
"""The format of a log line, as RabbitMQ has it."""
LOG_LEVELS = ("debug", "info", "warning", "error", "none")
LOG_CATEGORIES = (
    *("connection", "channel", "queue", "user", "upgrade", "ra", "mirroring", "federation"),
)
"""Categories of log lines: RabbitMQ's. Harebell has lines in the first four."""
FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron"),
    *("authpriv", "ftp", "local0", "local1", "local2", "local3", "local4", "local5", "local6"),
    "local7",
)
"""Facilities of syslog, as the standard library names them."""

# Types that several keys have.
Switch = Annotated[bool, switch]
Text = Annotated[str, text]
TextOrNone = Annotated[str | None, optional(text)]
Names = Annotated[tuple[str, ...], names]
Pattern = Annotated[str, pattern]
Header = Annotated[str, header]
Texts = Annotated[dict[str, str], texts]
Address = Annotated[str, address]
Port = Annotated[int, whole(0, PORT_MAX)]
Short = Annotated[int, whole(0, SHORT_MAX)]
PositiveShort = Annotated[int, whole(1, SHORT_MAX)]
Count = Annotated[int, whole(0, COUNT_MAX)]
Milliseconds = Annotated[int, whole(1, 600_000)]
Timeout = Annotated[float, seconds(TIMEOUT_MIN_SECONDS, TIMEOUT_MAX_SECONDS)]
BufferBytes = Annotated[int, size(0, COUNT_MAX)]
StagedBytes = Annotated[int, size(0, 2**60)]
SegmentBytes = Annotated[int, size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES)]
Directory = Annotated[Path, directory]
PasswordFile = Annotated[str, password_file]
PemFile = Annotated[str, pem_file]
PemFileOrNone = Annotated[str | None, optional(pem_file)]
Verify = Annotated[str, choice("verify_peer", "verify_none")]
WebAddress = Annotated[str, web_address]
WebAddressOrNone = Annotated[str | None, optional(web_address)]

# Tables.
DefaultUsers = Annotated[
    dict[str, dict[str, Any]],
    rows(
        vhost_pattern=pattern,
        configure=pattern,
        read=pattern,
        write=pattern,
        password=text,
        tags=names,
    ),
]
DefaultLimits = Annotated[
    dict[str, dict[str, Any]],
    rows(pattern=pattern, max_connections=whole(0, COUNT_MAX), max_queues=whole(0, COUNT_MAX)),
]
_POLICY_NUMBERS = (
    *("delivery_limit", "expires", "max_in_memory_bytes", "max_in_memory_length"),
    *("max_length", "max_length_bytes", "message_ttl"),
)
_POLICY_TARGETS = ("queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all")
OperatorPolicies = Annotated[
    dict[str, dict[str, Any]],
    rows(
        vhost_pattern=pattern,
        queue_pattern=pattern,
        apply_to=choice(*_POLICY_TARGETS),
        **dict.fromkeys(_POLICY_NUMBERS, whole(0, 10**12)),
    ),
]
LogFiles = Annotated[
    dict[str, dict[str, Any]],
    rows(
        file=text,
        rotation_size=size(0, 2**50),
        rotation_date=rotation_date,
        rotation_count=whole(0, 100_000),
        rotation_compress=switch,
    ),
]

# Keys that each output of the log has; {output} is a phrase of _OUTPUTS.
# fmt: off
LogLevel = Annotated[str, choice(*LOG_LEVELS)]
OutputLevel = Annotated[str | None, optional(choice(*LOG_LEVELS)), Reload.LOG,
    "Least important line {output}; without it log_level."]
OutputFormatter = Annotated[str, choice("plaintext", "json"), Reload.LOG,
    "Form of the lines {output}: plaintext or json."]
OutputTimeFormat = Annotated[str,
    choice("rfc3339_space", "rfc3339_t", "epoch_usecs", "epoch_secs"), Reload.LOG,
    "How lines {output} have their time."]
OutputLevelFormat = Annotated[str, choice("lc", "uc", "lc3", "uc3", "lc4", "uc4"), Reload.LOG,
    "How lines {output} have their level: info, INFO, inf, INF, info, INFO."]
OutputPlaintext = Annotated[str, plaintext_format, Reload.LOG,
    "The parts of a line {output}: $time, $level, $pid, $domain and $msg."]
OutputJsonFields = Annotated[str, field_map, Reload.LOG,
    "Names of fields of JSON lines {output}: time:ts renames, pid:- drops."]
# fmt: on
_OUTPUTS = {
    "log_console": "on the console",
    "log_file": "in the file",
    "log_syslog": "in syslog",
    "log_journald": "in the journal",
    "log_exchange": "on that exchange",
}


def default_data_dir() -> Path:
    """Return the directory `harebell` in the user's data directory (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # XDG: a relative path is invalid and must be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "harebell"


# A key takes two lines, as in a table: what it is, and what it means.
# fmt: off
class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a broker; docs/reference/configuration.md describes the keys."""

    host: Annotated[Address, "Address to listen on; 0.0.0.0 or :: for all."] = "127.0.0.1"
    port: Annotated[int | None, port_or_none,
        "Port for AMQP; 0 takes a free one and prints it, none serves no plain AMQP."] = 5672
    listen: Annotated[tuple[tuple[str, str, int], ...] | None, listening,
        "More addresses: amqp://host:port, amqps://host:port, amqp-0-10t://host:port."] = None
    proxy_protocol: Annotated[Switch, RabbitMQ("proxy_protocol"),
        "Whether connections of AMQP begin with a PROXY header of a load balancer."] = False
    tcp_backlog: Annotated[PositiveShort,
        "Most connections that wait to be accepted."] = server_limits.BACKLOG_CONNECTIONS
    tcp_nodelay: Annotated[Switch, RabbitMQ("tcp_listen_options.nodelay"),
        "Whether output is sent at once (TCP_NODELAY), not gathered first."] = True
    tcp_keepalive: Annotated[Switch, RabbitMQ("tcp_listen_options.keepalive"),
        "Whether the system probes silent peers (SO_KEEPALIVE)."] = False
    tcp_linger_seconds: Annotated[Timeout,
        "Time that the peer of a closed connection has to take the last output."
    ] = front_limits.LINGER_SECONDS
    tcp_send_buffer_bytes: Annotated[BufferBytes,
        "The system's buffer of output per connection (SO_SNDBUF); 0 for its own choice."] = 0
    tcp_receive_buffer_bytes: Annotated[BufferBytes,
        "The system's buffer of input per connection (SO_RCVBUF); 0 for its own choice."] = 0
    node_name: Annotated[Text | None,
        "Name of the broker; without it harebell@ and the name of the machine."] = None
    cluster_name: Annotated[Text | None, RabbitMQ("cluster_name"),
        "Name that clients and tools are shown; without it that of the broker."] = None
    cluster_tags: Annotated[Texts, "Tags of the cluster, for tools."] = {}
    node_tags: Annotated[Texts, "Tags of the broker, for tools."] = {}
    data_dir: Annotated[Directory,
        "Directory for all data of the broker."] = msgspec.field(default_factory=default_data_dir)
    tls_port: Annotated[Port | None, "Port for AMQP over TLS; without it there is no TLS."] = None
    tls_host: Annotated[Address | None, "Address to listen on for TLS; without it host."] = None
    tls_cert: Annotated[PemFile | None, Reload.TLS, RabbitMQ("ssl_options.certfile"),
        "Certificate chain of the broker (PEM)."] = None
    tls_key: Annotated[PemFile | None, Reload.TLS, RabbitMQ("ssl_options.keyfile"),
        "Private key of the certificate (PEM)."] = None
    tls_ca: Annotated[PemFile | None, Reload.TLS, RabbitMQ("ssl_options.cacertfile"),
        "Authorities that may issue client certificates (PEM)."] = None
    tls_key_password: Annotated[Text | None, SECRET, Reload.TLS, RabbitMQ("ssl_options.password"),
        "Passphrase of tls_key, if the key is encrypted."] = None
    tls_key_password_file: Annotated[PasswordFile | None, Reload.TLS,
        "File with the passphrase of tls_key."] = None
    tls_verify: Annotated[Verify, Reload.TLS, RabbitMQ("ssl_options.verify"),
        "Whether certificates that clients show are checked against tls_ca."] = "verify_peer"
    tls_fail_if_no_peer_cert: Annotated[Switch, Reload.TLS,
        RabbitMQ("ssl_options.fail_if_no_peer_cert"),
        "Whether a client needs a certificate that tls_ca verifies."] = False
    tls_min_version: Annotated[str, choice("tlsv1.2", "tlsv1.3"), Reload.TLS,
        "Oldest version of TLS that is accepted."] = "tlsv1.2"
    tls_ciphers: Annotated[str | None, ciphers, Reload.TLS,
        "Ciphers of TLS 1.2, as OpenSSL writes them; without it Python's default."] = None
    tls_login_from: Annotated[str, choice(*LOGIN_NAMES), RabbitMQ("ssl_cert_login_from"),
        "What of a client's certificate is its user's name, for SASL EXTERNAL."
    ] = DISTINGUISHED_NAME
    management_port: Annotated[Port | None,
        RabbitMQ("management.listener.port", "management.tcp.port"),
        "Port of the HTTP API, 0 for none; by default 15672, and none with port 0."] = None
    management_host: Annotated[Address,
        RabbitMQ("management.listener.ip", "management.ssl.ip", "management.tcp.ip"),
        "Address of the HTTP API; 0.0.0.0 or :: for all."] = "127.0.0.1"
    management_tls_port: Annotated[Port | None, RabbitMQ("management.ssl.port"),
        "Port of the HTTP API over TLS, with the certificate of tls_cert; 0 for none."] = None
    management_path_prefix: Annotated[str, path_prefix, RabbitMQ("management.path_prefix"),
        "Start of all paths of the HTTP API, such as /rabbit."] = ""
    management_body_max_bytes: Annotated[int, size(1, limits.HTTP_BODY_MAX_BYTES), Reload.HTTP_API,
        "Largest body of a request to the HTTP API."] = limits.HTTP_BODY_BYTES
    management_connection_max: Annotated[Count, Reload.HTTP_CONNECTIONS,
        "Most connections for HTTP, and again for metrics; 0 for as many as files."
    ] = server_limits.HTTP_CONNECTIONS
    management_request_timeout_seconds: Annotated[Timeout, Reload.HTTP_CONNECTIONS,
        "Seconds for a request over HTTP until its login, the TLS handshake included."
    ] = limits.HTTP_REQUEST_SECONDS
    management_idle_timeout_seconds: Annotated[Timeout, Reload.HTTP_CONNECTIONS,
        "Seconds without a request, or a byte of one, until HTTP's connections close."
    ] = limits.HTTP_IDLE_SECONDS
    management_cors_allow_origins: Annotated[tuple[str, ...] | None, origins, Reload.HTTP_API,
        "Origins of pages that may use the HTTP API, with commas; * for all."] = None
    management_cors_max_age: Annotated[Count, Reload.HTTP_API, RabbitMQ("management.cors.max_age"),
        "Seconds that browsers may keep the answer of a preflight request."
    ] = limits.HTTP_CORS_SECONDS
    management_csp_policy: Annotated[Header, Reload.HTTP_API, RabbitMQ("management.csp.policy"),
        "Header content-security-policy of the HTTP API; empty for none."
    ] = "script-src 'self'; object-src 'none'"
    management_hsts_policy: Annotated[Header | None, Reload.HTTP_API,
        RabbitMQ("management.hsts.policy"),
        "Header strict-transport-security of the HTTP API."] = None
    management_schema_registry: Annotated[WebAddressOrNone, SECRET, Reload.AT_USE,
        "A registry with Confluent's API: the web interface reads schemas there."] = None
    management_rates_mode: Annotated[str, choice("basic", "detailed", "none"),
        RabbitMQ("management.rates_mode"),
        "Rates: detailed also keeps samples of channels by queue and exchange."] = "basic"
    management_disable_stats: Annotated[Switch, RabbitMQ("management.disable_stats"),
        "Whether the HTTP API leaves out what is counted."] = False
    management_enable_queue_totals: Annotated[Switch, RabbitMQ("management.enable_queue_totals"),
        "With management_disable_stats: whether queues have their numbers of messages."] = False
    management_sample_retention_policies: Annotated[dict[str, dict[str, int]], retention_policies,
        "Seconds between samples that are kept for a minute, hour or day, by section."] = {}
    collect_statistics: Annotated[str, choice("none", "coarse", "fine"),
        RabbitMQ("collect_statistics"),
        "What is sampled: nothing, single things, or also channels by queue and exchange."] = "fine"
    collect_statistics_interval: Annotated[int,
        whole(limits.STATISTICS_MIN_MS, limits.STATISTICS_MAX_MS),
        RabbitMQ("collect_statistics_interval"),
        "Milliseconds between two samples."] = admin_limits.STATISTICS_SECONDS * 1000
    metrics_port: Annotated[Port | None, RabbitMQ("prometheus.tcp.port"),
        "Port of metrics and probes, 0 for none; by default 15692, and none with port 0."] = None
    metrics_host: Annotated[Address, RabbitMQ("prometheus.ssl.ip", "prometheus.tcp.ip"),
        "Address of metrics and probes; 0.0.0.0 or :: for all."] = "127.0.0.1"
    metrics_tls_port: Annotated[Port | None, RabbitMQ("prometheus.ssl.port"),
        "Port of metrics over TLS, with the certificate of tls_cert; 0 for none."] = None
    metrics_per_object: Annotated[Switch, Reload.METRICS,
        RabbitMQ("prometheus.return_per_object_metrics"),
        "Whether /metrics has a sample for each queue, channel and connection, not sums."] = False
    health_interval: Annotated[int, whole(0, limits.STATISTICS_MAX_MS),
        "Milliseconds between two looks for findings of harebell health --why; 0: none."
    ] = 10_000
    health_trend_minutes: Annotated[Count, Reload.AT_USE,
        "Found: memory or disk that will block publishers within so many minutes."] = 30
    health_full_minutes: Annotated[Count, Reload.AT_USE,
        "Found: a queue that will reach its length limit within so many minutes."] = 60
    health_no_consumer_seconds: Annotated[Count, Reload.AT_USE,
        "Found: a queue with messages that has had no consumer for so long."] = 300
    health_held_seconds: Annotated[Count, Reload.AT_USE,
        "Found: consumers that hold everything, and acknowledge nothing for so long."] = 300
    health_redeliveries_per_second: Annotated[Count, Reload.AT_USE,
        "Found: a queue with so many redeliveries, half of its deliveries or more."] = 5
    health_oldest_seconds: Annotated[Count, Reload.AT_USE,
        "Found: a queue whose oldest message waits so long, and five times its usual."] = 600
    health_dead_letters_per_minute: Annotated[Count, Reload.AT_USE,
        "Found: a queue that makes so many dead letters."] = 10
    health_query_lag_seconds: Annotated[Count, Reload.AT_USE,
        "Found: a query that is so far behind its sources."] = 600
    health_sync_ms: Annotated[Count, Reload.AT_USE,
        "Found: syncs of the disk that take so long in the mean."] = 250
    health_certificate_days: Annotated[Count, Reload.AT_USE,
        "Found: a certificate of a listener that expires within so many days."] = 14
    health_connections_per_second: Annotated[Count, Reload.AT_USE,
        "Found: so many connections that are opened, in the mean of a minute."] = 10
    health_standby_seconds: Annotated[Count, Reload.AT_USE,
        "Found: a broker that stands by, and is so far behind the store."] = 60
    auth_mechanisms: Annotated[tuple[str, ...] | None, mechanisms,
        "SASL mechanisms that clients may use; without it all except CRAM-MD5."] = None
    auth_backends: Annotated[tuple[str, ...] | None, backend_entries,
        "Backends of users, in the order of asking; without it internal alone."] = None
    auth_http_http_method: Annotated[str, choice("get", "post"), RabbitMQ("auth_http.http_method"),
        "How the backend http sends its questions; post keeps passwords out of addresses."] = "get"
    auth_http_user_path: Annotated[WebAddress, RabbitMQ("auth_http.user_path"),
        "Where it asks about users and passwords."] = "http://localhost:8000/auth/user"
    auth_http_vhost_path: Annotated[WebAddress, RabbitMQ("auth_http.vhost_path"),
        "Where it asks whether a user may open a virtual host."
    ] = "http://localhost:8000/auth/vhost"
    auth_http_resource_path: Annotated[WebAddress, RabbitMQ("auth_http.resource_path"),
        "Where it asks about queues and exchanges."] = "http://localhost:8000/auth/resource"
    auth_http_topic_path: Annotated[WebAddress, RabbitMQ("auth_http.topic_path"),
        "Where it asks about routing keys at topic exchanges."] = "http://localhost:8000/auth/topic"
    auth_http_request_timeout: Annotated[Milliseconds, RabbitMQ("auth_http.request_timeout"),
        "Milliseconds that an answer may take."] = 15_000
    auth_http_connection_timeout: Annotated[Milliseconds, RabbitMQ("auth_http.connection_timeout"),
        "Milliseconds that a connection to it may take."] = 15_000
    auth_http_ssl_options_cacertfile: Annotated[PemFileOrNone,
        RabbitMQ("auth_http.ssl_options.cacertfile"),
        "PEM file with authorities that verify it; none for those of the system."] = None
    auth_http_ssl_options_certfile: Annotated[PemFileOrNone,
        RabbitMQ("auth_http.ssl_options.certfile"),
        "PEM file with the certificate that is shown to it."] = None
    auth_http_ssl_options_keyfile: Annotated[PemFileOrNone,
        RabbitMQ("auth_http.ssl_options.keyfile"),
        "PEM file with the key of that certificate."] = None
    auth_http_ssl_options_verify: Annotated[Verify, RabbitMQ("auth_http.ssl_options.verify"),
        "Whether its certificate is verified."] = "verify_peer"
    auth_cache_cached_backend: Annotated[str | None, backend_entry,
        "What the backend cache remembers the answers of, such as http or internal/http."] = None
    auth_cache_cache_ttl: Annotated[int, whole(1, COUNT_MAX), RabbitMQ("auth_cache.cache_ttl"),
        "For how many milliseconds it remembers them."] = 15_000
    auth_cache_cache_refusals: Annotated[Switch, RabbitMQ("auth_cache.cache_refusals"),
        "Whether it remembers refusals, too."] = False
    auth_oauth2_resource_server_id: Annotated[TextOrNone,
        RabbitMQ("auth_oauth2.resource_server_id"),
        "Name of the broker as a resource server: the audience of OAuth 2 tokens."] = None
    auth_oauth2_scope_prefix: Annotated[str | None, optional(prefix),
        RabbitMQ("auth_oauth2.scope_prefix"),
        "Start of its scopes; without it the name of the resource server with a dot."] = None
    auth_oauth2_additional_scopes_key: Annotated[tuple[str, ...], words,
        RabbitMQ("auth_oauth2.additional_scopes_key"),
        "Claims beside scope that have scopes, such as realm_access.roles."] = ()
    auth_oauth2_preferred_username_claims: Annotated[Names,
        "Claims that name the user, before sub and client_id."] = ()
    auth_oauth2_verify_aud: Annotated[Switch, RabbitMQ("auth_oauth2.verify_aud"),
        "Whether the audience of a token (claim aud) is checked."] = True
    auth_oauth2_issuer: Annotated[WebAddressOrNone, RabbitMQ("auth_oauth2.issuer"),
        "Who has to have issued tokens (claim iss); its metadata name the keys."] = None
    auth_oauth2_discovery_endpoint_path: Annotated[str, prefix,
        RabbitMQ("auth_oauth2.discovery_endpoint_path"),
        "Where below the issuer its metadata are."] = ".well-known/openid-configuration"
    auth_oauth2_jwks_url: Annotated[WebAddressOrNone,
        RabbitMQ("auth_oauth2.jwks_uri", "auth_oauth2.jwks_url"),
        "Where the keys are that verify tokens; without it the metadata say so."] = None
    auth_oauth2_signing_keys: Annotated[dict[str, str], signing_keys,
        "PEM files with public keys or certificates, by the kid of tokens."] = {}
    auth_oauth2_default_key: Annotated[TextOrNone, RabbitMQ("auth_oauth2.default_key"),
        "Id of the key for tokens without kid."] = None
    auth_oauth2_algorithms: Annotated[tuple[str, ...] | None, algorithms,
        "Algorithms of signatures that are accepted; without it all."] = None
    auth_oauth2_scope_aliases: Annotated[dict[str, tuple[str, ...]], scope_aliases,
        "Scopes by other names of them, such as names of roles."] = {}
    auth_oauth2_https_cacertfile: Annotated[PemFileOrNone, RabbitMQ("auth_oauth2.https.cacertfile"),
        "PEM file with authorities that verify the server of the keys."] = None
    auth_oauth2_https_peer_verification: Annotated[Verify,
        RabbitMQ("auth_oauth2.https.peer_verification"),
        "Whether the certificate of that server is verified."] = "verify_peer"
    auth_oauth2_https_hostname_verification: Annotated[str, choice("wildcard", "none"),
        RabbitMQ("auth_oauth2.https.hostname_verification"),
        "Whether the certificate has to have its name; wildcard allows *.example.com."] = "wildcard"
    auth_oauth2_authorization_endpoint: Annotated[WebAddressOrNone, Reload.HTTP_API,
        RabbitMQ("auth_oauth2.authorization_endpoint"),
        "Where browsers sign in; without it the metadata of the issuer say so."] = None
    auth_oauth2_token_endpoint: Annotated[WebAddressOrNone, Reload.HTTP_API,
        RabbitMQ("auth_oauth2.token_endpoint"),
        "Where browsers get tokens; without it the metadata of the issuer say so."] = None
    auth_oauth2_end_session_endpoint: Annotated[WebAddressOrNone, Reload.HTTP_API,
        RabbitMQ("auth_oauth2.end_session_endpoint"),
        "Where browsers log out; without it the metadata of the issuer say so."] = None
    auth_oauth2_authorization_endpoint_params: Annotated[Texts, Reload.HTTP_API,
        "Further parameters of signing in, such as the audience."] = {}
    auth_oauth2_token_endpoint_params: Annotated[Texts, Reload.HTTP_API,
        "Further parameters of getting tokens, such as the audience."] = {}
    management_oauth_enabled: Annotated[Switch, RabbitMQ("management.oauth_enabled"),
        "Whether the HTTP API is meant for OAuth 2 tokens."] = False
    management_oauth_client_id: Annotated[TextOrNone, Reload.HTTP_API,
        RabbitMQ("management.oauth_client_id"),
        "Name of the web interface at the issuer; with it one can sign in there."] = None
    management_oauth_scopes: Annotated[Text, Reload.HTTP_API,
        RabbitMQ("management.oauth_scopes"),
        "Scopes that the web interface asks for, with blanks between them."] = "openid profile"
    management_oauth_provider_url: Annotated[WebAddressOrNone, Reload.HTTP_API,
        RabbitMQ("management.oauth_provider_url"),
        "The issuer where browsers sign in; without it auth_oauth2_issuer."] = None
    management_oauth_metadata_url: Annotated[WebAddressOrNone, Reload.HTTP_API,
        RabbitMQ("management.oauth_metadata_url"),
        "Where browsers read its metadata, if not at the usual place below it."] = None
    management_oauth_disable_basic_auth: Annotated[Switch,
        RabbitMQ("management.oauth_disable_basic_auth"),
        "With management_oauth_enabled: whether it accepts tokens alone, no HTTP Basic."] = True
    password_hashing_module: Annotated[str, choice(*PASSWORD_HASHING), Reload.USERS,
        RabbitMQ("password_hashing_module"),
        "How new passwords are hashed."] = SCRYPT
    anonymous_login_user: Annotated[Text | None, Reload.CONNECTIONS,
        RabbitMQ("anonymous_login_user"),
        "User of SASL ANONYMOUS, or none; without the key only AMQP 1.0 has it."] = None
    amqp_addresses: Annotated[str, choice("rabbitmq", "bare", "v2"), Reload.CONNECTIONS,
        "How AMQP 1.0 reads addresses other than /queues/Q and /exchanges/X."] = "rabbitmq"
    loopback_users: Annotated[Names, Reload.USERS,
        "Users who may log in from this machine only; none for no user."] = ("guest",)
    credential_validator: Annotated[str, choice("accept_everything", "min_length", "regexp"),
        Reload.AT_USE,
        "What new passwords are checked for."] = "accept_everything"
    credential_validator_min_length: Annotated[int, whole(1, base_limits.NAME_BYTES), Reload.AT_USE,
        RabbitMQ("credential_validator.min_length"),
        "Least characters of a new password, with credential_validator min_length."] = 8
    credential_validator_regexp: Annotated[Pattern, Reload.AT_USE,
        RabbitMQ("credential_validator.regexp"),
        "What a new password has to match, with credential_validator regexp."] = ".*"
    channel_max: Annotated[PositiveShort, Reload.CONNECTIONS,
        RabbitMQ("channel_max", "max_channels_per_connection"),
        "Most channels per connection."] = base_limits.CHANNEL_MAX
    channel_max_per_node: Annotated[Count, Reload.CONNECTIONS, RabbitMQ("channel_max_per_node"),
        "Most channels of all connections together; 0 for no limit."] = 0
    connection_max: Annotated[Count, Reload.CONNECTIONS, "Most connections; 0 for no limit."] = 0
    unauthenticated_connection_max: Annotated[Count, Reload.CONNECTIONS,
        "Most connections that have not logged in yet; 0 for no limit."
    ] = limits.UNAUTHENTICATED_CONNECTIONS
    unauthenticated_connection_max_per_address: Annotated[Count, Reload.CONNECTIONS,
        "Most of them from one address, also for HTTP; 0 for no limit."
    ] = limits.UNAUTHENTICATED_PER_ADDRESS
    consumer_max_per_channel: Annotated[Count, Reload.CONNECTIONS,
        RabbitMQ("consumer_max_per_channel"),
        "Most consumers per channel; 0 for no limit."] = front_limits.CONSUMERS_PER_CHANNEL
    vhost_max: Annotated[Count, Reload.CEILINGS, RabbitMQ("vhost_max"),
        "Most virtual hosts; 0 for no limit."] = 0
    cluster_queue_limit: Annotated[Count, Reload.CEILINGS, RabbitMQ("cluster_queue_limit"),
        "Most queues of all virtual hosts together; 0 for no limit."] = 0
    cluster_exchange_limit: Annotated[Count, Reload.CEILINGS, RabbitMQ("cluster_exchange_limit"),
        "Most exchanges of all virtual hosts together; 0 for no limit."] = 0
    frame_max: Annotated[int, size(base_limits.FRAME_MIN_BYTES, front_limits.MESSAGE_MAX_BYTES),
        Reload.CONNECTIONS,
        "Largest frame."] = base_limits.FRAME_MAX_BYTES
    initial_frame_max: Annotated[int,
        size(base_limits.FRAME_MIN_BYTES, base_limits.FRAME_MAX_BYTES), Reload.CONNECTIONS,
        "Largest frame before a connection is open, which a token has to fit into."
    ] = base_limits.HANDSHAKE_FRAME_BYTES
    heartbeat: Annotated[Short, Reload.CONNECTIONS, RabbitMQ("heartbeat"),
        "Seconds between heartbeats that the broker proposes; 0 proposes none."
    ] = front_limits.HEARTBEAT_SECONDS
    handshake_timeout_seconds: Annotated[Timeout, Reload.CONNECTIONS,
        "Seconds from connecting to connection.open, the TLS handshake included."
    ] = front_limits.HANDSHAKE_TIMEOUT_SECONDS
    shutdown_grace_seconds: Annotated[float, seconds(0.0, TIMEOUT_MAX_SECONDS), Reload.AT_USE,
        "Seconds that clients have to read pending output when the broker stops."
    ] = limits.SHUTDOWN_SECONDS
    consumer_timeout: Annotated[int, whole(0, limits.CONSUMER_TIMEOUT_MAX_MS), Reload.CONNECTIONS,
        RabbitMQ("consumer_timeout"),
        "Milliseconds that a delivery may go without acknowledgement; 0 for no limit."
    ] = limits.CONSUMER_TIMEOUT_MS
    default_queue_type: Annotated[str, choice("classic", "quorum", "stream"),
        RabbitMQ("default_queue_type"),
        "Type of queues whose declaration and vhost name none."] = "classic"
    memory_high_watermark: Annotated[float | int, watermark, Reload.MEMORY,
        "Memory, of all workers together, above which publishers are blocked; 0: now."
    ] = limits.MEMORY_HIGH_WATERMARK
    disk_free_limit: Annotated[float | int, free_space, Reload.DISK,
        "Free disk space below which publishers are blocked; 0 for no limit."
    ] = limits.DISK_FREE_LIMIT_BYTES
    backup_target: Annotated[str, backup_place, Reload.AT_USE,
        "Where backups go that the broker makes by itself; empty for none."] = ""
    backup_interval_seconds: Annotated[int, whole(0, limits.BACKUP_INTERVAL_MAX_SECONDS),
        Reload.AT_USE,
        "Seconds between two such backups, such as 86400 for a day; 0 for none."] = 86_400
    backup_keep: Annotated[int, whole(0, admin_limits.BACKUP_KEEP_MAX), Reload.AT_USE,
        "How many backups are kept there; 0 for all."] = 0
    backup_rate: Annotated[int, size(0, admin_limits.BACKUP_RATE_MAX_BYTES), Reload.AT_USE,
        "Most bytes per second that such a backup copies; 0 for no limit."
    ] = admin_limits.BACKUP_RATE_BYTES
    backup_timeout_seconds: Annotated[int, whole(1, limits.BACKUP_TIMEOUT_MAX_SECONDS),
        Reload.AT_USE,
        "Seconds that the target of a backup may not answer until the backup is given up."
    ] = limits.BACKUP_TIMEOUT_SECONDS
    stage_user_limit: Annotated[StagedBytes, Reload.STAGES,
        "Bytes that a user may stage; 0 for half of the room."] = 0
    stage_vhost_limit: Annotated[StagedBytes, Reload.STAGES,
        "Bytes that all users of a vhost may stage; 0 for three quarters of the room."] = 0
    storage: Annotated[str, storage_url, SECRET,
        "Where everything is kept: empty for the data directory, or postgresql://..."] = ""
    storage_schema: Annotated[str, schema,
        "The schema in PostgreSQL; brokers with the same one share a store."] = "harebell"
    storage_lease_ms: Annotated[int,
        whole(limits.STORAGE_LEASE_MIN_MS, limits.STORAGE_LEASE_MAX_MS),
        "Milliseconds of silence after which another broker takes over the store."
    ] = limits.STORAGE_LEASE_MS
    storage_address: Annotated[str, host_and_port,
        "Where other brokers of the store reach this one, host:port; made up if empty."] = ""
    storage_stores: Annotated[int, whole(1, server_limits.STORAGE_STORES),
        "Stores of a cluster in PostgreSQL, each with a process of its own."] = 1
    workers: Annotated[int, whole(1, server_limits.STORAGE_STORES),
        "Processes that share the vhosts, each with a store in the data directory."] = 1
    storage_cluster_port: Annotated[int, whole(0, 65_535),
        "Port for the other brokers of the cluster; 0 for a free one."] = 0
    durability: Annotated[str, choice("fsync", "interval", "os", "replicated"),
        "What a confirm waits for: the disk, or less; with PostgreSQL also its standbys."] = "fsync"
    durability_interval_ms: Annotated[int, whole(1, base_limits.DURABILITY_INTERVAL_MAX_MS),
        'Milliseconds between syncs with durability "interval".'
    ] = store_limits.DURABILITY_INTERVAL_MS
    segment_bytes: Annotated[SegmentBytes,
        "Size of the files that the messages of a queue are kept in."] = store_limits.SEGMENT_BYTES
    stream_segment_bytes: Annotated[SegmentBytes,
        "Size of the files that the messages of a stream are kept in."
    ] = base_limits.STREAM_SEGMENT_BYTES
    message_max_bytes: Annotated[int, size(1, base_limits.BODY_HARD_MAX_BYTES), Reload.CONNECTIONS,
        RabbitMQ("max_message_size"), Alias("max_message_size"),
        "Largest message body."] = front_limits.MESSAGE_MAX_BYTES
    load_definitions: Annotated[Path | None, definitions,
        RabbitMQ("definitions.local.path", "load_definitions", "management.load_definitions"),
        "File of definitions (JSON) that is imported at every start, before clients."] = None
    definitions_import_backend: Annotated[str, choice("local_filesystem", "https"),
        "Where definitions are loaded from: load_definitions, or a URL."] = "local_filesystem"
    definitions_https_url: Annotated[str | None, https_url, SECRET,
        RabbitMQ("definitions.https.url"),
        "URL of definitions, with https; it may have a user and a password."] = None
    definitions_tls_ca: Annotated[PemFile | None, RabbitMQ("definitions.tls.cacertfile"),
        "Authorities of the server of that URL (PEM); without it those of the system."] = None
    definitions_tls_cert: Annotated[PemFile | None, RabbitMQ("definitions.tls.certfile"),
        "Certificate that this server is shown (PEM)."] = None
    definitions_tls_key: Annotated[PemFile | None, RabbitMQ("definitions.tls.keyfile"),
        "Private key of that certificate (PEM)."] = None
    definitions_tls_key_password: Annotated[Text | None, SECRET,
        RabbitMQ("definitions.tls.password"),
        "Passphrase of that key."] = None
    definitions_tls_verify: Annotated[Verify, RabbitMQ("definitions.tls.verify"),
        "Whether the certificate of this server is checked."] = "verify_peer"
    definitions_skip_if_unchanged: Annotated[Switch, RabbitMQ("definitions.skip_if_unchanged"),
        "Whether definitions that an earlier start has loaded are not loaded again."] = False
    compat_product: Annotated[Text, RabbitMQ("product.name"),
        "Product name that clients get in connection.start."] = COMPATIBLE_PRODUCT
    compat_version: Annotated[str, version, RabbitMQ("product.version"),
        "Version of that product in connection.start."] = COMPATIBLE_VERSION
    message_interceptors_incoming_set_header_timestamp_overwrite: Annotated[Switch | None,
        Reload.CONNECTIONS,
        RabbitMQ("message_interceptors.incoming.set_header_timestamp.overwrite"),
        "Stamp every message that comes in with the time; true replaces another."] = None
    message_interceptors_incoming_set_header_routing_node_overwrite: Annotated[Switch | None,
        Reload.CONNECTIONS,
        RabbitMQ("message_interceptors.incoming.set_header_routing_node.overwrite"),
        "Stamp every message that comes in with the broker; true replaces another."] = None
    message_interceptors_outgoing_timestamp_enabled: Annotated[Switch, Reload.CONNECTIONS,
        RabbitMQ("message_interceptors.outgoing.timestamp.enabled"),
        "Stamp every message that goes out with the time."] = False
    log_level: Annotated[LogLevel, Reload.LOG, "Least important line of the log."] = "info"
    log_levels: Annotated[dict[str, str], levels(LOG_CATEGORIES, LOG_LEVELS), Reload.LOG,
        "Least important line of single categories, such as connection."] = {}
    log_console: Annotated[Switch, Reload.LOG, RabbitMQ("log.console"),
        "Whether the log is written to the console."] = True
    log_console_stdio: Annotated[str, choice("stderr", "stdout"), Reload.LOG,
        RabbitMQ("log.console.stdio"),
        "Where on the console: stderr or stdout."] = "stderr"
    log_console_level: OutputLevel = None
    log_console_formatter: OutputFormatter = "plaintext"
    log_console_time_format: OutputTimeFormat = "rfc3339_space"
    log_console_level_format: OutputLevelFormat = "lc"
    log_console_plaintext_format: OutputPlaintext = PLAINTEXT
    log_console_json_field_map: OutputJsonFields = ""
    log_dir: Annotated[Directory | None, Reload.LOG, RabbitMQ("log.dir"),
        "Directory of log_file; without it log in the data directory."] = None
    log_file: Annotated[TextOrNone, Reload.LOG,
        "Name or path of a file that the log is written to; none for no file."] = None
    log_file_level: OutputLevel = None
    log_file_formatter: OutputFormatter = "plaintext"
    log_file_time_format: OutputTimeFormat = "rfc3339_space"
    log_file_level_format: OutputLevelFormat = "lc"
    log_file_plaintext_format: OutputPlaintext = PLAINTEXT
    log_file_json_field_map: OutputJsonFields = ""
    log_file_rotation_size: Annotated[int, size(0, 2**50), Reload.LOG,
        "Size from which the file is rotated; 0 for never."] = 0
    log_file_rotation_date: Annotated[str, rotation_date, Reload.LOG,
        RabbitMQ("log.file.rotation.date"),
        "When the file is rotated: $D0 every midnight, $W0 every Sunday, $M1 every month."] = ""
    log_file_rotation_count: Annotated[int, whole(0, 100_000), Reload.LOG,
        RabbitMQ("log.file.rotation.count"),
        "How many rotated files are kept; with 0 the file is emptied instead."] = 10
    log_file_rotation_compress: Annotated[Switch, Reload.LOG,
        RabbitMQ("log.file.rotation.compress"),
        "Whether rotated files are compressed (gzip)."] = False
    log_files: Annotated[LogFiles, Reload.LOG,
        'Files of single categories: { connection = { file = "connections.log" } }.'] = {}
    log_syslog: Annotated[Switch, Reload.LOG, RabbitMQ("log.syslog"),
        "Whether the log is sent to syslog."] = False
    log_syslog_host: Annotated[Text, Reload.LOG, RabbitMQ("log.syslog.host", "log.syslog.ip"),
        "Host of syslog, or the path of its socket, such as /dev/log."] = "localhost"
    log_syslog_port: Annotated[int, whole(1, PORT_MAX), Reload.LOG, RabbitMQ("log.syslog.port"),
        "Port of syslog."] = 514
    log_syslog_transport: Annotated[str, choice("udp", "tcp"), Reload.LOG,
        "How syslog is reached."] = "udp"
    log_syslog_protocol: Annotated[str, choice("rfc3164", "rfc5424"), Reload.LOG,
        "Form of the messages of syslog."] = "rfc3164"
    log_syslog_identity: Annotated[Text, Reload.LOG, RabbitMQ("log.syslog.identity"),
        "Name of the program in messages of syslog."] = "harebell"
    log_syslog_facility: Annotated[str, choice(*FACILITIES), Reload.LOG,
        RabbitMQ("log.syslog.facility"),
        "Facility of the messages of syslog."] = "daemon"
    log_syslog_level: OutputLevel = None
    log_syslog_formatter: OutputFormatter = "plaintext"
    log_syslog_time_format: OutputTimeFormat = "rfc3339_space"
    log_syslog_level_format: OutputLevelFormat = "lc"
    log_syslog_plaintext_format: OutputPlaintext = "$pid - $msg"
    log_syslog_json_field_map: OutputJsonFields = ""
    log_journald: Annotated[Switch, Reload.LOG, RabbitMQ("log.journald"),
        "Whether the log is sent to systemd's journal."] = False
    log_journald_level: OutputLevel = None
    log_journald_socket: Annotated[Text, Reload.LOG,
        "Socket of the journal."] = "/run/systemd/journal/socket"
    log_exchange: Annotated[Switch, Reload.LOG, RabbitMQ("log.exchange"),
        "Whether the log is also published on the exchange amq.rabbitmq.log."] = False
    log_exchange_level: OutputLevel = None
    log_exchange_formatter: OutputFormatter = "plaintext"
    log_exchange_time_format: OutputTimeFormat = "rfc3339_space"
    log_exchange_level_format: OutputLevelFormat = "lc"
    log_exchange_plaintext_format: OutputPlaintext = PLAINTEXT
    log_exchange_json_field_map: OutputJsonFields = ""
    audit_size: Annotated[int, size(0, 2**50), Reload.AT_USE,
        "Size of the audit trail; its oldest acts are removed. 0 for none."] = 67_108_864
    audit_days: Annotated[int, whole(1, 36_500), Reload.AT_USE,
        "Days that an act stays in the audit trail."] = 365
    audit_amqp: Annotated[Switch, Reload.AT_USE,
        "Whether queues, exchanges and bindings that AMQP changes are in the audit trail."] = True
    loop: Annotated[str, choice("auto", "uvloop", "asyncio"),
        "Event loop; auto takes uvloop where it is installed."] = "auto"
    default_user: Annotated[Text, RabbitMQ("default_user"),
        "The user of a new data directory."] = "guest"
    default_pass: Annotated[Text, SECRET, RabbitMQ("default_pass"),
        "Password of that user."] = "guest"  # noqa: S105  # well known: accepted on loopback only
    default_pass_file: Annotated[PasswordFile | None,
        "File with that password, instead of default_pass."] = None
    default_vhost: Annotated[Text, RabbitMQ("default_vhost"),
        "Virtual host of that user; it is added."] = "/"
    default_user_tags: Annotated[Names, "Tags of that user."] = ("administrator",)
    default_permissions_configure: Annotated[Pattern, RabbitMQ("default_permissions.configure"),
        "What that user may configure in its virtual host."] = ".*"
    default_permissions_write: Annotated[Pattern, RabbitMQ("default_permissions.write"),
        "What that user may write there."] = ".*"
    default_permissions_read: Annotated[Pattern, RabbitMQ("default_permissions.read"),
        "What that user may read there."] = ".*"
    default_users: Annotated[DefaultUsers, SECRET,
        "Users that are created with the virtual hosts that match their vhost_pattern."] = {}
    default_limits_vhosts: Annotated[DefaultLimits, Reload.USERS,
        "Limits of new virtual hosts whose names match a pattern."] = {}
    default_policies_operator: Annotated[OperatorPolicies, Reload.USERS,
        "Operator policies of new virtual hosts whose names match a vhost_pattern."] = {}

    def __repr__(self) -> str:
        """Return all values; secrets are masked, so that the text may be logged."""
        shown = (
            f"{each.name}={'...' if each.secret else repr(getattr(self, each.name))}"
            for each in SETTINGS
        )
        return f"Config({', '.join(shown)})"
# fmt: on


SETTINGS: tuple[Setting, ...] = tuple(
    declared(name, annotation, _OUTPUTS.get("_".join(name.split("_")[:2]), ""))
    for name, annotation in Config.__annotations__.items()
)
"""The keys, in the order of the documentation."""

ALIASES = {setting.alias: setting.name for setting in SETTINGS if setting.alias}
"""Names of RabbitMQ that are accepted in the file and in the environment."""

BY_NAME = {setting.name: setting for setting in SETTINGS}
