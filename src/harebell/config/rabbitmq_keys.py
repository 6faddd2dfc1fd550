"""Translate the keys of `rabbitmq.conf` to the settings of Harebell.

`SAME` has the keys whose values Harebell reads as they are; `harebell.config.settings` names them.
`_CONVERTED` has keys whose values are written in another way. A rule translates the other keys: its
pattern has `$name` for any segment, and the rule gets the segments that matched. `SATISFIED` are
keys whose effect Harebell always has. A key of RabbitMQ that is none of these gets a warning, and
so does an unknown key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from harebell.base.names import did_you_mean, nearest
from harebell.config import limits
from harebell.config.auth_backends import backend_entry, listed_backends
from harebell.config.errors import ConfigError, Problems
from harebell.config.rabbitmq_conf import Line
from harebell.config.rabbitmq_known import fits, is_known, known_keys
from harebell.config.rabbitmq_reasons import reason_of
from harebell.config.rabbitmq_values import (
    address,
    as_is,
    byte_count,
    connections,
    disk_bytes,
    flag,
    frame_bytes,
    import_backend,
    log_file,
    log_level,
    memory_share,
    milliseconds,
    number,
    password_validator,
    seconds,
    words,
    wrong,
)
from harebell.config.settings import SETTINGS
from harebell.config.values import ValueOrigin

OUTPUTS = ("console", "file", "exchange", "syslog")
CATEGORIES = (
    *("connection", "channel", "queue", "default", "user", "upgrade", "ra", "mirroring"),
    "federation",
)
_NEARLY = 0.6
"""The similarity from which a segment of a key may be a misspelling of another."""
_FORMATTER_KEYS = {
    "formatter": "formatter",
    "formatter.time_format": "time_format",
    "formatter.level_format": "level_format",
    "formatter.plaintext.format": "plaintext_format",
    "formatter.json.field_map": "json_field_map",
}
SAME = {
    "anonymous_login_pass": "",
    **{key: setting.name for setting in SETTINGS for key in setting.rabbitmq},
    **{
        f"log.{output}.{key}": f"log_{output}_{name}"
        for output in OUTPUTS
        for key, name in _FORMATTER_KEYS.items()
    },
}
"""Keys with values that are read as they are; "" for a key that needs nothing."""

SATISFIED = {
    "ssl_options": ("none",),
    "tcp_listen_options": ("none",),
    "reverse_dns_lookups": ("false",),
    "definitions.hashing.algorithm": ("sha256",),
    "definitions.import_backend": ("local_filesystem",),
    **{f"log.{output}.formatter.single_line": ("on", "true") for output in OUTPUTS},
    "management_agent.disable_metrics_collector": ("false",),
    "ssl_options.honor_cipher_order": ("true",),
    "ssl_options.honor_ecc_order": ("true",),
    **{f"queue_types.{kind}.enabled": ("true",) for kind in ("classic", "quorum", "stream")},
    "exchange_types.local_random.enabled": ("true",),
}
"""Keys with the values whose effect Harebell always has."""

AUTH_BACKENDS = "write auth_backends.1 = internal"

Rule = Callable[["Translation", Line, tuple[str, ...]], None]
_RULES: dict[str, tuple[Rule, tuple[str, ...]]] = {}


class Translation:
    """The settings that the lines of `rabbitmq.conf` and `conf.d` give.

    Args:
        lines: the settings of all files, in the order of reading; a later one replaces an earlier
            one of the same key.
        problems: gets an error for each wrong value, and for `auth_backends` without a backend of
            Harebell.

    Attributes:
        values: values by the names of Harebell's settings, not checked yet.
        places: where each value is written, by the same names.
        warnings: a sentence for each key without an effect.
        backends: the lines of `auth_backends`.
    """

    def __init__(self, lines: Iterable[Line], problems: Problems) -> None:
        self.values: dict[str, Any] = {}
        self.places: dict[str, ValueOrigin] = {}
        self.warnings: list[str] = []
        self.backends: list[Line] = []
        for line in {line.segments: line for line in lines}.values():
            with problems.noted():
                self._translate(line)
        # Keys whose effect depends on other keys, wherever those are written.
        for combine in (
            self._combine_backends,
            self._combine_scope_aliases,
            self._combine_cached_backend,
            self._combine_memory,
            self._combine_listeners,
            self._drop_unused_tls,
        ):
            # Each alone: what it combines is in `values` under a name that is no key until then.
            with problems.noted():
                combine()

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
        """Add a warning about a line without an effect."""
        self.warnings.append(f"{line.shown} {why}")

    def _translate(self, line: Line) -> None:
        name = SAME.get(line.key)
        if name is not None:
            if name:
                self.put(name, line.value, line)
            return
        for pattern, (rule, _) in _RULES.items():
            matched = _captured(pattern, line.segments)
            if matched is not None:
                rule(self, line, matched)
                return
        for pattern, always in SATISFIED.items():
            if fits(pattern, line.segments):
                if line.value not in always:
                    reason = reason_of(line.segments) or f"it is {' or '.join(always)} always"
                    self.warn(line, f"has no effect in Harebell: {reason}")
                return
        if is_known(line.segments):
            reason = reason_of(line.segments)
            self.warn(line, f"has no effect in Harebell{f': {reason}' if reason else ''}")
        else:
            self.warn(line, f"is unknown and has no effect{_hint(line.key)}")

    def _combine_backends(self) -> None:
        entries, warnings = listed_backends(self.backends)
        self.warnings += warnings
        if entries and entries != ["internal"]:
            self.put("auth_backends", entries, self.backends[0])

    def _combine_scope_aliases(self) -> None:
        """Join the numbered keys `.alias` and `.scope` of each alias."""
        for row in self.values.pop("_aliases", {}).values():
            place = self.places["_aliases"]
            if len(row) < 2:
                raise ConfigError(f"{place.shown} needs both .alias and .scope")
            self.values.setdefault("auth_oauth2_scope_aliases", {})[row["alias"]] = row["scope"]
            self.places.setdefault("auth_oauth2_scope_aliases", place)
        self.places.pop("_aliases", None)

    def _combine_cached_backend(self) -> None:
        """Join the keys `.authn` and `.authz` of the backend that is cached."""
        halves = self.values.pop("_cached", None)
        if halves is None:
            return
        place = self.places.pop("_cached")
        try:
            entry = backend_entry(f"{halves.get('authn', '')}/{halves.get('authz', '')}")
        except ValueError as error:
            raise ConfigError(f"{place.shown} {error}") from None
        self.values["auth_cache_cached_backend"] = entry
        self.places["auth_cache_cached_backend"] = place

    def _combine_memory(self) -> None:
        """Take the share of memory from the total that the file overrides."""
        total = self.values.pop("_total_memory", None)
        place = self.places.pop("_total_memory", None)
        if total is None or place is None:
            return
        share = self.values.get("memory_high_watermark", limits.MEMORY_HIGH_WATERMARK)
        if isinstance(share, float):
            self.values["memory_high_watermark"] = int(total * share)
            self.places.setdefault("memory_high_watermark", place)

    def _combine_listeners(self) -> None:
        """Apply what other keys decide about the log file, TCP and the port of the HTTP API."""
        if "log_dir" in self.values and "log_file" not in self.values:
            # RabbitMQ logs to a file of its own name in that directory.
            self.values["log_file"] = "harebell.log"
            self.places["log_file"] = self.places["log_dir"]
        if self._flagged("_no_linger"):
            self.values.pop("tcp_linger_seconds", None)
        if self._flagged("_listener_tls") and "management_port" in self.values:
            self.values["management_tls_port"] = self.values.pop("management_port")
            self.places["management_tls_port"] = self.places.pop("management_port")

    def _drop_unused_tls(self) -> None:
        """Drop the files of TLS with a warning if no port has TLS, which Harebell would refuse."""
        if {"tls_port", "management_tls_port", "metrics_tls_port"} & set(self.values):
            return
        for name in [name for name in self.values if name.startswith("tls_")]:
            place = self.places.pop(name)
            del self.values[name]
            self.warnings.append(f"{place.shown} has no effect: there is no listeners.ssl.default")

    def _flagged(self, name: str) -> bool:
        """Remove a mark that a rule has set for `_finish`, and return whether it was true."""
        self.places.pop(name, None)
        return bool(self.values.pop(name, False))


def _captured(pattern: str, segments: tuple[str, ...]) -> tuple[str, ...] | None:
    if not fits(pattern, segments):
        return None
    parts = pattern.split(".")
    return tuple(
        segment for part, segment in zip(parts, segments, strict=True) if part.startswith("$")
    )


def _hint(key: str) -> str:
    """Return a suggestion for an unknown key; "" if none has its segments, each nearly the same."""
    keys = [*SAME, *_RULES, *SATISFIED, *known_keys(), *_examples()]
    parts = key.split(".")
    alike = [
        each
        for each in dict.fromkeys(keys)
        if "$" not in each
        and len(each.split(".")) == len(parts)
        and all(map(_nearly, parts, each.split(".")))
    ]
    near = nearest(key, alike)
    return "" if near is None else f": did you mean {near}?"


def _nearly(part: str, segment: str) -> bool:
    from difflib import SequenceMatcher  # here: slow to import, only for errors

    return SequenceMatcher(None, part, segment).ratio() >= _NEARLY


def _examples() -> list[str]:
    """Return keys with variable segments as they are usually written."""
    return ["listeners.tcp.default", "listeners.ssl.default", "loopback_users.guest"]


def rabbitmq_names() -> dict[str, tuple[str, ...]]:
    """Return the keys of RabbitMQ that set each setting of Harebell."""
    names: dict[str, list[str]] = {}
    for key, name in SAME.items():
        names.setdefault(name, []).append(key)
    for pattern, (_, settings) in _RULES.items():
        for name in settings:
            names.setdefault(name, []).append(pattern)
    return {name: tuple(keys) for name, keys in names.items() if name}


def _rule(*patterns: str, sets: tuple[str, ...]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for pattern in patterns:
            _RULES[pattern] = (rule, sets)
        return rule

    return register


# --- keys with a value that is written in another way ---------------------------------------------

_CONVERTED: dict[str, tuple[str, Callable[[Line], Any]]] = {
    "definitions.import_backend": ("definitions_import_backend", import_backend),
    "tcp_listen_options.backlog": ("tcp_backlog", number),
    "tcp_listen_options.sndbuf": ("tcp_send_buffer_bytes", number),
    "tcp_listen_options.recbuf": ("tcp_receive_buffer_bytes", number),
    "credential_validator.validation_backend": ("credential_validator", password_validator),
    **dict.fromkeys(
        ("connection_max", "max_connections", "ranch_connection_max"),
        ("connection_max", connections),
    ),
    "frame_max": ("frame_max", frame_bytes),
    "initial_frame_max": ("initial_frame_max", frame_bytes),
    **{
        f"management.{socket}.{what}_timeout": (f"management_{what}_timeout_seconds", seconds)
        for what in ("request", "idle")
        for socket in ("tcp", "ssl")
    },
    "handshake_timeout": ("handshake_timeout_seconds", seconds),
    "vm_memory_high_watermark.relative": ("memory_high_watermark", memory_share),
    "vm_memory_high_watermark.absolute": ("memory_high_watermark", byte_count),
    "disk_free_limit.absolute": ("disk_free_limit", byte_count),
    "disk_free_limit.relative": ("disk_free_limit", disk_bytes),
    **{f"log.{each}.level": (f"log_{each}_level", log_level) for each in (*OUTPUTS, "journald")},
    "log.file": ("log_file", log_file),
    "log.file.rotation.size": ("log_file_rotation_size", byte_count),
}
_ITEMS = {
    "auth_oauth2.algorithms.$algorithm": "auth_oauth2_algorithms",
    "auth_oauth2.preferred_username_claims": "auth_oauth2_preferred_username_claims",
    "auth_oauth2.preferred_username_claims.$num": "auth_oauth2_preferred_username_claims",
    "management.cors.allow_origins.$name": "management_cors_allow_origins",
}
"""Keys with one item each of a setting that is a list."""
_MEMBERS = {
    "auth_oauth2.authorization_endpoint_params.$name": "auth_oauth2_authorization_endpoint_params",
    "auth_oauth2.signing_keys.$name": "auth_oauth2_signing_keys",
    "auth_oauth2.token_endpoint_params.$name": "auth_oauth2_token_endpoint_params",
    "auth_oauth2.scope_aliases.$alias": "auth_oauth2_scope_aliases",
    "cluster_tags.$tag": "cluster_tags",
    "node_tags.$tag": "node_tags",
}
"""Keys with one member each of a setting that is a table."""


def _converted(name: str, convert: Callable[[Line], Any]) -> Rule:
    return lambda translation, line, _: translation.put(name, convert(line), line)


def _item(name: str) -> Rule:
    return lambda translation, line, _: translation.append(name, line.value, line)


def _member(name: str) -> Rule:
    return lambda translation, line, path: translation.add(name, path, line.value, line)


_RULES |= {key: (_converted(*to), (to[0],)) for key, to in _CONVERTED.items()}
_RULES |= {key: (_item(name), (name,)) for key, name in _ITEMS.items()}
_RULES |= {key: (_member(name), (name,)) for key, name in _MEMBERS.items()}


# --- authentication -------------------------------------------------------------------------------


@_rule("auth_backends.$num", sets=("auth_backends",))
@_rule("auth_backends.$num.$half", sets=("auth_backends",))
def _backend(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    if matched[1:] not in ((), ("authn",), ("authz",)):
        # An error, not a warning: the list decides who may connect.
        raise ConfigError(f"{line.shown} is unknown: {AUTH_BACKENDS}")
    if not re.fullmatch(r"\d{1,9}", matched[0]):
        raise ConfigError(f"{line.shown} needs a number: {AUTH_BACKENDS}")
    translation.backends.append(line)


@_rule("auth_backends", sets=())
def _backends(_translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    raise ConfigError(f"{line.shown} needs a number: {AUTH_BACKENDS}")


@_rule("auth_cache.cached_backend", sets=("auth_cache_cached_backend",))
def _cached(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    for half in ("authn", "authz"):
        translation.add("_cached", (half,), line.value, line)


@_rule("auth_cache.cached_backend.$half", sets=("auth_cache_cached_backend",))
def _cached_half(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    if matched[0] not in ("authn", "authz"):
        raise ConfigError(f"{line.shown} is unknown: write .authn and .authz")
    translation.add("_cached", matched, line.value, line)


@_rule("auth_oauth2.scope_aliases.$num.$what", sets=("auth_oauth2_scope_aliases",))
def _numbered_alias(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    if matched[1] not in ("alias", "scope"):
        raise ConfigError(f"{line.shown} is unknown: write .alias and .scope")
    translation.add("_aliases", matched, line.value, line)


# --- listeners ------------------------------------------------------------------------------------


@_rule("listeners.ssl", sets=())
@_rule("listeners.tcp", sets=("port",))
def _no_listener(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    if line.value != "none":
        raise wrong(line, "none; a port is listeners.tcp.default = 5672")
    if line.segments[1] == "tcp":
        translation.put("port", "none", line)


@_rule("listeners.tcp.$name", sets=("port", "host", "listen"))
def _tcp(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    host, port = address(line)
    if translation.values.get("port", "none") == "none":
        translation.put("port", port, line)
        translation.put("host", host, line)
    else:
        translation.append("listen", _url("amqp", host, port), line)


@_rule("listeners.ssl.$name", sets=("tls_port", "tls_host", "listen"))
def _ssl(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    host, port = address(line)
    if "tls_port" not in translation.values:
        translation.put("tls_port", port, line)
        translation.put("tls_host", host, line)
    else:
        translation.append("listen", _url("amqps", host, port), line)


def _url(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@_rule("ssl_options.versions.$name", sets=("tls_min_version",))
def _tls_version(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    if line.value not in ("tlsv1.3", "tlsv1.2"):
        translation.warn(line, "has no effect: Harebell serves TLS 1.2 and 1.3")
        return
    lowest = translation.values.get("tls_min_version", line.value)
    translation.put("tls_min_version", min(lowest, line.value), line)


@_rule("ssl_options.ciphers.$name", sets=("tls_ciphers",))
def _cipher(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    if line.value.startswith("TLS_"):
        translation.warn(line, "has no effect: the ciphers of TLS 1.3 are not configured")
        return
    before = translation.values.get("tls_ciphers")
    translation.put("tls_ciphers", f"{before}:{line.value}" if before else line.value, line)


@_rule(
    "management.sample_retention_policies.$section.$interval",
    sets=("management_sample_retention_policies",),
)
def _retention(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    section, age = matched
    name = "management_sample_retention_policies"
    policies = translation.values.get(name, {})
    changed = {**policies, section: {**policies.get(section, {}), age: line.value}}
    translation.put(name, changed, line)


_HTTP_TLS = {"cacertfile": "tls_ca", "certfile": "tls_cert", "keyfile": "tls_key"}


@_rule("management.listener.ssl", sets=("management_tls_port",))
def _old_listener(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    """Take the older form of `management.ssl.port`: whether `management.listener.port` is TLS."""
    translation.put("_listener_tls", flag(line), line)


@_rule("management.ssl.cacertfile", "prometheus.ssl.cacertfile", sets=("tls_ca",))
@_rule("management.ssl.certfile", "prometheus.ssl.certfile", sets=("tls_cert",))
@_rule("management.ssl.keyfile", "prometheus.ssl.keyfile", sets=("tls_key",))
@_rule("management.listener.ssl_opts.cacertfile", sets=("tls_ca",))
@_rule("management.listener.ssl_opts.certfile", sets=("tls_cert",))
@_rule("management.listener.ssl_opts.keyfile", sets=("tls_key",))
def _http_tls(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    """Use the files for AMQP too: Harebell has one certificate for all its ports."""
    name = _HTTP_TLS[line.segments[-1]]
    if translation.values.setdefault(name, line.value) != line.value:
        used = translation.places[name].shown
        translation.warn(line, f"has no effect: all ports have one certificate, that of {used}")
    else:
        translation.places.setdefault(name, ValueOrigin(line.shown, str(line.path)))


@_rule("tcp_listen_options.linger.on", sets=("tcp_linger_seconds",))
def _linger_on(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    if not flag(line):
        translation.put("_no_linger", True, line)


@_rule("tcp_listen_options.linger.timeout", sets=("tcp_linger_seconds",))
def _linger(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    # With 0, RabbitMQ's default, a connection closes when the peer has the last output; Harebell
    # always waits for that.
    if number(line):
        translation.put("tcp_linger_seconds", number(line), line)


# --- users and vhosts -----------------------------------------------------------------------------


@_rule("loopback_users", sets=("loopback_users",))
def _no_loopback_users(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    if line.value != "none":
        raise wrong(line, "none; a user is loopback_users.guest = true")
    translation.put("loopback_users", [], line)


@_rule("loopback_users.$user", sets=("loopback_users",))
def _loopback_user(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    users = translation.values.get("loopback_users", ["guest"])
    others = [user for user in users if user != matched[0]]
    translation.put("loopback_users", [*others, matched[0]] if flag(line) else others, line)


@_rule("default_user_tags.$tag", sets=("default_user_tags",))
def _default_tag(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    tags = translation.values.get("default_user_tags", [])
    translation.put("default_user_tags", [*tags, matched[0]] if flag(line) else tags, line)


_ROWS: dict[str, tuple[str, dict[str, Callable[[Line], Any]]]] = {
    "default_users.$name.$what": (
        "default_users",
        {
            **dict.fromkeys(("vhost_pattern", "configure", "read", "write", "password"), as_is),
            "tags": words,
        },
    ),
    "default_limits.vhosts.$id.$what": (
        "default_limits_vhosts",
        {"pattern": as_is, "max_connections": number, "max_queues": number},
    ),
    "default_policies.operator.$id.$what": (
        "default_policies_operator",
        {
            **dict.fromkeys(("vhost_pattern", "queue_pattern", "apply_to"), as_is),
            **dict.fromkeys(("delivery_limit", "max_in_memory_bytes"), byte_count),
            **dict.fromkeys(("max_in_memory_length", "max_length", "max_length_bytes"), byte_count),
            **dict.fromkeys(("expires", "message_ttl"), milliseconds),
        },
    ),
}
"""Keys with a member each of the rows of a setting, and how the members are converted."""


def _row(name: str, members: dict[str, Callable[[Line], Any]]) -> Rule:
    def rule(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
        convert = members.get(matched[1])
        if convert is None:
            translation.warn(line, "is unknown and has no effect")
        else:
            translation.add(name, matched, convert(line), line)

    return rule


_RULES |= {key: (_row(*to), (to[0],)) for key, to in _ROWS.items()}


@_rule("auth_mechanisms.$name", sets=("auth_mechanisms",))
def _mechanism(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    mechanisms = ("PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS")
    name = line.value.upper()
    if name not in mechanisms and not name.startswith(("SCRAM-", "CRAM-")):
        translation.warn(line, f"has no effect: {line.value} is no mechanism of Harebell")
        return
    translation.append("auth_mechanisms", line.value, line)


@_rule("total_memory_available_override_value", sets=("memory_high_watermark",))
def _total_memory(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    translation.put("_total_memory", byte_count(line), line)


# --- logs -----------------------------------------------------------------------------------------


@_rule("log.$category.level", sets=("log_levels", "log_level"))
def _category_level(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    if matched[0] not in CATEGORIES:
        near = did_you_mean(matched[0], (*CATEGORIES, *OUTPUTS))
        translation.warn(line, f"is unknown and has no effect: {near}")
        return
    value = log_level(line)
    if matched[0] == "default":
        translation.put("log_level", value, line)
    else:
        translation.add("log_levels", matched, value, line)


@_rule("log.$category.file", sets=("log_files",))
def _category_file(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    if matched[0] not in CATEGORIES or matched[0] == "default":
        near = did_you_mean(matched[0], CATEGORIES)
        translation.warn(line, f"is unknown and has no effect: {near}")
        return
    translation.add("log_files", (matched[0], "file"), line.value, line)


@_rule("log.syslog.protocol", sets=("log_syslog_protocol", "log_syslog_transport"))
def _syslog_protocol(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    """Take the protocol; RabbitMQ also has udp, tcp and tls here, with RFC 3164."""
    if line.value in ("udp", "tcp", "tls"):
        _syslog_transport(translation, line, _matched)
    else:
        translation.put("log_syslog_protocol", line.value, line)


@_rule("log.syslog.transport", sets=("log_syslog_transport",))
def _syslog_transport(translation: Translation, line: Line, _matched: tuple[str, ...]) -> None:
    if line.value == "tls":
        raise wrong(line, "udp or tcp: syslog over TLS is left to the syslog daemon")
    translation.put("log_syslog_transport", line.value, line)


@_rule("log.$category.rotation.$what", sets=("log_files",))
def _category_rotation(translation: Translation, line: Line, matched: tuple[str, ...]) -> None:
    category, what = matched
    if category not in CATEGORIES or what not in ("size", "date", "count", "compress"):
        translation.warn(
            line, f"is unknown and has no effect: {did_you_mean(category, CATEGORIES)}"
        )
        return
    if category == "default":
        translation.warn(line, "has no effect: log.file.rotation sets how the log file is rotated")
        return
    value = byte_count(line) if what == "size" else line.value
    translation.add("log_files", (category, f"rotation_{what}"), value, line)
