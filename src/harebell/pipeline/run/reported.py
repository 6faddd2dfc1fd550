"""What a pipeline reports to the broker: its state, as `harebell pipeline watch` shows it."""

from __future__ import annotations

from typing import Any

from harebell.base.limits import QUERY_ERROR_CHARACTERS, QUERY_SOURCES
from harebell.pipeline.registry import RUNNING, PipelineState
from harebell.pipeline.watching import lag_seconds


def facts_of(state: PipelineState) -> dict[str, Any]:
    """Return the facts for a report; docs/protocols/extensions.md names them."""
    facts: dict[str, Any] = {
        "state": "running" if state.state in RUNNING else "stopped",
        "application": "harebell pipeline",
        "rows_per_second": float(state.rate),
        "sources": sorted(state.lag)[:QUERY_SOURCES],
    }
    if state.state in ("failed", "lost"):
        facts["state"] = "failed"
    if state.batch >= 0:
        facts |= {"batch": state.batch, "input_rows": state.batch_rows}
    if state.lag:
        facts["lag_messages"] = sum(state.lag.values())
    behind = lag_seconds(state)
    if behind is not None:
        facts["lag_seconds"] = behind
    if state.written:
        facts["sink"] = ", ".join(sorted(state.written))[:200]
    if state.error:
        facts["error"] = state.error[:QUERY_ERROR_CHARACTERS]
    return facts
