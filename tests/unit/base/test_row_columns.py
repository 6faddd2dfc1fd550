"""Which columns can become a message, and what is said of others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harebell.base.errors import BatchError
from harebell.base.row_columns import COLUMNS, FIELDS, check_columns, default_name


def test_all_columns_and_fields_are_allowed_in_any_order() -> None:
    check_columns(COLUMNS, FIELDS)
    check_columns(tuple(reversed(COLUMNS)), FIELDS[3:1:-1])
    check_columns(("value",), ())


@pytest.mark.parametrize(
    ("columns", "fields", "error"),
    [
        (("value", "key"), (), "there is no column 'key'; there are value, routing_key"),
        (("value", "properties"), ("headers",), "there is no property 'headers'"),
        (("value", "value"), (), "the column 'value' is there twice"),
        (("value", "properties"), ("type", "type"), "the property 'type' is there twice"),
        (("routing_key",), (), "there is no column 'value', and a message needs a body"),
        (("value",), ("type",), "there are properties, and no column 'properties'"),
    ],
)
def test_a_wrong_column_is_named(columns: Sequence[str], fields: Sequence[str], error: str) -> None:
    with pytest.raises(BatchError, match=error):
        check_columns(columns, fields)


def test_a_default_fits_a_short_string() -> None:
    assert default_name("é" * 127, "exchange") == "é" * 127
    with pytest.raises(BatchError, match="the default exchange has 256 octets"):
        default_name("é" * 128, "exchange")
