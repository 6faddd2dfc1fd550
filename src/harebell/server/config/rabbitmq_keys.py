"""Translate the keys of `rabbitmq.conf` to the settings of Harebell.

`SAME` has the keys whose values Harebell reads as they are. A rule translates other keys: its
pattern has `$name` for any segment, and it gets the segments that matched. `SATISFIED` are keys
whose effect Harebell always has. A key that is known to RabbitMQ and is none of these gets a
warning, and so does an unknown key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from harebell.base import limits
from harebell.base.names import did_you_mean, nearest
from harebell.server.config.auth_backends import backend_entry, listed_backends
from harebell.server.config.backend_settings import BACKEND_KEYS
from harebell.server.config.errors import ConfigError
from harebell.server.config.rabbitmq_conf import Line
from harebell.server.config.rabbitmq_known import fits, is_known, known_keys
from harebell.server.config.rabbitmq_reasons import reason_of
from harebell.server.config.values import (
    PORT_MAX,
    ValueOrigin,
    machine_memory_bytes,
    rabbitmq_size,
    switch,
)

OUTPUTS = ("console", "file", "exchange", "syslog")
CATEGORIES = (
    *("connection", "channel", "queue", "default", "user", "upgrade", "ra", "mirroring"),
    "federation",
)
_MS = 1_000
ALL_ADDRESSES = "::"
"""Where RabbitMQ listens when a listener has a port alone."""

SAME = {
    **BACKEND_KEYS,
    "anonymous_login_pass": "",
    "channel_max": "channel_max",
    "channel_max_per_node": "channel_max_per_node",
    "cluster_exchange_limit": "cluster_exchange_limit",
    "cluster_name": "cluster_name",
    "cluster_queue_limit": "cluster_queue_limit",
    "consumer_max_per_channel": "consumer_max_per_channel",
    "consumer_timeout": "consumer_timeout",
    "credential_validator.min_length": "credential_validator_min_length",
    "credential_validator.regexp": "credential_validator_regexp",
    "default_pass": "default_pass",
    "default_permissions.configure": "default_permissions_configure",
    "default_permissions.read": "default_permissions_read",
    "default_permissions.write": "default_permissions_write",
    "default_queue_type": "default_queue_type",
    "default_user": "default_user",
    "default_vhost": "default_vhost",
    "definitions.https.url": "definitions_https_url",
    "definitions.tls.cacertfile": "definitions_tls_ca",
    "definitions.tls.certfile": "definitions_tls_cert",
    "definitions.tls.keyfile": "definitions_tls_key",
    "definitions.tls.password": "definitions_tls_key_password",
    "definitions.tls.verify": "definitions_tls_verify",
    "definitions.local.path": "load_definitions",
    "definitions.skip_if_unchanged": "definitions_skip_if_unchanged",
    "log.journald": "log_journald",
    "log.syslog": "log_syslog",
    "log.syslog.facility": "log_syslog_facility",
    "log.syslog.host": "log_syslog_host",
    "log.syslog.identity": "log_syslog_identity",
    "log.syslog.ip": "log_syslog_host",
    "log.syslog.port": "log_syslog_port",
    "frame_max": "frame_max",
    "heartbeat": "heartbeat",
    "initial_frame_max": "initial_frame_max",
    "load_definitions": "load_definitions",
    "log.dir": "log_dir",
    "management.cors.max_age": "management_cors_max_age",
    "management.csp.policy": "management_csp_policy",
    "management.hsts.policy": "management_hsts_policy",
    "management.rates_mode": "management_rates_mode",
    "management.disable_stats": "management_disable_stats",
    "management.enable_queue_totals": "management_enable_queue_totals",
    "collect_statistics": "collect_statistics",
    "collect_statistics_interval": "collect_statistics_interval",
    "management.load_definitions": "load_definitions",
    "management.path_prefix": "management_path_prefix",
    "management.ssl.ip": "management_host",
    "management.ssl.port": "management_tls_port",
    "management.tcp.ip": "management_host",
    "management.tcp.port": "management_port",
    "max_channels_per_connection": "channel_max",
    "max_message_size": "message_max_bytes",
    "message_interceptors.incoming.set_header_routing_node.overwrite": (
        "message_interceptors_incoming_set_header_routing_node_overwrite"
    ),
    "message_interceptors.incoming.set_header_timestamp.overwrite": (
        "message_interceptors_incoming_set_header_timestamp_overwrite"
    ),
    "message_interceptors.outgoing.timestamp.enabled": (
        "message_interceptors_outgoing_timestamp_enabled"
    ),
    "password_hashing_module": "password_hashing_module",
    "product.name": "compat_product",
    "product.version": "compat_version",
    "proxy_protocol": "proxy_protocol",
    "prometheus.return_per_object_metrics": "metrics_per_object",
    "prometheus.ssl.ip": "metrics_host",
    "prometheus.ssl.port": "metrics_tls_port",
    "prometheus.tcp.ip": "metrics_host",
    "prometheus.tcp.port": "metrics_port",
    "ssl_options.cacertfile": "tls_ca",
    "ssl_options.certfile": "tls_cert",
    "ssl_options.fail_if_no_peer_cert": "tls_fail_if_no_peer_cert",
    "ssl_options.keyfile": "tls_key",
    "ssl_options.password": "tls_key_password",
    "ssl_options.verify": "tls_verify",
    "ssl_cert_login_from": "tls_login_from",
    "vhost_max": "vhost_max",
}
"""Keys with values that are read as they are; "" for a key that needs nothing."""

SATISFIED = {
    "reverse_dns_lookups": ("false",),
    "definitions.hashing.algorithm": ("sha256",),
    "definitions.import_backend": ("local_filesystem",),
    "log.console.formatter.single_line": ("on", "true"),
    "log.file.formatter.single_line": ("on", "true"),
    "log.exchange.formatter.single_line": ("on", "true"),
    "log.syslog.formatter.single_line": ("on", "true"),
    "management_agent.disable_metrics_collector": ("false",),
    "ssl_options.honor_cipher_order": ("true",),
    "ssl_options.honor_ecc_order": ("true",),
    "queue_types.classic.enabled": ("true",),
    "queue_types.quorum.enabled": ("true",),
    "queue_types.stream.enabled": ("true",),
    "exchange_types.local_random.enabled": ("true",),
}
"""Keys and the values of them that Harebell always has."""

AUTH_BACKENDS = "write auth_backends.1 = internal"
ALSO_KNOWN = ("ssl_options.ciphers.$name", "ssl_options.depth", "ssl_options.versions.$name")

Rule = Callable[["Translation", Line, tuple[str, ...]], None]
_RULES: dict[str, tuple[Rule, tuple[str, ...]]] = {}


class Translation:
    """The settings that the lines of `rabbitmq.conf` and `conf.d` give.

    Args:
        lines: the settings of all files, in the order of reading; a later one replaces an earlier
            one of the same key.

    Attributes:
        values: values by the names of Harebell's settings, not checked yet.
        places: the key, and where it is written, by the same names.
        warnings: keys without an effect, each as a sentence.
        backends: the lines of `auth_backends`.

    Raises:
        ConfigError: a value is wrong, or no backend of `auth_backends` is one of Harebell.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self.values: dict[str, Any] = {}
        self.places: dict[str, ValueOrigin] = {}
        self.warnings: list[str] = []
        self.backends: list[Line] = []
        for line in {line.segments: line for line in lines}.values():
            self._translate(line)
        self._finish()

    def put(self, name: str, value: Any, line: Line) -> None:
        """Set a setting."""
        self.values[name] = value
        self.places[name] = ValueOrigin(line.shown, str(line.path))

    def add(self, name: str, path: tuple[str, ...], value: Any, line: Line) -> None:
        """Set a member of a setting that is a table."""
        table = self.values.setdefault(name, {})
        for segment in path[:-1]:
            table = table.setdefault(segment, {})
        table[path[-1]] = value
        self.places[name] = ValueOrigin(line.shown, str(line.path))

    def append(self, name: str, value: Any, line: Line) -> None:
        """Add a member to a setting that is a list."""
        self.put(name, [*self.values.get(name, []), value], line)

    def warn(self, line: Line, why: str) -> None:
        """Note that a line has no effect."""
        self.warnings.append(f"{line.shown} {why}")

    def _translate(self, line: Line) -> None:
        name = SAME.get(line.key)
        if name is not None:
            if name:
                self.put(name, line.value, line)
            return
        for pattern, (rule, _) in _RULES.items():
            found = _captured(pattern, line.segments)
            if found is not None:
                rule(self, line, found)
                return
        for pattern, always in SATISFIED.items():
            if fits(pattern, line.segments):
                if line.value not in always:
                    reason = reason_of(line.segments) or f"it is {' or '.join(always)} always"
                    self.warn(line, f"has no effect in Harebell: {reason}")
                return
        if is_known(line.segments) or any(fits(key, line.segments) for key in ALSO_KNOWN):
            reason = reason_of(line.segments)
            self.warn(line, f"has no effect in Harebell{f': {reason}' if reason else ''}")
        else:
            self.warn(line, f"is unknown and has no effect{_hint(line.key)}")

    def _finish(self) -> None:
        """Combine keys that belong together."""
        entries, warnings = listed_backends(self.backends)
        self.warnings += warnings
        if entries and entries != ["internal"]:
            self.put("auth_backends", entries, self.backends[0])
        for row in self.values.pop("_aliases", {}).values():
            place = self.places["_aliases"]
            if len(row) < 2:
                raise ConfigError(f"{place.shown} needs both .alias and .scope")
            self.values.setdefault("auth_oauth2_scope_aliases", {})[row["alias"]] = row["scope"]
            self.places.setdefault("auth_oauth2_scope_aliases", place)
        self.places.pop("_aliases", None)
        cached = self.values.pop("_cached", None)
        if cached is not None:
            place = self.places.pop("_cached")
            both = f"{cached.get('authn', '')}/{cached.get('authz', '')}"
            try:
                self.values["auth_cache_cached_backend"] = backend_entry(both)
            except ValueError as error:
                raise ConfigError(f"{place.shown} {error}") from None
            self.places["auth_cache_cached_backend"] = place
        total = self.values.pop("_total_memory", None)
        if total is not None:
            share = self.values.get("memory_high_watermark", limits.MEMORY_HIGH_WATERMARK)
            if isinstance(share, float):
                self.values["memory_high_watermark"] = int(total * share)
                self.places.setdefault("memory_high_watermark", self.places["_total_memory"])
        self.places.pop("_total_memory", None)
        if "log_dir" in self.values and "log_file" not in self.values:
            # RabbitMQ logs to a file of its own name in that directory.
            self.values["log_file"] = "harebell.log"
            self.places["log_file"] = self.places["log_dir"]
        ssl = [name for name in self.values if name.startswith("tls_") and name != "tls_port"]
        if not {"tls_port", "management_tls_port", "metrics_tls_port"} & set(self.values):
            for name in ssl:
                place = self.places.pop(name)
                del self.values[name]
                self.warnings.append(
                    f"{place.shown} has no effect: there is no listeners.ssl.default"
                )


