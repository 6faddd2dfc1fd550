"""The names that completion shows of a channel and of a connection, and the signatures in help."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

CHANNEL_PARTS = frozenset(
    (
        *("adopt", "connection", "core", "dead_letter_queues", "drop_sink", "ended", "history"),
        *("inboxes",),
        *("publisher_declare", "publisher_forget", "queue_names", "read_arrow"),
        *(
            "ready_to_publish",
            "report_query",
            "requeue_inbox",
            "sinks",
            "span",
            "speaks_for",
            "stage_abort",
        ),
        *("stage_append", "stage_commit", "stage_discard", "stage_open"),
    )
)
"""Parts of a channel that its connection, and Spark, use: completion leaves them out."""
CONNECTION_PARTS = frozenset(
    (
        *("abandoned", "buffered", "channels", "check_thread", "congested", "drain", "finish"),
        *(
            "finish_end",
            "flush",
            "flush_some",
            "forget_channel",
            "forget_consumer",
            "later",
            "open",
        ),
        *("remove_channel", "survives", "taken", "touch", "usable", "waiting"),
    )
)
"""Parts of a connection that its channels use."""


def without(parts: frozenset[str], names: Iterable[str]) -> list[str]:
    """Return names without those of internal parts."""
    return [name for name in names if name not in parts]


def describe(method: Callable[..., Any], verb: Callable[..., Any]) -> None:
    """Give a method that waits the signature of its verb, with the answer instead of a `Call`."""
    signature = inspect.signature(verb)
    answer = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    method.__signature__ = signature.replace(return_annotation=answer)  # type: ignore[attr-defined]
    method.__annotations__ = {**verb.__annotations__, "return": answer}
