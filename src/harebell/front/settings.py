"""What the front needs to know of the broker's configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harebell.base import limits


def _silent(level: str, text: str) -> None:
    """A journal that keeps nothing."""


@dataclass(slots=True)
class Settings:
    """Limits and texts for connections.

    Args:
        product: the server property `product`.
        version: the server property `version`.
        platform: the server property `platform`.
        frame_max: largest frame offered, in octets.
        channel_max: most channels offered.
        heartbeat: heartbeat interval offered, in seconds; 0 offers none.
        handshake_timeout: seconds from connecting to an open connection.
        message_max: largest body, in octets.
        cluster_name: the server property `cluster_name`.
        host: the server property `host`: the name of the machine.
        rng: returns that many random octets, for generated names.
        journal: called with a level ("info", "warning", "error") and a line for the log.
    """

    rng: Callable[[int], bytes]
    product: str = "Harebell"
    version: str = "0"
    platform: str = "Python"
    frame_max: int = limits.FRAME_MAX_BYTES
    channel_max: int = limits.CHANNEL_MAX
    heartbeat: int = limits.HEARTBEAT_SECONDS
    handshake_timeout: float = limits.HANDSHAKE_TIMEOUT_SECONDS
    message_max: int = limits.MESSAGE_MAX_BYTES
    cluster_name: str = "harebell@localhost"
    host: str = "localhost"
    journal: Callable[[str, str], None] = _silent