def _captured(pattern: str, segments: tuple[str, ...]) -> tuple[str, ...] | None:
    if not fits(pattern, segments):
        return None
    parts = pattern.split(".")
    return tuple(
        segment for part, segment in zip(parts, segments, strict=True) if part.startswith("$")
    )


def _hint(key: str) -> str:
    known = [*SAME, *_RULES, *SATISFIED, *known_keys(), *ALSO_KNOWN]
    near = nearest(key, [each for each in known if "$" not in each] + _examples())
    return "" if near is None else f": did you mean {near}?"


def _examples() -> list[str]:
    """Return keys with variable segments as they are usually written."""
    return ["listeners.tcp.default", "listeners.ssl.default", "loopback_users.guest"]


def rabbitmq_names() -> dict[str, tuple[str, ...]]:
    """Return the keys of RabbitMQ that set each setting of Harebell."""
    found: dict[str, list[str]] = {}
    for key, name in SAME.items():
        found.setdefault(name, []).append(key)
    for pattern, (_, names) in _RULES.items():
        for name in names:
            found.setdefault(name, []).append(pattern)
    return {name: tuple(keys) for name, keys in found.items() if name}


def _rule(*patterns: str, sets: tuple[str, ...]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for pattern in patterns:
            _RULES[pattern] = (rule, sets)
        return rule

    return register


def _wrong(line: Line, allowed: str) -> ConfigError:
    return ConfigError(f"{line.shown} must be {allowed}, not {line.value!r}")


def _number(line: Line) -> int:
    if not re.fullmatch(r"\d{1,15}", line.value):
        raise _wrong(line, "a whole number")
    return int(line.value)


def _flag(line: Line) -> bool:
    try:
        return switch(line.value)
    except ValueError:
        raise _wrong(line, "true or false") from None


def _byte_count(line: Line) -> int:
    found = rabbitmq_size(line.value)
    if found is None:
        raise _wrong(line, "a size such as 2GB or 512MiB")
    return found


# --- authentication -------------------------------------------------------------------------------


@_rule("auth_backends.$num", sets=("auth_backends",))
@_rule("auth_backends.$num.$half", sets=("auth_backends",))
def _backend(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[1:] not in ((), ("authn",), ("authz",)):
        # A warning would not do: the list says who may connect.
        raise ConfigError(f"{line.shown} is unknown: {AUTH_BACKENDS}")
    translation.backends.append(line)


@_rule("auth_backends", sets=())
def _backends(_translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    raise ConfigError(f"{line.shown} needs a number: {AUTH_BACKENDS}")


@_rule("auth_cache.cached_backend", sets=("auth_cache_cached_backend",))
def _cached(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    for half in ("authn", "authz"):
        translation.add("_cached", (half,), line.value, line)


@_rule("auth_cache.cached_backend.$half", sets=("auth_cache_cached_backend",))
def _cached_half(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[0] not in ("authn", "authz"):
        raise ConfigError(f"{line.shown} is unknown: write .authn and .authz")
    translation.add("_cached", found, line.value, line)


@_rule("auth_oauth2.signing_keys.$name", sets=("auth_oauth2_signing_keys",))
def _signing_key(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    translation.add("auth_oauth2_signing_keys", found, line.value, line)


@_rule("auth_oauth2.algorithms.$algorithm", sets=("auth_oauth2_algorithms",))
def _algorithm(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.append("auth_oauth2_algorithms", line.value, line)


@_rule(
    "auth_oauth2.preferred_username_claims",
    "auth_oauth2.preferred_username_claims.$num",
    sets=("auth_oauth2_preferred_username_claims",),
)
def _user_claim(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.append("auth_oauth2_preferred_username_claims", line.value, line)


@_rule("auth_oauth2.scope_aliases.$alias", sets=("auth_oauth2_scope_aliases",))
def _alias(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    translation.add("auth_oauth2_scope_aliases", found, line.value, line)


@_rule("auth_oauth2.scope_aliases.$num.$what", sets=("auth_oauth2_scope_aliases",))
def _numbered_alias(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[1] not in ("alias", "scope"):
        raise ConfigError(f"{line.shown} is unknown: write .alias and .scope")
    translation.add("_aliases", found, line.value, line)


# --- definitions ---------------------------------------------------------------------------------

_BACKENDS = {
    "local": "local_filesystem",
    "rabbit_definitions_import_local_filesystem": "local_filesystem",
    "rabbit_definitions_import_https": "https",
}


@_rule("definitions.import_backend", sets=("definitions_import_backend",))
def _import_backend(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("definitions_import_backend", _BACKENDS.get(line.value, line.value), line)


# --- listeners ------------------------------------------------------------------------------------


def _address(line: Line) -> tuple[str, int]:
    found = re.fullmatch(r"(?:(.*):)?(\d{1,5})", line.value)
    if found is None or int(found[2]) > PORT_MAX:
        raise _wrong(line, "a port, or an address and a port such as 127.0.0.1:5672")
    host = (found[1] or "").removeprefix("[").removesuffix("]")
    return host or ALL_ADDRESSES, int(found[2])


@_rule("listeners.ssl", sets=())
@_rule("listeners.tcp", sets=("port",))
def _no_listener(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value != "none":
        raise _wrong(line, "none; a port is listeners.tcp.default = 5672")
    if line.segments[1] == "tcp":
        translation.put("port", "none", line)


@_rule("listeners.tcp.$name", sets=("port", "host", "listen"))
def _tcp(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    host, port = _address(line)
    if translation.values.get("port", "none") == "none":
        translation.put("port", port, line)
        translation.put("host", host, line)
    else:
        translation.append("listen", _url("amqp", host, port), line)


@_rule("listeners.ssl.$name", sets=("tls_port", "tls_host", "listen"))
def _ssl(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    host, port = _address(line)
    if "tls_port" not in translation.values:
        translation.put("tls_port", port, line)
        translation.put("tls_host", host, line)
    else:
        translation.append("listen", _url("amqps", host, port), line)


def _url(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@_rule("ssl_options.versions.$name", sets=("tls_min_version",))
def _tls_version(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value not in ("tlsv1.3", "tlsv1.2"):
        translation.warn(line, "has no effect: Harebell serves TLS 1.2 and 1.3")
        return
    known = translation.values.get("tls_min_version", line.value)
    translation.put("tls_min_version", min(known, line.value), line)


@_rule("ssl_options.ciphers.$name", sets=("tls_ciphers",))
def _cipher(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value.startswith("TLS_"):
        translation.warn(line, "has no effect: the ciphers of TLS 1.3 are not configured")
        return
    before = translation.values.get("tls_ciphers")
    translation.put("tls_ciphers", f"{before}:{line.value}" if before else line.value, line)


@_rule("management.cors.allow_origins.$name", sets=("management_cors_allow_origins",))
def _origin(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.append("management_cors_allow_origins", line.value, line)


@_rule(
    "management.sample_retention_policies.$section.$interval",
    sets=("management_sample_retention_policies",),
)
def _retention(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    section, age = found
    name = "management_sample_retention_policies"
    known = translation.values.get(name, {})
    changed = {**known, section: {**known.get(section, {}), age: line.value}}
    translation.put(name, changed, line)


_HTTP_TLS = {"cacertfile": "tls_ca", "certfile": "tls_cert", "keyfile": "tls_key"}


@_rule("management.ssl.cacertfile", "prometheus.ssl.cacertfile", sets=("tls_ca",))
@_rule("management.ssl.certfile", "prometheus.ssl.certfile", sets=("tls_cert",))
@_rule("management.ssl.keyfile", "prometheus.ssl.keyfile", sets=("tls_key",))
def _http_tls(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    """Use the files for AMQP too: Harebell has one certificate for all its ports."""
    name = _HTTP_TLS[line.segments[2]]
    if translation.values.setdefault(name, line.value) != line.value:
        used = translation.places[name].shown
        translation.warn(line, f"has no effect: all ports have one certificate, that of {used}")
    else:
        translation.places.setdefault(name, ValueOrigin(line.shown, str(line.path)))


# --- users and vhosts -----------------------------------------------------------------------------


@_rule("loopback_users", sets=("loopback_users",))
def _no_loopback_users(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value != "none":
        raise _wrong(line, "none; a user is loopback_users.guest = true")
    translation.put("loopback_users", [], line)


@_rule("loopback_users.$user", sets=("loopback_users",))
def _loopback_user(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    known = translation.values.get("loopback_users", ["guest"])
    others = [user for user in known if user != found[0]]
    translation.put("loopback_users", [*others, found[0]] if _flag(line) else others, line)


@_rule("anonymous_login_user", sets=("anonymous_login_user",))
def _anonymous(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value != "none":
        translation.put("anonymous_login_user", line.value, line)


@_rule("default_user_tags.$tag", sets=("default_user_tags",))
def _default_tag(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    known = translation.values.get("default_user_tags", [])
    translation.put("default_user_tags", [*known, found[0]] if _flag(line) else known, line)


@_rule("default_users.$name.$what", sets=("default_users",))
def _default_users(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[1] not in ("vhost_pattern", "configure", "read", "write", "password", "tags"):
        translation.warn(line, "is unknown and has no effect")
        return
    value: Any = line.value
    if found[1] == "tags":
        value = [tag.strip() for tag in line.value.split(",") if tag.strip()]
    translation.add("default_users", found, value, line)


@_rule("default_limits.vhosts.$id.$what", sets=("default_limits_vhosts",))
def _default_limits(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[1] not in ("pattern", "max_connections", "max_queues"):
        translation.warn(line, "is unknown and has no effect")
        return
    value = line.value if found[1] == "pattern" else _number(line)
    translation.add("default_limits_vhosts", found, value, line)


_POLICY_NUMBERS = (
    *("delivery_limit", "max_in_memory_bytes", "max_in_memory_length", "max_length"),
    "max_length_bytes",
)


@_rule("default_policies.operator.$id.$what", sets=("default_policies_operator",))
def _default_policy(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    value: Any = line.value
    if found[1] in _POLICY_NUMBERS:
        value = _byte_count(line)
    elif found[1] in ("expires", "message_ttl"):
        value = _milliseconds(line)
    elif found[1] not in ("vhost_pattern", "queue_pattern", "apply_to"):
        translation.warn(line, "is unknown and has no effect")
        return
    translation.add("default_policies_operator", found, value, line)


_UNITS_MS = {"": 1, "ms": 1, "s": _MS, "m": 60 * _MS, "h": 3600 * _MS, "d": 86400 * _MS}
_UNITS_MS["w"] = 7 * _UNITS_MS["d"]


def _milliseconds(line: Line) -> int:
    found = re.fullmatch(r"(\d{1,12})(ms|s|m|h|d|w|)", line.value)
    if found is None:
        raise _wrong(line, "a time such as 30s, 1h or a number of milliseconds")
    return int(found[1]) * _UNITS_MS[found[2]]


@_rule("credential_validator.validation_backend", sets=("credential_validator",))
def _validator(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    names = {
        "rabbit_credential_validator_accept_everything": "accept_everything",
        "rabbit_credential_validator_min_password_length": "min_length",
        "rabbit_credential_validator_password_regexp": "regexp",
    }
    if line.value not in names:
        raise _wrong(line, "one of " + ", ".join(names))
    translation.put("credential_validator", names[line.value], line)


@_rule("cluster_tags.$tag", sets=("cluster_tags",))
def _cluster_tag(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    translation.add("cluster_tags", found, line.value, line)


@_rule("node_tags.$tag", sets=("node_tags",))
def _node_tag(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    translation.add("node_tags", found, line.value, line)


@_rule("auth_mechanisms.$name", sets=("auth_mechanisms",))
def _mechanism(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    known = ("PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS")
    if line.value.upper() not in known and not line.value.upper().startswith(("SCRAM-", "CRAM-")):
        translation.warn(line, f"has no effect: {line.value} is no mechanism of Harebell")
        return
    translation.append("auth_mechanisms", line.value, line)


# --- limits ---------------------------------------------------------------------------------------


@_rule("max_connections", "ranch_connection_max", sets=("connection_max",))
def _connections(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("connection_max", 0 if line.value == "infinity" else line.value, line)


@_rule("handshake_timeout", sets=("handshake_timeout_seconds",))
def _handshake(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("handshake_timeout_seconds", _number(line) / _MS, line)


@_rule("vm_memory_high_watermark.relative", sets=("memory_high_watermark",))
def _memory_share(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("memory_high_watermark", _share(line, maximum=1.0), line)


@_rule("vm_memory_high_watermark.absolute", sets=("memory_high_watermark",))
def _memory_size(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("memory_high_watermark", _byte_count(line), line)


@_rule("total_memory_available_override_value", sets=("memory_high_watermark",))
def _total_memory(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("_total_memory", _byte_count(line), line)


@_rule("disk_free_limit.absolute", sets=("disk_free_limit",))
def _disk_size(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("disk_free_limit", _byte_count(line), line)


@_rule("disk_free_limit.relative", sets=("disk_free_limit",))
def _disk_share(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    # RabbitMQ's share is of the memory, and may be more than 1.
    share = _share(line, maximum=1000.0)
    translation.put("disk_free_limit", int(share * machine_memory_bytes()), line)


def _share(line: Line, maximum: float) -> float:
    try:
        share = float(line.value)
    except ValueError:
        share = -1.0
    if not 0 < share <= maximum:
        raise _wrong(line, f"a number above 0 and up to {maximum:g}")
    return share


# --- logs -----------------------------------------------------------------------------------------

_LEVELS = {"notice": "warning", "critical": "none", "alert": "none", "emergency": "none"}
"""RabbitMQ's levels between and above those of Harebell: which one shows the same lines."""


@_rule("log.console.level", sets=("log_console_level",))
@_rule("log.file.level", sets=("log_file_level",))
@_rule("log.exchange.level", sets=("log_exchange_level",))
@_rule("log.syslog.level", sets=("log_syslog_level",))
@_rule("log.journald.level", sets=("log_journald_level",))
def _output_level(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    value = _LEVELS.get(line.value, line.value)
    translation.put(f"log_{line.segments[1]}_level", value, line)


@_rule("log.$category.level", sets=("log_levels", "log_level"))
def _category_level(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[0] not in CATEGORIES:
        near = did_you_mean(found[0], (*CATEGORIES, *OUTPUTS))
        translation.warn(line, f"is unknown and has no effect: {near}")
        return
    value = _LEVELS.get(line.value, line.value)
    if found[0] == "default":
        translation.put("log_level", value, line)
    else:
        translation.add("log_levels", found, value, line)


@_rule("log.$category.file", sets=("log_files",))
def _category_file(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    if found[0] not in CATEGORIES or found[0] == "default":
        near = did_you_mean(found[0], CATEGORIES)
        translation.warn(line, f"is unknown and has no effect: {near}")
        return
    translation.add("log_files", (found[0], "file"), line.value, line)


@_rule("log.syslog.protocol", sets=("log_syslog_protocol", "log_syslog_transport"))
def _syslog_protocol(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    """Take the protocol; RabbitMQ also has udp, tcp and tls here, with RFC 3164."""
    if line.value in ("udp", "tcp", "tls"):
        _syslog_transport(translation, line, _found)
    else:
        translation.put("log_syslog_protocol", line.value, line)


@_rule("log.syslog.transport", sets=("log_syslog_transport",))
def _syslog_transport(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value == "tls":
        raise _wrong(line, "udp or tcp: syslog over TLS is left to the syslog daemon")
    translation.put("log_syslog_transport", line.value, line)


@_rule("log.console", sets=("log_console",))
def _console(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("log_console", _flag(line), line)


@_rule("log.console.stdio", sets=("log_console_stdio",))
def _stdio(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("log_console_stdio", line.value, line)


@_rule("log.exchange", sets=("log_exchange",))
def _exchange(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("log_exchange", _flag(line), line)


@_rule("log.file", sets=("log_file",))
def _file(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    if line.value == "true":
        translation.put("log_file", "harebell.log", line)
    else:
        translation.put("log_file", "none" if line.value == "false" else line.value, line)


@_rule("log.file.rotation.size", sets=("log_file_rotation_size",))
def _rotation_size(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put("log_file_rotation_size", _byte_count(line), line)


@_rule("log.file.rotation.date", sets=("log_file_rotation_date",))
@_rule("log.file.rotation.count", sets=("log_file_rotation_count",))
@_rule("log.file.rotation.compress", sets=("log_file_rotation_compress",))
def _rotation(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    translation.put(f"log_file_rotation_{line.segments[3]}", line.value, line)


@_rule("log.$category.rotation.$what", sets=("log_files",))
def _category_rotation(translation: Translation, line: Line, found: tuple[str, ...]) -> None:
    category, what = found
    if category not in CATEGORIES or what not in ("size", "date", "count", "compress"):
        translation.warn(
            line, f"is unknown and has no effect: {did_you_mean(category, CATEGORIES)}"
        )
        return
    if category == "default":
        translation.warn(line, "has no effect: log.file.rotation sets how the log file is rotated")
        return
    value = _byte_count(line) if what == "size" else line.value
    translation.add("log_files", (category, f"rotation_{what}"), value, line)


def _formatter(translation: Translation, line: Line, _found: tuple[str, ...]) -> None:
    """Set `log_console_time_format` from `log.console.formatter.time_format`, and so on."""
    translation.put(_formatter_setting(line.segments), line.value, line)


def _formatter_setting(segments: tuple[str, ...]) -> str:
    _, output, *rest = segments
    return f"log_{output}_{'_'.join(rest if len(rest) == 1 else rest[1:])}"


_FORMATTER_KEYS = (
    *("formatter", "formatter.time_format", "formatter.level_format"),
    *("formatter.plaintext.format", "formatter.json.field_map"),
)
for _output in OUTPUTS:
    for _key in _FORMATTER_KEYS:
        _pattern = f"log.{_output}.{_key}"
        _RULES[_pattern] = (_formatter, (_formatter_setting(tuple(_pattern.split("."))),))
