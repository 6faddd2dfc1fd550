"""Old names of pipelines still work for one release, and warn."""

from __future__ import annotations

import pytest

from harebell.pipeline import errors, places, registry


def test_the_old_module_of_errors_warns_and_gives_the_same_class() -> None:
    with pytest.warns(DeprecationWarning, match=r"use harebell\.pipeline\.errors\.PipelineError"):
        old = places.PipelineError
    assert old is errors.PipelineError


@pytest.mark.parametrize("name", ["State", "Entry"])
def test_an_old_class_of_the_registry_warns_and_is_the_same_class(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"registry.Pipeline{name}"):
        old = getattr(registry, name)
    assert old is getattr(registry, f"Pipeline{name}")


def test_a_name_that_was_never_there_is_an_error_without_a_warning() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = places.Nothing
