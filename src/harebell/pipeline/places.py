"""Deprecated for one release: use `pipeline.errors` and `pipeline.spec.yaml_nodes`."""

from __future__ import annotations

from harebell.base.deprecation import deprecated_names

_ERRORS = ("Complaint", "Complaints", "DescriptionError", "PipelineError")
_NODES = ("Node", "parse", "read", "unknown_keys")

__getattr__ = deprecated_names(
    __name__,
    {name: f"harebell.pipeline.errors.{name}" for name in _ERRORS}
    | {name: f"harebell.pipeline.spec.yaml_nodes.{name}" for name in _NODES},
)
