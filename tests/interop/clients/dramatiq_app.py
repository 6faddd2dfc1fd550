"""The Dramatiq application that the worker of the Dramatiq tests runs."""

from __future__ import annotations

import os
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from tests.interop.clients.processes import URL_VARIABLE, mark

broker = RabbitmqBroker(
    url=os.environ.get(URL_VARIABLE, "amqp://nobody@127.0.0.1:1/"),
    confirm_delivery=True,
    max_priority=10,
)
dramatiq.set_broker(broker)


@dramatiq.actor
def note(name: str, text: str) -> None:
    """Leave a mark."""
    mark(name, text)


@dramatiq.actor
def letters(count: int) -> str:
    """A result as long as wanted, for the next of a pipeline."""
    return "x" * count


@dramatiq.actor
def note_after(name: str, text: str) -> None:
    """The end of a pipeline: what the one before gave back comes last."""
    mark(name, text)


@dramatiq.actor
def note_time(name: str) -> None:
    """Leave the time."""
    mark(name, str(time.time()))


@dramatiq.actor(max_retries=2, min_backoff=100, max_backoff=200)
def fail(name: str) -> None:
    """Never succeed."""
    mark(name, "tried")
    raise ValueError("as told")


@dramatiq.actor
def survive(name: str) -> None:
    """Hang at the first delivery; its worker will be killed."""
    mark(name, "started")
    if "DRAMATIQ_TEST_SECOND" not in os.environ:
        time.sleep(600)


@dramatiq.actor(queue_name="in-order")
def in_order(text: str) -> None:
    """Leave a mark, one after the other."""
    mark("in-order", text)
