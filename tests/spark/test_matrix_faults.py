"""Whatever happens to a query, its checkpoint and its queue, each sink is exact, or it is said."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import product

import pytest

from tests.cli.conftest import done as harebell
from tests.spark.cells import FULL, LOGS, MATRIX, STEP, Cell, Played, Site, table

pytestmark = pytest.mark.timeout(1_200)


def _hand_over(site: Site, each: Played) -> None:
    for broker in site.brokers:
        name = f"spark/{each.exchanges['exchange'].queue}"
        harebell(broker, "publishers", "hand-over", name, "--to", "rotated")


def _rotated(site: Site, each: Played) -> Callable[[], None]:
    each.user = "rotated"
    return lambda: _hand_over(site, each)


def _forgotten(site: Site, each: Played) -> Callable[[], None]:
    each.forget_group()
    return lambda: None


def _older(site: Site, each: Played) -> Callable[[], None]:
    newer, each.checkpoint = each.checkpoint, each.first

    def put_back() -> None:
        each.checkpoint = newer

    return put_back


def _copied(site: Site, each: Played) -> Callable[[], None]:
    copied = deepcopy(each.checkpoint)
    each.early |= each.publish(500, 500 + 2 * STEP)
    each.run()
    newer, each.checkpoint = each.checkpoint, copied

    def put_back() -> None:
        each.checkpoint = newer

    return put_back


def _of_another_queue(site: Site, each: Played) -> Callable[[], None]:
    own = dict(each.options)
    each.options.pop("superStream", None)
    each.options["queue"] = each.exchanges["exchange"].queue

    def put_back() -> None:
        each.options = own

    return put_back


def _declared_again(site: Site, each: Played) -> Callable[[], None]:
    each.delete()
    each.declare()
    return lambda: None


FAULTS = {
    "killed": lambda site, each: lambda: None,
    "rotated user": _rotated,
    "forgotten group": _forgotten,
    "older checkpoint": _older,
    "copied checkpoint": _copied,
    "checkpoint of another": _of_another_queue,
    "declared again": _declared_again,
}


def _mixed(kind: str) -> list[tuple[str, Cell]]:
    """Each fault, and how the query was before it; fewer for kinds that are read alike."""
    known = kind in ("classic", "stream")
    return [
        (fault, Cell(kind, 2, left, tolerant=tolerant))
        for fault, left, tolerant in product(FAULTS, FULL, (False, True))
        if (fault != "forgotten group" or kind not in LOGS)
        and (known or (tolerant == (left == "none") and fault != "rotated user"))
    ]


@pytest.mark.parametrize("kind", MATRIX)
def test_any_other_event_of_a_query_is_exact_or_reported(
    site: Site, kind: str, counted: Callable[[str], None]
) -> None:
    for broker in site.brokers:
        harebell(broker, "users", "add", "rotated", "secret")
        harebell(broker, "permissions", "set", "rotated", ".*", ".*", ".*")
    mixed = _mixed(kind)
    played = site.play([cell for _, cell in mixed])
    for each in played:
        each.begin()
        each.go_on()
    # A fail-over that loses nothing is part of each.
    site.kill()
    named = [(fault, each) for (fault, _), each in zip(mixed, played, strict=True)]
    for fault, each in named:
        each.end(FAULTS[fault](site, each))
    text, silent = table((f"{kind} {fault}", each) for fault, each in named)
    counted(text)
    assert not silent, "\n".join(silent)
    for each in (each for fault, each in named if fault == "killed"):
        assert not each.said + each.said_by_sinks
