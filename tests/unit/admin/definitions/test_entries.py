"""The entries of a document, as lenient as RabbitMQ's own writers make it necessary."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.admin.definitions.entries import (
    BindingEntry,
    DefinitionsError,
    QueueEntry,
    entries,
    pairs,
    title,
    words,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [({}, {}), ([], {}), ({"a": 1}, {"a": 1}), ([["a", 1], ["b", [2]]], {"a": 1, "b": [2]})],
)
def test_an_object_may_be_a_list_of_pairs(written: Any, meant: dict[str, Any]) -> None:
    assert pairs(written) == meant


@pytest.mark.parametrize("written", [[1], [["a"]], [[1, 2]], [["a", 1, 2]]])
def test_other_lists_are_no_objects(written: list[Any]) -> None:
    with pytest.raises(ValueError, match="is no object"):
        pairs(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, ()),
        ("", ()),
        ("a, b,", ("a", "b")),
        (["b", "a", "b", ""], ("b", "a")),
    ],
)
def test_tags_are_a_list_or_a_text_with_commas(written: Any, meant: tuple[str, ...]) -> None:
    assert words(written) == meant


def test_a_missing_section_is_empty_and_unknown_members_are_passed_over() -> None:
    assert [*entries({}, "queues", QueueEntry, None)] == []
    (found,) = entries({"queues": [{"name": "q", "new": 1}]}, "queues", QueueEntry, "v")
    assert (found.name, found.vhost, found.durable) == ("q", "v", True)


def test_an_entry_that_lacks_something_is_named() -> None:
    given = {"queues": [{"name": "a", "vhost": "/"}, {"name": "b"}]}
    with pytest.raises(DefinitionsError, match=r"queues\[1\] name 'b': Object missing required"):
        [*entries(given, "queues", QueueEntry, None)]


def test_a_title_names_what_an_entry_has() -> None:
    binding = BindingEntry(
        source="x", vhost="/", destination="q", destination_type="queue", routing_key="k"
    )
    assert title(binding) == "source 'x' destination 'q' routing_key 'k' in vhost '/'"
    assert title([1]) == "[1]"
