"""States of pipelines become text that Prometheus reads."""

from __future__ import annotations

from harebell.pipeline.registry import PipelineState
from harebell.pipeline.run.metrics import exposition


def samples(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_everything_that_is_known_of_a_pipeline_is_a_sample() -> None:
    state = PipelineState(
        "orders", "orders.yaml", 7, "running", started=1.5, batch=3, rows=40, rate=12.25
    )
    state.batch_ms, state.batches, state.batch_seconds, state.bad = 250, 4, 1.125, 2
    state.lag, state.written = {"orders": 9, "b": 0}, {"lake": 38}
    assert samples(exposition([state])) == {
        'harebell_pipeline_up{pipeline="orders"}': "1",
        'harebell_pipeline_failed{pipeline="orders"}': "0",
        'harebell_pipeline_start_time_seconds{pipeline="orders"}': "1.5",
        'harebell_pipeline_rows_read_total{pipeline="orders"}': "40",
        'harebell_pipeline_rows_bad_total{pipeline="orders"}': "2",
        'harebell_pipeline_rows_written_total{pipeline="orders",sink="lake"}': "38",
        'harebell_pipeline_lag_messages{pipeline="orders",queue="b"}': "0",
        'harebell_pipeline_lag_messages{pipeline="orders",queue="orders"}': "9",
        'harebell_pipeline_batch_duration_seconds_sum{pipeline="orders"}': "1.125",
        'harebell_pipeline_batch_duration_seconds_count{pipeline="orders"}': "4",
        'harebell_pipeline_last_batch_duration_seconds{pipeline="orders"}': "0.25",
        'harebell_pipeline_last_batch_rows_per_second{pipeline="orders"}': "12.25",
    }


def test_a_metric_is_described_once_for_all_pipelines() -> None:
    text = exposition([PipelineState("a", "", 1, "lost"), PipelineState("b", "", 1, "ended")])
    assert text.count("# TYPE harebell_pipeline_up gauge\n") == 1
    assert samples(text)['harebell_pipeline_failed{pipeline="a"}'] == "1"
    assert samples(text)['harebell_pipeline_up{pipeline="b"}'] == "0"
    assert text.endswith("\n")


def test_names_of_queues_are_escaped() -> None:
    state = PipelineState("a", "", 1, lag={'q"\\\n': 1})
    assert 'queue="q\\"\\\\\\n"} 1\n' in exposition([state])
