"""What a broker loads and takes at its start: only the modules of what is configured."""

from __future__ import annotations

import re

from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.raw import MIB, resident
from tests.running import running_broker

_IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \| +([\w.]+)$", re.M)
_READY = "Server startup complete;"
UNUSED = (
    *("uvicorn", "h11", "http", "email", "multiprocessing", "bz2", "lzma", "shutil"),
    *("starlette", "anyio", "html", "tomllib", "difflib", "dataclasses"),
    *("psycopg", "jwt", "cryptography", "lz4", "pyarrow", "pyspark"),
    *("harebell.cluster.cluster", "harebell.cluster.postgresql"),
    *("harebell.client", "harebell.spark", "harebell.pipeline"),
    *("harebell.admin.command", "harebell.admin.commands"),
    *("harebell.management.http.application", "harebell.management.backends"),
    *("harebell.front.operations", "harebell.front.amqp_0_9_1", "harebell.wire.v09.methods"),
    *("harebell.front.amqp_0_10", "harebell.front.amqp_1_0", "harebell.model.filter"),
    *(
        "harebell.model.lease",
        "harebell.model.xa",
        "harebell.model.exchange.delayed",
        "harebell.model.queue.queue",
        "harebell.model.queue.stream",
    ),
)
"""Modules of what few brokers have, and of the first client, queue, or request."""


def modules_and_mib(*flags: str) -> tuple[set[str], float]:
    """The modules that a broker has imported when it is ready, and its memory then."""
    with running_broker(*flags, env={"PYTHONPROFILEIMPORTTIME": "1"}) as broker:
        assert eventually(lambda: _READY in broker.log)
        return set(_IMPORTED.findall(broker.log)), resident(broker) / MIB


def loaded(names: tuple[str, ...], modules: set[str]) -> list[str]:
    """Those of some names of which a module, or a module below it, was imported."""
    return [
        name
        for name in names
        if any(module == name or module.startswith(f"{name}.") for module in modules)
    ]


def test_a_broker_loads_and_takes_no_more_than_it_needs_with_http_and_without() -> None:
    for port in (0, free_port()):
        modules, mib = modules_and_mib("--management-port", str(port), "--metrics-port", "0")
        assert "harebell.server.app" in modules
        assert loaded(UNUSED, modules) == []
        assert len(modules) <= 523
        assert mib <= 43
