"""The columns of a message: which there are, and how they are asked for."""

from __future__ import annotations

import pytest

from harebell.wire.arrow.columns import COLUMNS, FIELDS, ArrowSelection, selection


def test_columns_and_fields_keep_the_order_in_which_they_are_asked_for() -> None:
    assert selection("value,properties.app_id,offset,properties.type") == ArrowSelection(
        ("value", "properties", "offset"), ("app_id", "type")
    )
    assert selection("properties") == ArrowSelection(("properties",), tuple(FIELDS))


@pytest.mark.parametrize(
    "text", ["value", "offset,properties", "properties.type,value", ",".join(COLUMNS)]
)
def test_a_selection_is_written_as_it_is_read(text: str) -> None:
    assert selection(text).text() == text


def test_a_schema_has_only_what_is_asked_for() -> None:
    offset, properties = selection("offset,properties.type").schema()
    assert (offset.name, offset.type.name) == ("offset", "int64")
    assert [field.name for field in properties.type.children] == ["type"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no columns are asked for; a message has value, "),
        ("Value", "a message has no column Value: did you mean value\\?"),
        ("value,", "a message has no column ; it has value, "),
        ("properties.mesage_id", "did you mean properties.message_id\\?"),
        ("value.body", "a message has no column value.body"),
        ("offset,offset", "column offset is asked for twice"),
        ("properties,properties.type", "column properties.type is asked for twice"),
        ("properties.type,properties", "column properties is asked for twice"),
    ],
)
def test_a_column_that_no_message_has_is_refused_with_the_nearest(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        selection(text)
