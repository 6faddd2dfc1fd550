"""Bindings with a selector: the argument `x-filter-jms-selector`, by Apache Qpid's name for it.

First the type of the exchange matches the binding, then its selector has to be true. Such a binding
leads to a gate in front of its destination. Who gets gates from a type asks them here; what an
exchange without such bindings returns is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from harebell.base.errors import Refusal
from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.queue.arguments import SELECTOR, selector_of
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.filter.condition import Filter

    Test = Callable[[Filter, Message], bool]
    """Tells whether a selector lets a message pass."""


class Gate:
    """What a binding with a selector leads to.

    Args:
        destination: the queue or exchange behind it.
        selector: which messages it lets through.
        tests: makes the test for a message.
    """

    __slots__ = ("destination", "selector", "tests")

    def __init__(self, destination: Any, selector: Filter, tests: Callable[[], Test]) -> None:
        self.destination = destination
        self.selector = selector
        self.tests = tests


def check_gate(binding: Binding) -> None:
    """Refuse a binding whose selector is wrong, or of no use for the type of its exchange.

    Raises:
        Refusal: the text says at which character the selector is wrong.
    """
    source = binding.source
    if selector_of(binding.arguments, "the binding") is not None and source.chooses:
        raise precondition(
            f"invalid arg '{SELECTOR}' of the binding: an exchange of type {source.KIND} chooses "
            "one binding for each message, whatever its selector is: bind without it"
        )


def add_gate(binding: Binding, tests: Callable[[], Test]) -> None:
    """Put a gate in front of the destination of a binding, if it has a selector.

    An argument that is no selector is that of a binding which an older version has stored, and has
    no effect, as it had there.
    """
    if SELECTOR not in binding.arguments or binding.source.chooses:
        return
    try:
        selector = selector_of(binding.arguments, "the binding")
    except Refusal:
        return
    if selector is not None:
        binding.leads_to = Gate(binding.destination, selector, tests)


def opened(ends: Iterable[Any], message: Message) -> list[Any]:
    """Return destinations; of those behind gates only the ones that a message gets to."""
    test: Test | None = None
    # Equal selectors share one object: each is tested once.
    answers: dict[Filter, bool] = {}
    passed: list[Any] = []
    for end in ends:
        if type(end) is not Gate:
            passed.append(end)
            continue
        selector = end.selector
        answer = answers.get(selector)
        if answer is None:
            if test is None:
                test = end.tests()
            answer = answers[selector] = test(selector, message)
        if answer:
            passed.append(end.destination)
    return passed
