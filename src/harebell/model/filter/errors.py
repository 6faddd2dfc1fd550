"""The error of a filter."""

from __future__ import annotations

from harebell.base.errors import HarebellError


class FilterError(HarebellError, ValueError):
    """A filter is invalid, or a message takes too long to test; the text says where and why."""


def wrong_at(at: int, text: str) -> FilterError:
    """Return the error for a place in a filter, which is counted in characters from 1."""
    return FilterError(f"the filter is wrong at character {at + 1}: {text}")
