"""What is shown of running pipelines where there is no terminal, and where there is one."""

from __future__ import annotations

from harebell.pipeline.registry import PipelineState
from harebell.pipeline.views import View, end_of, line_of


def state(**fields: object) -> PipelineState:
    made = PipelineState(
        "orders", "", 1, "running", batch=4, rows=12_000, rate=3_210.4, batch_ms=150
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_a_micro_batch_is_one_line() -> None:
    assert line_of(state()) == ("orders: micro-batch 4, 12,000 rows so far, 3,210 rows/s, 150 ms")
    assert line_of(state(bad=3, lag={"a": 1_000, "b": 5})).endswith("150 ms, 1,005 behind")


def test_the_end_says_what_was_read_and_written() -> None:
    assert end_of(state(written={"lake": 10})) == "orders: 12,000 rows read; written 10 to lake"
    assert end_of(state(bad=2)) == "orders: 12,000 rows read, 2 bad; written nothing"
    assert end_of(state(state="failed", error="why")) == "orders: failed: why"


def test_each_micro_batch_is_told_once() -> None:
    said: list[str] = []
    with View(said.append, terminal=False) as view:
        view.show([state(batch=-1)])
        view.show([state()])
        view.show([state()])
        view.show([state(batch=5)])
        view.say("hello")
    assert [line.split(",")[0] for line in said] == [
        "orders: micro-batch 4",
        "orders: micro-batch 5",
        "hello",
    ]


def test_a_terminal_gets_a_table() -> None:
    said: list[str] = []
    with View(said.append, terminal=True) as view:
        view.show([state()])
    assert said == []
