"""The configuration of a broker, and the rules that involve more than one key.

The sources, from the weakest: the defaults, RabbitMQ's files (`rabbitmq.conf`, `conf.d`), the TOML
file, RabbitMQ's variables (`RABBITMQ_NODE_PORT`), systemd's credentials, Harebell's variables
(`HAREBELL_PORT`), and the flags. An error in any of them aborts the start with one sentence that
names the source, the key and the allowed values. `harebell.config.reading` reads them;
`harebell.config.settings` declares the keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harebell.config.errors import ConfigError
from harebell.config.settings import CONFIG_VARIABLE, Config, default_data_dir
from harebell.config.values import ValueOrigin, machine_memory_bytes

__all__ = [
    "CONFIG_VARIABLE",
    "Config",
    "ConfigError",
    "Configuration",
    "default_data_dir",
    "default_password",
    "load",
    "machine_memory_bytes",
    "memory_bytes",
    "memory_share",
    "read_configuration",
]


class Configuration(NamedTuple):
    """A configuration with the origin of its values.

    Args:
        config: the values.
        places: where the value of each configured key is written, by key.
        warnings: settings without an effect, each as a sentence.
        files: the files that were read.
    """

    config: Config
    places: dict[str, ValueOrigin]
    warnings: list[str]
    files: list[Path]


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> Config:
    """Read the configuration from all sources; the arguments are those of `read_configuration`.

    Raises:
        ConfigError: a source is invalid.
    """
    return read_configuration(flags, environ, config_file).config


def read_configuration(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> Configuration:
    """Read the configuration from all sources, with the place of each value.

    Args:
        flags: values from the command line, by key; None for flags that were not given.
        environ: the environment; None for `os.environ`.
        config_file: a TOML file, or a file or directory of RabbitMQ; None for the ones that the
            environment names, if any, or those in /etc.

    Raises:
        ConfigError: a source is invalid; its `problems` are those of all sources.
    """
    from harebell.config.reading import Reading

    reading = Reading(os.environ if environ is None else environ)
    reading.read_files(config_file)
    reading.read_environment()
    reading.read_flags(flags or {})
    config = Config(**reading.values)
    if not reading.problems:
        # A wrong value is left out, and these checks would complain that its key is not set.
        for check in (_check_listeners, _check_tls, _check_client_certificates):
            with reading.problems.noted():
                check(config)
    reading.problems.end()
    return Configuration(config, reading.places, reading.warnings, reading.files)


def default_password(config: Config) -> str:
    """Return the password of the default user, from its file if one is named.

    Raises:
        ConfigError: the file cannot be read.
    """
    if config.default_pass_file is None:
        return config.default_pass
    from harebell.config.reading import secret_of

    return secret_of(Path(config.default_pass_file), "default_pass_file")


def memory_bytes(high_watermark: float | int, machine_bytes: int | None = None) -> int:
    """Return the memory watermark in bytes.

    Args:
        high_watermark: a fraction of the memory (float) or bytes (int), as in `Config`.
        machine_bytes: the total memory in bytes; None to query the system.
    """
    if isinstance(high_watermark, int):
        return high_watermark
    total = machine_memory_bytes() if machine_bytes is None else machine_bytes
    return int(total * high_watermark)


def memory_share(config: Config, machine_bytes: int | None = None) -> int:
    """Return the part of the memory watermark that this process has, in bytes.

    Args:
        config: its `memory_high_watermark` is that of all processes of the machine together.
        machine_bytes: as in `memory_bytes`.
    """
    return memory_bytes(config.memory_high_watermark, machine_bytes) // config.storage_stores


def _check_listeners(config: Config) -> None:
    """Check that the broker has a port for AMQP, and that AMQP and TLS have different ports."""
    if config.port is None and config.tls_port is None and not config.listen:
        raise ConfigError("port is none, and neither tls_port nor listen is set: set one of them")
    if config.tls_port == config.port not in (0, None) and config.tls_host in (None, config.host):
        raise ConfigError(
            f"port and tls_port are both {config.port}: AMQP and AMQP over TLS need two ports"
        )


def _check_tls(config: Config) -> None:
    """Check that a port with TLS has its files, and that files of TLS have a port."""
    served = [] if config.tls_port is None else ["tls_port is set"]
    keys = ("management_tls_port", "metrics_tls_port")
    served += [f"{key} is set" for key in keys if getattr(config, key)]
    served += ["listen has amqps" for url in config.listen or () if url[0] == "amqps"]
    if not served:
        for name in ("tls_cert", "tls_key", "tls_ca", "tls_key_password_file", "tls_ciphers"):
            if getattr(config, name) is not None:
                raise ConfigError(f"{name} is set but tls_port is not: set tls_port to serve TLS")
        return
    for name in ("tls_cert", "tls_key"):
        if getattr(config, name) is None:
            raise ConfigError(f"{served[0]} but {name} is not: TLS needs the PEM file")


def _check_client_certificates(config: Config) -> None:
    if config.tls_fail_if_no_peer_cert and (
        config.tls_ca is None or config.tls_verify == "verify_none"
    ):
        raise ConfigError(
            "tls_fail_if_no_peer_cert is true but certificates are not checked: set tls_ca, and "
            "tls_verify to verify_peer"
        )
