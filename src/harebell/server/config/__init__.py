"""Read the configuration: defaults, then the TOML file, then the environment, then the flags.

Later sources override earlier ones. An error in any of them aborts the start with one sentence that
names the source, the key, the allowed values and, for an unknown key, the nearest known one. The
table of keys is in `harebell.server.config.settings`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harebell.base import limits
from harebell.base.errors import HarebellError
from harebell.base.hash_names import SCRYPT
from harebell.base.names import did_you_mean
from harebell.front.common.settings import COMPATIBLE_PRODUCT, COMPATIBLE_VERSION
from harebell.server.config.settings import ALIASES, BY_NAME, PREFIX, SETTINGS
from harebell.server.net.certificate import DISTINGUISHED_NAME

CONFIG_VARIABLE = "HAREBELL_CONFIG"
OTHER_VARIABLES = (
    *(CONFIG_VARIABLE, "HAREBELL_IMPL", "HAREBELL_URL", "HAREBELL_BUILD_THREADS"),
    "HAREBELL_PIPELINES",
)
"""Variables with the prefix HAREBELL_ that are not configuration keys."""
FOREIGN_PREFIXES = ("HAREBELL_TEST_", "HAREBELL_BENCH_")
"""Prefixes of the variables of the tests and benchmarks."""
_KUBERNETES = re.compile(r"HAREBELL_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)|HAREBELL_\w+_SERVICE_\w+")
"""Variables that Kubernetes sets in all pods of a namespace with a Service `harebell`."""


class ConfigError(HarebellError):
    """The configuration is invalid; the text is a sentence for the user."""


def default_data_dir() -> Path:
    """Return the directory `harebell` in the user's data directory (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # XDG: a relative path is invalid and must be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "harebell"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a broker; docs/reference/configuration.md describes the keys."""

    host: str = "127.0.0.1"
    port: int | None = 5672
    listen: tuple[tuple[str, str, int], ...] | None = None
    data_dir: Path = msgspec.field(default_factory=default_data_dir)
    tls_port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    tls_key_password: str | None = None
    tls_key_password_file: str | None = None
    tls_verify: str = "verify_peer"
    tls_fail_if_no_peer_cert: bool = False
    tls_min_version: str = "tlsv1.2"
    tls_ciphers: str | None = None
    tls_login_from: str = DISTINGUISHED_NAME
    management_port: int | None = None
    management_host: str = "127.0.0.1"
    management_tls_port: int | None = None
    management_path_prefix: str = ""
    management_body_max_bytes: int = limits.HTTP_BODY_BYTES
    management_cors_allow_origins: tuple[str, ...] | None = None
    management_cors_max_age: int = limits.HTTP_CORS_SECONDS
    management_csp_policy: str = "script-src 'self'; object-src 'none'"
    management_hsts_policy: str | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_per_object: bool = False
    auth_mechanisms: tuple[str, ...] | None = None
    password_hashing_module: str = SCRYPT
    anonymous_login_user: str | None = None
    channel_max: int = limits.CHANNEL_MAX
    channel_max_per_node: int = 0
    connection_max: int = 0
    unauthenticated_connection_max: int = limits.UNAUTHENTICATED_CONNECTIONS
    unauthenticated_connection_max_per_address: int = limits.UNAUTHENTICATED_PER_ADDRESS
    consumer_max_per_channel: int = limits.CONSUMERS_PER_CHANNEL
    vhost_max: int = 0
    cluster_queue_limit: int = 0
    cluster_exchange_limit: int = 0
    frame_max: int = limits.FRAME_MAX_BYTES
    heartbeat: int = limits.HEARTBEAT_SECONDS
    handshake_timeout_seconds: float = limits.HANDSHAKE_TIMEOUT_SECONDS
    shutdown_grace_seconds: float = limits.SHUTDOWN_SECONDS
    consumer_timeout: int = limits.CONSUMER_TIMEOUT_MS
    default_queue_type: str = "classic"
    memory_high_watermark: float | int = limits.MEMORY_HIGH_WATERMARK
    disk_free_limit: float | int = limits.DISK_FREE_LIMIT_BYTES
    stage_user_limit: int = 0
    stage_vhost_limit: int = 0
    durability: str = "fsync"
    durability_interval_ms: int = limits.DURABILITY_INTERVAL_MS
    segment_bytes: int = limits.SEGMENT_BYTES
    stream_segment_bytes: int = limits.STREAM_SEGMENT_BYTES
    message_max_bytes: int = limits.MESSAGE_MAX_BYTES
    load_definitions: Path | None = None
    compat_product: str = COMPATIBLE_PRODUCT
    compat_version: str = COMPATIBLE_VERSION
    message_interceptors_incoming_set_header_timestamp_overwrite: bool | None = None
    message_interceptors_incoming_set_header_routing_node_overwrite: bool | None = None
    message_interceptors_outgoing_timestamp_enabled: bool = False
    log_exchange: bool = False
    log_exchange_level: str = "info"
    log_level: str = "info"
    loop: str = "auto"
    default_user: str = "guest"
    default_pass: str = "guest"  # noqa: S105  # the well-known default, accepted on loopback only

    def __repr__(self) -> str:
        """Return all values; secrets are masked, so that the text may be logged."""
        shown = (
            f"{each.name}={'...' if each.secret else repr(getattr(self, each.name))}"
            for each in SETTINGS
        )
        return f"Config({', '.join(shown)})"


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> Config:
    """Read the configuration from all sources.

    Args:
        flags: values from the command line, by key; None for flags that were not given.
        environ: the environment; None for `os.environ`.
        config_file: the TOML file; None for the one named by HAREBELL_CONFIG, if any.

    Raises:
        ConfigError: a source is invalid.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    file = config_file or environ.get(CONFIG_VARIABLE) or None
    if file is not None:
        values.update(_from_file(Path(file)))
    values.update(_from_environment(environ))
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = _read(name, value, BY_NAME[name].flag or name)
    config = Config(**values)
    _check_together(config)
    return config


def memory_octets(high_watermark: float | int, machine_octets: int | None = None) -> int:
    """Return the memory watermark in bytes.

    Args:
        high_watermark: a fraction of the memory (float) or bytes (int), as in `Config`.
        machine_octets: the total memory in bytes; None to query the system.
    """
    if isinstance(high_watermark, int):
        return high_watermark
    total = machine_memory_octets() if machine_octets is None else machine_octets
    return int(total * high_watermark)


def machine_memory_octets(cgroup_limit: str = "/sys/fs/cgroup/memory.max") -> int:
    """Return the memory of the machine, or the limit of the cgroup if that is less, in bytes."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path(cgroup_limit).read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _read(name: str, value: Any, source: str) -> Any:
    """Parse one value; an error names the source and does not repeat secrets."""
    setting = BY_NAME[name]
    try:
        return setting.read(value)
    except ValueError as error:
        shown = "" if setting.secret else f", not {value!r}"
        raise ConfigError(f"{source} {error}{shown}") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {setting.variable: setting for setting in SETTINGS}
    known |= {PREFIX + alias.upper(): BY_NAME[name] for alias, name in ALIASES.items()}
    values: dict[str, Any] = {}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable.startswith(FOREIGN_PREFIXES) or _KUBERNETES.fullmatch(variable):
            continue
        if variable not in known:
            hint = did_you_mean(variable, [*known, *OTHER_VARIABLES])
            raise ConfigError(f"the environment variable {variable} is unknown: {hint}")
        name = known[variable].name
        if value.startswith("tcp://"):
            raise ConfigError(
                f"the environment variable {variable} is {value!r}, which Kubernetes sets for a "
                "Service of that name: set enableServiceLinks: false in the pod, or rename the "
                "Service"
            )
        values[name] = _read(name, value, f"the environment variable {variable}")
    return values


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: octet {error.start} is not UTF-8") from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {error.strerror or error}"
        ) from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_toml_sentence(path, text, str(error))) from None
    values: dict[str, Any] = {}
    for key, value in _flattened(table):
        source = f"{path}, line {_line_of(key.partition('.')[0], text)}:"
        name = key.replace(".", "_")
        name = ALIASES.get(name, name)
        if name not in BY_NAME:
            raise ConfigError(f"{source} the key {key} is unknown: {did_you_mean(key, BY_NAME)}")
        values[name] = _read(name, value, f"{source} {key}")
    return values


