"""A metrics application that is asked without a socket, on a broker without a process."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from harebell.admin.findings import QUEUE, Finding
from harebell.admin.login_attempts import LoginAttempts
from harebell.admin.node import Certificate, Listening
from harebell.auth.users import Users
from harebell.base.histogram import LAG_SECONDS, SYNC_SECONDS, Histogram
from harebell.management.http.connections import Turns
from harebell.management.metrics.application import MetricsApplication
from harebell.management.metrics.scrape import Scraper
from harebell.management.metrics.source import Source
from tests.unit.front.amqp_0_9_1.world import World
from tests.unit.management.metrics.parsing import Parsed, parse

_FINDING = Finding("no-consumer", QUEUE, "/", "q", "no consumer", 1_700_000_000_000, "", "")


class Asked:
    """A broker in memory with its metrics.

    Args:
        world: the broker and its connections.
    """

    def __init__(self, world: World | None = None, *, per_object: bool = False) -> None:
        self.world = World() if world is None else world
        self.trouble = ""
        self.findings: Any = SimpleNamespace(found=(_FINDING,))
        self.certificates: list[tuple[Listening, Certificate]] = []
        self.syncs = Histogram(SYNC_SECONDS)
        self.late_syncs = Histogram(SYNC_SECONDS)
        self.lag = Histogram(LAG_SECONDS)
        storage: Any = SimpleNamespace(
            free=5_000,
            free_limit=50,
            files=SimpleNamespace(syncs=self.late_syncs),
            owned=None,
            store=self.world.store,
        )
        flusher: Any = SimpleNamespace(syncs=self.syncs)
        self.source = Source(
            broker=self.world.broker,
            registry=self.world.registry,
            users=Users(lambda size: b"\0" * size),
            storage=storage,
            flusher=flusher,
            lag=self.lag,
            clock=lambda: 100.0,
            started_at=40.0,
            max_connections=700,
            login_attempts=LoginAttempts(),
            certificates=lambda: list(self.certificates),
            backups=lambda: (1_700_000_000, 2.5, 900, 100, 4, 2, 1),
            findings=self.findings,
            passed_on=lambda: {"connections_passed_on": 3, "connections_waiting": 1},
        )
        self.scraper = Scraper(self.source, "3.13.7")
        self.app = MetricsApplication(self.scraper, lambda: self.trouble, per_object=per_object)

    def ask(self, path: str, query: str = "", method: str = "GET") -> tuple[int, str, str]:
        """Ask for a path; returns the status, the content type and the body."""
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "state": {"connection": SimpleNamespace(turns=Turns(), gone=False)},
        }
        asyncio.run(self.app(scope, receive, send))
        assert [each["type"] for each in sent[1:]] == ["http.response.body"] * (len(sent) - 1)
        assert [each["more_body"] for each in sent[1:]] == [True] * (len(sent) - 2) + [False]
        body = b"".join([each["body"] for each in sent[1:]])
        return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"].decode(), body.decode()

    def metrics(self, path: str = "/metrics", query: str = "") -> Parsed:
        """Ask for a document, which has to be valid."""
        status, content_type, body = self.ask(path, query)
        assert (status, content_type) == (200, "text/plain; version=0.0.4"), body
        return parse(body)
