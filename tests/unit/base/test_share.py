"""A user has a part of a count, takes nothing from others, and always gets a little."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.share import FairCache, Shares


def things(limit: int = 640) -> Shares:
    return Shares("things", limit, "drop some")


def test_one_user_has_a_quarter_at_most_and_others_have_the_rest() -> None:
    shares = things()
    shares.add("ann", 160)
    with pytest.raises(Refusal) as caught:
        shares.check("ann", cannot="no thing")
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert caught.value.text == (
        "no thing: user 'ann' has 160 things, and one user may have 160: drop some"
    )
    shares.check("bob", 160)
    shares.remove("ann")
    shares.check("ann")
    assert (shares.of("ann"), shares.of("bob"), shares.used) == (159, 0, 159)


def test_a_user_with_little_is_never_refused() -> None:
    shares = things()
    for user in "abcd":
        shares.add(user, 160)
    for _ in range(10):
        shares.check("ann")
        shares.add("ann")
    with pytest.raises(Refusal, match="there are 650 things, of which user 'ann' has 10, and ther"):
        shares.check("ann")
    shares.add("", 10)
    with pytest.raises(Refusal, match="there are 660 things, of which the control socket has 10"):
        shares.check("")


def test_a_returned_share_is_not_remembered() -> None:
    shares = things()
    for number in range(1_000):
        shares.add(str(number))
        shares.remove(str(number))
    assert shares.used == 0
    assert len(shares._held) == 0


def test_a_full_cache_evicts_the_oldest_of_the_owner_who_has_most() -> None:
    cache: FairCache[str, int] = FairCache(4)
    assert cache.put("ann", "a", 1) == []
    for number in range(3):
        assert cache.put("eve", f"e{number}", number) == []
    assert cache.put("eve", "e3", 3) == [0]
    assert cache.put("bob", "b", 2) == [1]
    assert [key for key, _ in cache.items()] == ["a", "e2", "e3", "b"]
    assert (cache.get("a"), cache.get("e0"), len(cache)) == (1, None, 4)


def test_an_entry_that_is_put_again_is_the_newest() -> None:
    cache: FairCache[str, int] = FairCache(2)
    for key in ("a", "b", "a", "c"):
        cache.put("ann", key, 0)
    assert [key for key, _ in cache.items()] == ["a", "c"]
    assert cache.pop("a") == 0
    assert cache.pop("a") is None
    cache.clear()
    assert not cache