def _flattened(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys and values; `product` in the table `compat` becomes `compat.product`."""
    for key, value in table.items():
        name = before + key
        leads_on = any(known.startswith(name.replace(".", "_") + "_") for known in BY_NAME)
        if isinstance(value, dict) and value and leads_on:
            yield from _flattened(value, name + ".")
        else:
            yield name, value


def _toml_sentence(path: Path, text: str, reason: str) -> str:
    """Return an error of the TOML parser with the path and the line first."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", reason, re.S)
    if found is None:
        return f"{path} is not valid TOML: {reason}"
    line = found[2] or str(text.count("\n") + 1)
    return f"{path}, line {line}: not valid TOML: {found[1]}"


def _line_of(name: str, text: str) -> int:
    """Return the line number of a top-level key or table."""
    key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), start=1):
        if key.match(line):
            return number
    return 1


def _check_together(config: Config) -> None:
    """Check the rules that involve more than one key."""
    if config.port is None and config.tls_port is None and not config.listen:
        raise ConfigError("port is none, and neither tls_port nor listen is set: set one of them")
    if config.tls_port is None and not config.management_tls_port:
        for name in ("tls_cert", "tls_key", "tls_ca", "tls_key_password_file", "tls_ciphers"):
            if getattr(config, name) is not None:
                raise ConfigError(f"{name} is set but tls_port is not: set tls_port to serve TLS")
    else:
        _check_tls(config)
    if config.tls_fail_if_no_peer_cert and (
        config.tls_ca is None or config.tls_verify == "verify_none"
    ):
        raise ConfigError(
            "tls_fail_if_no_peer_cert is true but certificates are not checked: set tls_ca, and "
            "tls_verify to verify_peer"
        )


def _check_tls(config: Config) -> None:
    for name in ("tls_cert", "tls_key"):
        if getattr(config, name) is None:
            key = "management_tls_port" if config.tls_port is None else "tls_port"
            raise ConfigError(f"{key} is set but {name} is not: TLS needs the PEM file")
    if config.tls_key_password is not None and config.tls_key_password_file is not None:
        raise ConfigError("tls_key_password and tls_key_password_file are both set: leave one out")
    if config.tls_port == config.port != 0:
        raise ConfigError(
            f"port and tls_port are both {config.port}: AMQP and AMQP over TLS need two ports"
        )
