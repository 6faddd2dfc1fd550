"""What connections log, and how loudly."""

from __future__ import annotations

import logging

import pytest

from harebell.client.errors import AMQPError, ClientClosed, ConnectionLost, RecoveryFailed
from harebell.client.protocol.reports import Reports
from harebell.client.url import URL

ADDRESS = URL.parse("amqp://alice:secret@broker.example?name=billing")
PLACE = "broker.example:5672 (billing)"


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    return [(record.name, record.levelname, record.getMessage()) for record in caplog.records]


def test_a_loss_an_attempt_and_a_recovery_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "harebell.client")
    reports = Reports("aio", ADDRESS)
    reports.lost(ConnectionLost("it broke"))
    reports.failed(1, AMQPError("refused"))
    reports.regained(2)
    name = "harebell.client.aio"
    assert logged(caplog) == [
        (name, "WARNING", f"lost the connection to {PLACE}, recovering: it broke"),
        (name, "INFO", f"attempt 1 to connect to {PLACE} failed: refused"),
        (name, "INFO", f"connected to {PLACE} again after 2 attempts"),
    ]


def test_the_end_is_a_warning_an_error_or_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "harebell.client")
    reports = Reports("blocking", URL())
    reports.ended(ConnectionLost("it broke"))
    reports.ended(RecoveryFailed("gave up after 3 attempts"))
    reports.ended(ClientClosed("closed"))
    name = "harebell.client.blocking"
    assert logged(caplog) == [
        (name, "WARNING", "lost the connection to localhost:5672: it broke"),
        (name, "ERROR", "the connection to localhost:5672 is over: gave up after 3 attempts"),
    ]
