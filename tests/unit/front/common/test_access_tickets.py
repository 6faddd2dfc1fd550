"""Access tickets: one per holder and realm, exclusive ones alone."""

from __future__ import annotations

import pytest

from harebell.base.share import PARTS
from harebell.front.common.access_tickets import DATA, READ, WRITE, RealmInUse, Tickets
from harebell.front.limits import ACCESS_TICKETS


def test_numbers_are_never_zero_and_never_given_twice():
    tickets = Tickets()
    numbers = [tickets.grant(n, "/", DATA, [READ], exclusive=False).number for n in range(100)]
    assert len(set(numbers)) == 100
    assert 0 not in numbers


def test_a_second_request_replaces_the_first():
    tickets = Tickets()
    first = tickets.grant("a", "/", DATA, [READ], exclusive=False)
    second = tickets.grant("a", "/", DATA, [WRITE], exclusive=False)
    assert tickets.find(first.number) is None
    assert tickets.find(second.number) == second
    assert second.rights == {WRITE}


def test_an_exclusive_ticket_is_refused_where_others_have_one():
    tickets = Tickets()
    tickets.grant("a", "/", DATA, [READ], exclusive=False)
    with pytest.raises(RealmInUse, match="in use"):
        tickets.grant("b", "/", DATA, [READ], exclusive=True)


def test_an_exclusive_ticket_excludes_other_tickets():
    tickets = Tickets()
    tickets.grant("a", "/", DATA, [READ], exclusive=True)
    with pytest.raises(RealmInUse):
        tickets.grant("b", "/", DATA, [READ], exclusive=False)
    assert tickets.grant("b", "other", DATA, [READ], exclusive=True)
    tickets.forget("a")
    assert tickets.grant("b", "/", DATA, [READ], exclusive=False)


def test_the_only_holder_may_ask_for_an_exclusive_one():
    tickets = Tickets()
    tickets.grant("a", "/", DATA, [READ], exclusive=False)
    assert tickets.grant("a", "/", DATA, [READ], exclusive=True).exclusive


def test_one_user_does_not_take_the_numbers_of_others() -> None:
    tickets = Tickets()
    share = ACCESS_TICKETS // PARTS
    holders = [object() for _ in range(share + 1)]
    for holder in holders[:share]:
        tickets.grant(holder, "v", DATA, [READ], exclusive=False, user="eve")
    with pytest.raises(RealmInUse, match=f"user 'eve' has {share} access tickets, and one user"):
        tickets.grant(holders[-1], "v", DATA, [READ], exclusive=False, user="eve")
    tickets.grant(holders[-1], "v", DATA, [READ], exclusive=False, user="ann")
    # Another ticket for the same realm replaces the first one.
    tickets.grant(holders[0], "v", DATA, [WRITE], exclusive=False, user="eve")
    for holder in holders:
        tickets.forget(holder)
    tickets.grant(holders[-1], "v", DATA, [READ], exclusive=True, user="eve")
