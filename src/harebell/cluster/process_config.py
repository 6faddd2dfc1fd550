"""The configuration of the process of one store, where a machine has several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harebell.cluster.stores import FIRST_STORE, data_dir_of
from harebell.config.errors import ConfigError

if TYPE_CHECKING:
    from harebell.config import Config


def config_of(config: Config, number: int) -> Config:
    """Return the configuration for the process of a store, one of several on this machine.

    Ports and logs that cannot be shared get the number of the store. `workers` becomes
    `storage_stores`.

    Raises:
        ConfigError: both are given, and differ.
    """
    if config.workers > 1:
        if config.storage_stores not in (1, config.workers):
            raise ConfigError(
                f"workers is {config.workers}, and storage_stores is {config.storage_stores}: they "
                "are names of the same number, so leave one of them out"
            )
        config = replace(config, storage_stores=config.workers)
    if number == FIRST_STORE:
        return config
    after = number - FIRST_STORE
    if config.storage:
        # Some of the processes stand by, and answer for themselves alone.
        from harebell.management.metrics.serving import port_of

        port, tls_port = port_of(config), config.metrics_tls_port
        config = replace(
            config,
            metrics_port=port + after if port else 0,
            metrics_tls_port=tls_port + after if tls_port else tls_port,
        )
    return replace(
        config,
        data_dir=data_dir_of(config.data_dir, FIRST_STORE, number),
        storage_cluster_port=config.storage_cluster_port and config.storage_cluster_port + after,
        log_dir=config.log_dir and config.log_dir / f"store-{number}",
        log_file=_numbered(config.log_file, number),
        log_files={_numbered(name, number): each for name, each in config.log_files.items()},
    )


def loads_definitions(config: Config) -> bool:
    """Return whether the configuration names definitions that are loaded at the start."""
    return config.load_definitions is not None or config.definitions_import_backend == "https"


def _numbered(name: str | None, number: int) -> Any:
    """Return the name of a log file for the process of a store: "a.log" becomes "a-2.log"."""
    if name is None:
        return None
    path = Path(name)
    return str(path.with_name(f"{path.stem}-{number}{path.suffix}"))


def check_stores(config: Config) -> None:
    """Refuse what cannot be with several stores.

    Raises:
        StartError: in a sentence for the user.
    """
    # Imported here, because every `harebell serve` imports this file first.
    from harebell.server.net.tls import StartError

    if config.storage_stores == 1:
        return
    if config.storage and loads_definitions(config):
        raise StartError(
            "load_definitions imports into one store: leave it out, and import definitions over "
            "the HTTP API, or have one store"
        )
