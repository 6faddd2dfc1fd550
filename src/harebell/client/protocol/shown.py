"""The names that completion shows of a channel and of a connection, and the signatures in help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

_ANSWER = re.compile(r"(?:Call|Steps)\[(.*)\]", re.DOTALL)
_TYPE_VARIABLE = re.compile(r"\b([A-Z]\w+)T\b")

_CHANNEL = """
consumer_type
adopt connection core dead_letter_queues drop_sink ended history inboxes publisher_declare
publisher_forget queue_names read_arrow report_query requeue_inbox sinks span speaks_for
stage_abort stage_append stage_commit stage_discard stage_open
"""
CHANNEL_PARTS = frozenset(_CHANNEL.split())
"""Parts of a channel that its connection, and Spark, use: completion leaves them out."""
_CONNECTION = """
answer buffered channels check_thread congested drain finish finish_end flush forget_channel
forget_consumer later listening open remove_channel reports survives taken touch usable written
"""
CONNECTION_PARTS = frozenset(_CONNECTION.split())
"""Parts of a connection that its channels use."""
DELIVERY_PARTS = frozenset(("encoded", "give_up"))
"""Parts of a message that its channel and workers use."""
CONSUMER_PARTS = frozenset(("inbox", "take"))
"""Parts of a consumer that its workers use."""
REQUESTER_PARTS = frozenset(("requests",))
"""Parts of a requester that its connection uses."""


def without(parts: frozenset[str], names: Iterable[str]) -> list[str]:
    """Return names without those of internal parts."""
    return [name for name in names if name not in parts]


def describe(
    method: Callable[..., Any], written: Callable[..., Any], words: Mapping[str, str]
) -> None:
    """Give a method of an API the signature and description of the function it is made from.

    Args:
        method: a method of the API.
        written: the shared function; it returns a `Call`, or yields waits, in place of the answer.
        words: words to replace in descriptions and types.
    """
    signature = inspect.signature(written)
    parameters = [
        each.replace(annotation=_named(each.annotation, words))
        for each in signature.parameters.values()
    ]
    answer = _named(signature.return_annotation, words)
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=answer
    )
    method.__name__ = written.__name__
    method.__doc__ = _replaced(written.__doc__, words)
    types = {each.name: each.annotation for each in parameters}
    types = {name: kind for name, kind in types.items() if kind is not inspect.Parameter.empty}
    method.__annotations__ = types | {"return": answer}


def adapted(written: FunctionType, words: Mapping[str, str]) -> FunctionType:
    """Return a copy of a method that does not wait, described in the words of an API."""
    method = FunctionType(
        written.__code__, written.__globals__, written.__name__, written.__defaults__
    )
    method.__kwdefaults__ = written.__kwdefaults__
    describe(method, written, words)
    return method


def _named(annotation: Any, words: Mapping[str, str]) -> Any:
    """Return a type as the API names it: `DeliveryT` is its class `Delivery`."""
    if not isinstance(annotation, str):
        return annotation
    annotation = _replaced(annotation, words)
    found = _ANSWER.fullmatch(annotation)
    named = found[1] if found else annotation
    return "None" if named == "Written" else _TYPE_VARIABLE.sub(r"\1", named)


def _replaced(text: str | None, words: Mapping[str, str]) -> str:
    text = text or ""
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return text
