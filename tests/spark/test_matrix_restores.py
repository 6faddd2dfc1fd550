"""Whatever a query was at when a backup was restored, each sink is exact, or it is said."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests.spark.cells import FULL, MATRIX, Cell, Site, table

pytestmark = pytest.mark.timeout(1_200)


def cells(kind: str) -> list[Cell]:
    return [
        Cell(kind, ahead, left, early, tolerant)
        for ahead, left, early, tolerant in product(
            (0, 1, 2, 4), FULL, (False, True), (False, True)
        )
        # Where nothing is ahead nothing comes after the copy. Of the kinds that are read alike,
        # one is tried in each way.
        if (ahead or not early) and (kind in ("classic", "stream") or early == tolerant)
    ]


@pytest.mark.parametrize("kind", MATRIX)
def test_a_restore_is_exact_or_said(site: Site, kind: str, counted: Callable[[str], None]) -> None:
    played = site.play(cells(kind))
    for each in played:
        each.begin()
    site.backup()
    for each in played:
        each.go_on()
    site.restore()
    for each in played:
        each.end()
        assert each.cell.ahead or not each.said + each.said_by_sinks
    text, silent = table((f"{kind} {each.cell.ahead} ahead", each) for each in played)
    counted(text)
    assert not silent, "\n".join(silent)


@pytest.mark.parametrize("kind", ["classic", "stream"])
def test_a_restore_of_the_broker_that_a_query_writes_to_is_said(
    site: Site, kind: str, counted: Callable[[str], None]
) -> None:
    played = site.play([cell for cell in cells(kind) if not cell.early], away=True)
    for each in played:
        each.begin()
    site.backup()
    for each in played:
        each.go_on()
    site.restore()
    for each in played:
        each.end()
        # A last one that did not end is written again.
        gone = each.cell.ahead - (each.cell.left != "none")
        assert bool(each.said_by_sinks) == (gone > 0), each
        assert not each.said
    named = ((f"{kind} {each.cell.ahead} ahead, sink restored", each) for each in played)
    text, silent = table(named)
    counted(text)
    assert not silent, "\n".join(silent)
