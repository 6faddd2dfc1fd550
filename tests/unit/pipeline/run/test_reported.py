"""A pipeline reports what `harebell pipeline watch` shows of it, and the broker takes it."""

from __future__ import annotations

from harebell.base.clock import Clock
from harebell.model.query_reports import QueryReports
from harebell.pipeline.registry import PipelineState
from harebell.pipeline.run.reported import facts_of


def test_a_pipeline_that_has_just_started_reports_that_it_runs() -> None:
    facts = facts_of(PipelineState("sales", "", 1))
    assert facts["state"] == "running"
    assert not {"batch", "input_rows", "lag_messages", "lag_seconds", "error"} & set(facts)
    QueryReports(Clock()).add("guest", "sales", facts)


def test_a_pipeline_that_has_failed_reports_why() -> None:
    state = PipelineState("sales", "", 1, state="failed", batch=7, rows=1_000, rate=250.0)
    state.batch_rows, state.batch_seconds, state.lag, state.written = (
        40,
        2.0,
        {"b": 300, "a": 200},
        {"lake": 5},
    )
    state.error = "no disk" * 1_000
    facts = facts_of(state)
    assert (facts["state"], facts["batch"], facts["rows_per_second"]) == ("failed", 7, 250.0)
    assert facts["input_rows"] == 40, "the rows of micro-batch 7, not of the whole run"
    assert (facts["lag_messages"], facts["lag_seconds"]) == (500, 1.0)
    assert (facts["sources"], facts["sink"]) == (["a", "b"], "lake")
    assert facts["error"].startswith("no disk")
    QueryReports(Clock()).add("guest", "sales", facts)


def test_a_pipeline_that_has_ended_reports_that_it_stopped() -> None:
    assert facts_of(PipelineState("sales", "", 1, state="ended"))["state"] == "stopped"
