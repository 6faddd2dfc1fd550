"""The old module of pipeline errors still works, and warns."""

from __future__ import annotations

import pytest

from harebell.pipeline import errors, places


def test_the_old_module_warns_and_gives_the_same_class() -> None:
    with pytest.warns(DeprecationWarning, match=r"use harebell\.pipeline\.errors\.PipelineError"):
        old = places.PipelineError
    assert old is errors.PipelineError


def test_a_name_that_was_never_there_is_an_error_without_a_warning() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = places.Nothing
