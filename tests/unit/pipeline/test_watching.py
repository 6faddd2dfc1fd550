"""What `harebell pipeline watch` shows of a pipeline."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harebell.pipeline.registry import PipelineState
from harebell.pipeline.watching import COLUMNS, lag_seconds, live_table, row_of


def state(**changes: object) -> PipelineState:
    found = PipelineState("sales", "", 1, state="running")
    for name, value in changes.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, None),
        ({"lag": {"a": 0}}, 0.0),
        ({"lag": {"a": 5}}, None),
        ({"lag": {"a": 300, "b": 200}, "rows": 1_000, "batch_seconds": 2.0}, 1.0),
    ],
)
def test_the_lag_in_seconds_is_what_waits_at_the_rate_so_far(
    changes: dict[str, object], seconds: float | None
) -> None:
    assert lag_seconds(state(**changes)) == seconds


def test_a_pipeline_is_a_row_and_an_error_is_cut_to_one_line() -> None:
    found = state(
        batch=3, rows=4_000, rate=1_500.4, batch_ms=1_200, batches=4, lag={"sales": 1_234}
    )
    assert row_of(found)[:7] == ("sales", "running", "3", "4,000", "1,500", "1,200", "1,234")
    failed = state(state="failed", error="a" * 80 + "\nmore", rate=5.0)
    assert row_of(failed)[4] == ""
    assert row_of(failed)[-1] == "a" * 59 + "…"


def test_running_pipelines_come_first_and_names_are_no_markup() -> None:
    table = live_table([state(name="a", state="ended"), state(name="[red]b[/red]")], now=0.0)
    written = io.StringIO()
    Console(file=written, width=200).print(table)
    lines = written.getvalue().splitlines()
    assert lines[0].strip() == "pipelines at 00:00:00Z"
    assert [line.split()[0] for line in lines[2:]] == ["[red]b[/red]", "a"]
    assert lines[1].split()[0] == COLUMNS[0]
