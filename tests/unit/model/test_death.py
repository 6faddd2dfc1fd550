"""What a dead letter says of its death, as conditions, groups and retries read it."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.convert import EDITOR, composed
from harebell.model.death import Death, death_of, signature
from harebell.model.filter.condition import compile_filter
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject

FIRST = {"x-first-death-queue": "orders", "x-first-death-reason": "rejected"}


@pytest.mark.parametrize(
    ("headers", "death"),
    [
        ({}, None),
        ({"x-death": []}, None),
        ({"x-death": "no list"}, None),
        ({"x-death": ["no table"]}, None),
        ({"x-death": [{"queue": 7}]}, None),
        ({"x-first-death-queue": ""}, None),
        ({"x-first-death-queue": "q" * 256}, None),
        (FIRST, Death("orders", "rejected", None, None)),
        ({"x-first-death-queue": "orders"}, Death("orders", None, None, None)),
        # The oldest entry is the last one.
        (
            {"x-death": [{"queue": "late", "reason": "expired"}, {"queue": "a", "reason": "b"}]},
            Death("a", "b", None, None),
        ),
        (
            {**FIRST, "x-death": [{"queue": "orders", "routing-keys": ["eu", "cc"]}]},
            Death("orders", "rejected", "eu", None),
        ),
        (
            {**FIRST, "x-death": [{"queue": "orders", "routing-keys": [""]}]},
            Death("orders", "rejected", "", None),
        ),
        ({**FIRST, "x-death": [{"routing-keys": [7]}]}, Death("orders", "rejected", None, None)),
        # Both are of one event.
        (
            {"x-first-death-reason": "forged", "x-death": [{"queue": "a"}]},
            Death("a", None, None, None),
        ),
    ],
)
def test_the_death_is_the_first_one(headers: dict[str, Any], death: Death | None) -> None:
    assert death_of(headers) == death


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"x-exception-message": "order 17 is late"}, "order 0 is late"),
        ({"x-exception-message": "b", "x-exception-type": "ValueError"}, "ValueError"),
        ({"NServiceBus.ExceptionInfo.ExceptionType": "Boom"}, "Boom"),
        ({"MT-Fault-Message": "no such row"}, "no such row"),
        ({"x-reason": "not JSON"}, "not JSON"),
        ({"x-exception-stacktrace": "at line 1"}, None),
        ({"x-default": "1", "kind": "error"}, None),
        ({"error": 7}, None),
        ({"x-death": [{"queue": "q", "description": "no room"}]}, "no room"),
        ({"x-death": [{"queue": "q", "condition": "amqp:internal-error"}]}, "amqp:internal-error"),
    ],
)
def test_the_error_is_the_header_that_tells_of_one(
    headers: dict[str, Any], error: str | None
) -> None:
    found = death_of({**FIRST, **headers})
    assert found is not None
    assert found.error == error


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("  late\nat line 7", "late"),
        ("id 0b5ef3c2-1111-4222-8333-444455556666 gone", "id 0 gone"),
        ("took 12.75 s", "took 0.0 s"),
        ("x" * 500, "x" * 120),
        ("", ""),
    ],
)
def test_a_signature_is_a_line_without_what_differs(text: str, short: str) -> None:
    assert signature(text) == short


@pytest.mark.parametrize(
    ("where", "selected"),
    [
        ("death.queue = 'orders'", True),
        ("death.reason = 'rejected' AND death.error = 'order 0 is late'", True),
        ("death.queue IS NULL", False),
        ("death.queue <> 'orders'", False),
    ],
)
def test_conditions_have_its_columns(where: str, selected: bool) -> None:
    subject = Subject(EDITOR)
    headers = {**FIRST, "x-exception-message": "order 17 is late"}
    message = composed("", "dead", b"", {"headers": headers})
    subject.is_now(message, 0, 0, "ready", redelivered=False)
    assert compile_filter(where).selects(subject) is selected
    subject.is_now(composed("", "dead", b"", {}), 1, 0, "ready", redelivered=False)
    assert compile_filter(where).selects(subject) is (where == "death.queue IS NULL")


@pytest.mark.parametrize("where", ["death = 1", "death.quee = 'a'", "death.queue.a = 'a'"])
def test_a_wrong_column_of_a_dead_letter_is_refused(where: str) -> None:
    with pytest.raises(FilterError, match="a dead letter has no"):
        compile_filter(where)
