"""The states of pipelines as text for Prometheus (exposition format 0.0.4).

Every metric is `harebell_pipeline_NAME{pipeline="..."}`; the second label, if any, is `queue` or
`sink`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harebell.pipeline.registry import RUNNING, PipelineState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "harebell_pipeline_"
_Samples = Iterable[tuple[str, dict[str, str], float]]


def _one(number: Callable[[PipelineState], float]) -> Callable[[PipelineState], _Samples]:
    """Return a metric with one sample per pipeline."""
    return lambda state: [("", {}, number(state))]


_METRICS: tuple[tuple[str, str, str, Callable[[PipelineState], _Samples]], ...] = (
    ("up", "gauge", "Whether the pipeline runs.", _one(lambda state: state.state in RUNNING)),
    (
        "failed",
        "gauge",
        "Whether its last run failed, or its process died.",
        _one(lambda state: state.state in ("failed", "lost")),
    ),
    (
        "start_time_seconds",
        "gauge",
        "When it was started, in seconds since 1970.",
        _one(lambda state: state.started),
    ),
    ("rows_read_total", "counter", "Rows read.", _one(lambda state: state.rows)),
    (
        "rows_bad_total",
        "counter",
        "Rows whose bodies could not be read.",
        _one(lambda state: state.bad),
    ),
    (
        "rows_written_total",
        "counter",
        "Rows written.",
        # A copy: the thread of the micro-batch adds sinks while a scrape goes through them.
        lambda state: (
            ("", {"sink": name}, count) for name, count in sorted(dict(state.written).items())
        ),
    ),
    (
        "lag_messages",
        "gauge",
        "Messages that wait in a queue.",
        lambda state: (
            ("", {"queue": name}, count) for name, count in sorted(dict(state.lag).items())
        ),
    ),
    (
        "batch_duration_seconds",
        "summary",
        "How long micro-batches took.",
        lambda state: [("_sum", {}, state.batch_seconds), ("_count", {}, state.batches)],
    ),
    (
        "last_batch_duration_seconds",
        "gauge",
        "How long the last micro-batch took.",
        _one(lambda state: state.batch_ms / 1000),
    ),
    (
        "last_batch_rows_per_second",
        "gauge",
        "Rows of the last micro-batch by its duration.",
        _one(lambda state: state.rate),
    ),
)


def exposition(states: Iterable[PipelineState]) -> str:
    """Return all metrics of all pipelines."""
    runs = list(states)
    lines: list[str] = []
    # Metric by metric, not pipeline by pipeline: the format wants all samples of a name in one
    # group, and HELP and TYPE once before them.
    for name, kind, what, samples in _METRICS:
        lines += (f"# HELP {_PREFIX}{name} {what}", f"# TYPE {_PREFIX}{name} {kind}")
        for state in runs:
            for ending, labels, value in samples(state):
                text = _labels({"pipeline": state.name, **labels})
                lines.append(f"{_PREFIX}{name}{ending}{{{text}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    # The backslash first: else those that the other two bring would be doubled.
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(round(number, 6))
