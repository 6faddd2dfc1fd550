"""The ports of the HTTP API: which are opened, and what happens when one is in use."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harebell.config import load
from harebell.management.http import serving
from harebell.management.http.connections import HttpConnections
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.tls import StartError

unused: Any = SimpleNamespace(login_attempts=None)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something else listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def served(data_dir: Path, **flags: int) -> tuple[int, list[tuple[str, str]]]:
    """Serve HTTP with these settings; returns the number of listeners and what was logged."""
    config = load({"data_dir": str(data_dir), **flags}, environ={})
    lines: list[tuple[str, str]] = []

    def log(level: str, text: str) -> None:
        lines.append((level, text))

    async def serve() -> int:
        connections = HttpConnections("HTTP API", config, 100, log)
        listeners = await serving.serve_http(
            config, unused, log, unused, unused, HandedSockets(), connections, int
        )
        for each in listeners:
            await each.close()
        return len(listeners)

    return asyncio.run(serve()), lines


def test_a_broker_has_no_http_where_another_one_has_the_default_port(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MANAGEMENT_PORT", taken)
    count, lines = served(tmp_path, port=5673)
    assert count == 0
    ((level, text),) = lines
    assert level == "warning"
    assert text.startswith(f"no HTTP API: management_port: 127.0.0.1:{taken} is in use already")


def test_a_port_that_was_asked_for_has_to_be_free(tmp_path: Path, taken: int) -> None:
    with pytest.raises(StartError, match=f"management_port: 127.0.0.1:{taken} is in use"):
        served(tmp_path, port=5673, management_port=taken)


def test_a_broker_on_a_free_port_of_the_system_has_no_http_unless_asked(tmp_path: Path) -> None:
    assert served(tmp_path, port=0) == (0, [])
