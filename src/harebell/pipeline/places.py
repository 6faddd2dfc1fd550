"""Deprecated for one release: use `pipeline.errors` and `pipeline.spec.yaml_nodes`."""

from __future__ import annotations

import warnings
from typing import Any

from harebell.pipeline import errors
from harebell.pipeline.spec import yaml_nodes

_NEW = {
    **dict.fromkeys(("Complaint", "Complaints", "DescriptionError", "PipelineError"), errors),
    **dict.fromkeys(("Node", "parse", "read", "unknown_keys"), yaml_nodes),
}


def __getattr__(name: str) -> Any:
    if name not in _NEW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _NEW[name]
    warnings.warn(
        f"{__name__}.{name} is deprecated: use {module.__name__}.{name}",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(module, name)
