"""The Celery application that the worker processes of the Celery tests run.

A worker finds its broker and a directory to leave marks in through its environment;
the tests import the same module and set the same on their side.
"""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery, Task

from tests.interop.clients.processes import URL_VARIABLE, mark

BACKEND = "rpc://"
"""Results are messages, too."""
KIND_VARIABLE = "HAREBELL_TEST_CELERY_KIND"
QUORUM: dict[str, Any] = {
    "task_default_queue": "celery-quorum",
    "task_default_queue_type": "quorum",
    "task_default_exchange": "celery-quorum",
    "task_default_exchange_type": "topic",
}
PRIORITY: dict[str, Any] = {
    "task_default_queue": "celery-priority",
    "task_queue_max_priority": 10,
    "worker_prefetch_multiplier": 1,
    "task_acks_late": True,
}
SHARED: dict[str, Any] = {"task_default_queue": "bulk", "task_acks_late": True}
KINDS: dict[str, dict[str, Any]] = {
    "": {"task_default_queue": "celery-interop"}, "quorum": QUORUM, "priority": PRIORITY,
    "shared": SHARED,
}  # fmt: skip
"""Settings by the kind of queue; the sending side has to have the same."""

app = Celery(
    "harebell_interop",
    broker=os.environ.get(URL_VARIABLE, "amqp://nobody@127.0.0.1:1//"),
    backend=BACKEND,
)
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_timeout=60,
    result_expires=600,
    worker_enable_remote_control=True,
    broker_transport_options={"confirm_publish": True},
    **KINDS[os.environ.get(KIND_VARIABLE, "")],
)


@app.task
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@app.task
def note(name: str, number: int) -> None:
    """Leave a number."""
    mark(name, str(number))


@app.task
def note_and_urge(name: str, number: int) -> None:
    """Leave a number, and have an urgent task leave -1."""
    note(name, number)
    note.apply_async((name, -1), queue="urgent", ignore_result=True)


@app.task
def touch(name: str) -> None:
    """Leave the time."""
    mark(name, str(time.time()))


@app.task(bind=True, acks_late=True)
def survive(self: Task[Any, Any], name: str) -> bool:
    """Never end at the first delivery; say so when it is delivered again."""
    again = bool(self.request.delivery_info["redelivered"])
    mark(name, str(time.time()))
    if not again:
        time.sleep(600)
    return again
