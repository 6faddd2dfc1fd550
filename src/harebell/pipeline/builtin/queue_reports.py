"""Reports about queues, as SQL: dead letters by reason, and message rates.

triage   dead letters by the queue they died in, the reason, the key and the shape of the body
stats    messages by time and key: rates, sizes, how long they have waited, hot keys, skew
flow     the same as a step over a stream, updated continuously
"""

from __future__ import annotations

from collections.abc import Sequence

from harebell.pipeline.spec.values import interval_of
from harebell.pipeline.sql.selections import SelectStatement, TableReference

_VIEW = "looked_at"
# Numbers and quoted values differ for each message; the remaining text is the type of the error.
_SIGNATURE = (
    "substring(regexp_replace(regexp_replace("
    "coalesce(try_validate_utf8(CAST(value AS STRING)), 'octets'), "
    r"""r'("[^"]*"\s*:)|"[^"]*"', '$1'), '[0-9]+', '0'), 1, 60)"""
)
GROUPS = {
    "queue": "headers['x-first-death-queue'] AS queue",
    "reason": "coalesce(headers['x-first-death-reason'], headers['x-reason']) AS reason",
    "routing_key": "routing_key",
    "signature": f"{_SIGNATURE} AS signature",
}


def triage(queue: str, groups: Sequence[str], where: str = "") -> SelectStatement:
    """Return the query for dead letters in groups, the largest first.

    Args:
        queue: the queue of the dead letters.
        groups: columns to group by, of `GROUPS`.
        where: an SQL condition that selects dead letters.
    """
    columns = ", ".join(GROUPS[each] for each in groups)
    condition = f"WHERE {where} " if where else ""
    numbers = ", ".join(str(n) for n in range(1, len(groups) + 1))
    return SelectStatement(
        f"SELECT {columns}, count(*) AS messages, min(offset) AS first, max(offset) AS last "
        f"FROM {_VIEW} {condition}GROUP BY {numbers} ORDER BY messages DESC, {numbers}",
        (TableReference("queue", queue, _VIEW),),
    )


_LATENCY = "(unix_micros(timestamp) - unix_micros(properties.timestamp)) / 1e6"
_SIZES = (
    "sum(octet_length(value)) AS octets, "
    "CAST(percentile(octet_length(value), 0.5) AS BIGINT) AS octets_p50, "
    "CAST(percentile(octet_length(value), 0.99) AS BIGINT) AS octets_p99"
)
_SHARES = ((0.5, "p50"), (0.99, "p99"))
_DELAYS = ", ".join(
    f"round(percentile({_LATENCY}, {share}), 3) AS delay_{name}" for share, name in _SHARES
)


def stats(queue: str, seconds: float) -> SelectStatement:
    """Return the query for the message rates of a queue in windows of time.

    Args:
        queue: the queue, or a stream.
        seconds: the length of a window.
    """
    micros = max(1, round(seconds * 1_000_000))
    start = f"timestamp_micros(floor(unix_micros(timestamp) / {micros}) * {micros})"
    return SelectStatement(
        f"SELECT start, count(*) AS messages, round(count(*) / {micros / 1e6}D, 2) AS per_second, "
        f"{_SIZES}, {_DELAYS}, count(DISTINCT routing_key) AS keys, "
        "round(100 * max(of_key) / count(*), 1) AS hottest_percent "
        "FROM (SELECT *, count(*) OVER (PARTITION BY routing_key, start) AS of_key "
        f"FROM (SELECT *, {start} AS start FROM {_VIEW})) GROUP BY start ORDER BY start",
        (TableReference("queue", queue, _VIEW),),
    )


def top_keys(queue: str, limit: int) -> SelectStatement:
    """Return the query for the most frequent routing keys, and their share.

    Args:
        queue: the queue, or a stream.
        limit: number of keys.
    """
    return SelectStatement(
        "SELECT routing_key, count(*) AS messages, "
        "round(100 * count(*) / sum(count(*)) OVER (), 1) AS percent, "
        f"{_SIZES} FROM {_VIEW} GROUP BY routing_key "
        f"ORDER BY messages DESC, routing_key LIMIT {limit}",
        (TableReference("queue", queue, _VIEW),),
    )


def flow(view: str, seconds: float, keys: int | None = None) -> str:
    """Return a streaming query for the message rates of a stream in windows of time.

    Percentiles and keys are estimates: a window of any size needs some kilobytes. Up to some
    thousand keys they are exact.

    Args:
        view: the view with the messages, and a watermark on their `timestamp`.
        seconds: the length of a window.
        keys: show this many top routing keys of each window in place of its rates.
    """
    window = f"window(timestamp, '{interval_of(seconds)}')"
    if keys:
        top = f"approx_top_k(routing_key, {keys})"
        return (
            "SELECT start, top.item AS routing_key, top.count AS messages, "
            "round(100 * top.count / total, 1) AS percent "
            f"FROM (SELECT start, total, explode(top) AS top FROM (SELECT {window}.start AS start, "
            f"count(*) AS total, {top} AS top FROM {view} GROUP BY {window}))"
        )
    sizes = ", ".join(
        f"percentile_approx(octet_length(value), {share}) AS octets_{name}"
        for share, name in _SHARES
    )
    delays = ", ".join(
        f"round(percentile_approx({_LATENCY}, {share}), 3) AS delay_{name}"
        for share, name in _SHARES
    )
    return (
        f"SELECT {window}.start AS start, count(*) AS messages, "
        f"round(count(*) / {seconds!r}, 2) AS per_second, "
        f"sum(octet_length(value)) AS octets, {sizes}, {delays}, "
        "approx_count_distinct(routing_key) AS keys, "
        "round(100 * approx_top_k(routing_key, 1)[0].count / count(*), 1) AS hottest_percent "
        f"FROM {view} GROUP BY {window}"
    )
