"""Pickle the data source for Spark Connect, with a clear error where Harebell is missing.

The session sends Harebell to the server as an artifact, and Spark shows that to the Python
processes of batch reads and writes. To those of a streaming query it does not (Spark 4.3), neither
on the server nor in executors, so there Harebell has to be installed. Without it Python's own error
would name an internal module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any
from zipimport import zipimporter

from pyspark import cloudpickle

import harebell

Recipe = tuple[Callable[..., Any], tuple[Any, ...]]
"""What a pickle holds: a function that makes the object, and its arguments."""


def arrived(options: Mapping[str, str]) -> Any:
    """Make the source, in the process that unpickles it.

    It is pickled by value, because this module may be missing where it runs. Everything that it
    needs is imported in its body.

    Args:
        options: of the source.

    Raises:
        ModuleNotFoundError: Harebell is not there.
    """
    try:
        from pyspark_harebell import DefaultSource
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a streaming query over Spark Connect needs Harebell on the server ({error}): "
            "install it for the Python of the server and of its executors, with "
            "pip install 'harebell[spark]'"
        ) from None
    return DefaultSource(options)


def recipe(options: Mapping[str, str]) -> Recipe | None:
    """How a source is pickled that came as an artifact; None where Harebell is installed."""
    spec = harebell.__spec__
    if spec is None or not isinstance(spec.loader, zipimporter):
        return None
    return arrived, (dict(options),)


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
