"""Pickle the data source for Spark Connect, with a clear error where Harebell is missing.

The session sends Harebell to the server as an artifact, and Spark makes it importable in the Python
processes of batch reads and writes. In those of a streaming query it is not importable (Spark 4.3),
neither on the server nor in executors, so Harebell must be installed there. Without it Python's own
error would name an internal module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any
from zipimport import zipimporter

from pyspark import cloudpickle

import harebell

Recipe = tuple[Callable[..., Any], tuple[Any, ...]]
"""A pickle: a function that makes the object, and its arguments."""


def arrived(options: Mapping[str, str]) -> Any:
    """Make the source, in the process that unpickles it.

    The function is pickled by value, because this module may be missing in that process. It imports
    everything that it needs in its body.

    Args:
        options: of the source.

    Raises:
        ModuleNotFoundError: Harebell is not installed.
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
    """Return the pickle of a source that came as an artifact; None if Harebell is installed."""
    spec = harebell.__spec__
    if spec is None or not isinstance(spec.loader, zipimporter):
        return None
    return arrived, (dict(options),)


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
