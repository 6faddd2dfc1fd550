"""The error of a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import HarebellError

if TYPE_CHECKING:
    from harebell.model.filter.dialect import Dialect


class FilterError(HarebellError, ValueError):
    """A filter is invalid, or a message takes too long to test; the text says where and why."""


def wrong_at(start: int, text: str, dialect: Dialect) -> FilterError:
    """Return the error for a place in a text, which is counted in characters from 1."""
    return FilterError(f"the {dialect.noun} is wrong at character {start + 1}: {text}")
