"""Make one answer of those that the owners of several stores give to a command.

Each owner answers with what its own store has. The answers are in the order of the stores, but for
that of the process that was asked, which is the first one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import chain
from typing import Any

from harebell.admin.command import Command, Row
from harebell.admin.context import CheckFailed
from harebell.admin.place import (
    CHECK,
    CHECK_OF_ALL,
    COMMON,
    EACH_ONCE,
    FULLEST,
    NEWEST,
    NODES_BY_NAME,
    OLDEST,
    ROWS,
    SECTIONS,
    SUMS,
    TOTALS,
)

NEEDS_ALL = frozenset((COMMON, SECTIONS))
"""Merges that make no sense of the answers of some owners."""
_ADDED = ("message_stats", "churn_rates", "queue_totals", "object_totals")
_ALL_NODES = ("listeners", "contexts")
_USERS = "users"
"""The section that every owner has as a whole."""


def merged(command: Command, answers: list[Any], limit: int = 0) -> Any:
    """Return the answer to a command that runs everywhere.

    Args:
        command: how its answers become one is a part of its description.
        answers: one of each owner, at least one; lists may be iterators.
        limit: the most rows of the newest ones.
    """
    if len(answers) == 1:
        return answers[0]
    if command.merge == NEWEST:
        return list(deque(_in_order(command.noun.order, answers), limit))
    if command.merge == ROWS:
        return _in_order(command.noun.order, answers)
    return _MERGES[command.merge](answers)


def _in_order(column: str, answers: list[Iterable[Row]]) -> Iterator[Row]:
    """Yield the rows of lists that each are in the order of a column."""
    if not column:
        return chain.from_iterable(answers)

    def key(row: Row) -> tuple[bool, Any]:
        value = row.get(column)
        return isinstance(value, str), value if isinstance(value, str | int | float) else 0

    return iter(merge(*answers, key=key))


def _each_once(answers: list[Iterable[Row]]) -> list[Row]:
    import msgspec

    encode = msgspec.json.Encoder(order="deterministic").encode
    return list({encode(row): row for row in chain.from_iterable(answers)}.values())


def _common(answers: list[Iterable[Row]]) -> list[Row]:
    mine, *others = answers
    names = [{row["name"] for row in each} for each in others]
    return [row for row in mine if all(row["name"] in each for each in names)]


def added(first: Any, other: Any) -> Any:
    """Add the numbers of two answers by member; other values come from the first answer."""
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        names = [*first, *(name for name in other if name not in first)]
        return {
            name: first.get(name, other.get(name))
            if name not in first or name not in other or name == "timestamp"
            else added(first[name], other[name])
            for name in names
        }
    if isinstance(first, list) and isinstance(other, list):
        return _samples_added(first, other)
    if _is_number(first) and _is_number(other):
        return first + other
    return first


def _samples_added(first: list[Row], other: list[Row]) -> list[Row]:
    """Add samples, the newest first: to each that of the other list which is nearest in time.

    One older than all of the other list stays as it is: its broker has run for longer.
    """
    if not first or not other:
        return first or other
    times = [each["timestamp"] for each in other]
    steps = (each[0]["timestamp"] - each[1]["timestamp"] for each in (first, other) if each[1:])
    near = next(steps, 0) / 2
    samples, at = [], 0
    for each in first:
        now = each["timestamp"]
        while at + 1 < len(times) and abs(times[at + 1] - now) <= abs(times[at] - now):
            at += 1
        samples.append(added(each, other[at]) if times[-1] <= now + near else each)
    oldest = first[-1]["timestamp"] - near
    return samples + [each for each in other if each["timestamp"] < oldest]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sums(answers: list[Row]) -> Row:
    sums, *others = answers
    for each in others:
        sums = added(sums, each)
    return sums


def _totals(answers: list[Row]) -> Row:
    mine, *others = answers
    totals = dict(mine)
    for each in others:
        for name in _ADDED:
            if name in totals and name in each:
                totals[name] = added(totals[name], each[name])
    # The name is in store 1. An owner that knows none answers with the name of its node.
    named = (each["cluster_name"] for each in answers if each["cluster_name"] != each["node"])
    totals["cluster_name"] = next(named, mine["cluster_name"])
    for name in _ALL_NODES:
        totals[name] = _each_once([each[name] for each in answers])
    return totals


def _oldest(answers: list[Row]) -> Row:
    return max(answers, key=lambda each: -1.0 if (age := each["oldest_seconds"]) is None else age)


def _nodes(answers: list[Iterable[Row]]) -> list[Row]:
    rows: dict[str, Row] = {}
    for row in chain.from_iterable(answers):
        previous = rows.get(row["name"])
        if previous is None or len(row) > len(previous):
            rows[row["name"]] = row
    return [rows[name] for name in sorted(rows)]


def _fullest(answers: list[Row]) -> Row:
    return max(answers, key=len)


def _first(answers: list[Row]) -> Row:
    return answers[0]


def _sections(answers: list[Row]) -> Row:
    mine, *others = answers
    sections = dict(mine)
    for each in others:
        for name, entries in each.items():
            if isinstance(entries, list) and name != _USERS:
                sections[name] = [*sections.get(name, ()), *entries]
    sections["vhosts"] = sorted(sections["vhosts"], key=lambda entry: entry["name"])
    return sections


_MERGES: dict[str, Callable[[list[Any]], Any]] = {
    EACH_ONCE: _each_once,
    COMMON: _common,
    SUMS: _sums,
    TOTALS: _totals,
    OLDEST: _oldest,
    NODES_BY_NAME: _nodes,
    FULLEST: _fullest,
    CHECK: _first,
    CHECK_OF_ALL: _first,
    SECTIONS: _sections,
}


def merged_failure(failures: list[CheckFailed]) -> CheckFailed:
    """Return the failure of a check that has failed at some owners, with the lists of all."""
    first, *others = failures
    for each in others:
        for name, value in each.answer.items():
            if isinstance(value, list):
                first.answer[name] = [*first.answer.get(name, ()), *value]
    return first
