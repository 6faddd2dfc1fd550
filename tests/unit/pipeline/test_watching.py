"""What `harebell pipeline watch` shows of a pipeline."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harebell.pipeline.registry import PipelineState
from harebell.pipeline.watching import COLUMNS, LiveTable, lag_seconds, row_of


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


def shown(states: list[PipelineState], width: int, height: int = 40) -> list[str]:
    """The lines of a terminal."""
    written = io.StringIO()
    Console(file=written, width=width, height=height).print(LiveTable(states, now=0.0))
    return [line.rstrip() for line in written.getvalue().splitlines()]


def test_running_pipelines_come_first_and_names_are_no_markup() -> None:
    early = state(name="a", state="ended", updated=1.0)
    failed = state(name="c", state="failed", updated=2.0)
    late = state(name="d", state="lost", updated=3.0)
    lines = shown([early, state(name="[red]b[/red]"), failed, late], 200)
    assert lines[0].strip() == "pipelines at 00:00:00Z"
    assert [line.split()[0] for line in lines[2:]] == ["[red]b[/red]", "d", "c", "a"]
    assert lines[1].split()[0] == COLUMNS[0]


def test_a_narrow_terminal_has_fewer_columns_and_whole_numbers() -> None:
    busy = state(
        name="orders-to-lake", batch=3, rows=4_000_000, rate=1_500.4, batches=4, lag={"q": 1_234}
    )
    failed = state(name="b", state="failed", error="the disk of the lake is full")
    wide = shown([busy, failed], 200)
    assert wide[1].split() == " ".join(COLUMNS).split()
    assert wide[3].endswith("the disk of the lake is full")
    narrow = shown([busy, failed], 60)
    assert narrow[1].split() == ["pipeline", "state", "rows/s", "lag", "error"]
    assert narrow[2].split() == ["orders-to-lake", "running", "1,500", "1,234"]
    assert "the disk" in narrow[3]
    assert narrow[3].endswith("…")
    assert max(map(len, narrow)) <= 60


def test_a_short_terminal_says_how_many_pipelines_it_has_no_line_for() -> None:
    lines = shown([state(name=f"p{number}") for number in range(9)], 80, 7)
    assert [line.split()[0] for line in lines[2:]] == ["p0", "p1", "p2", "p3", "and"]
    assert lines[-1] == " and 5 more: `harebell pipeline list` has all"
