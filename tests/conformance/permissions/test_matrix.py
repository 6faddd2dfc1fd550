"""Every method of every version asks for what docs/reference/permissions.md says.

It tells nothing before.

The methods come from the wire's own tables, so a new one without a line on that page fails here.
"""

from __future__ import annotations

import pytest

from harebell.auth.permissions import ACTIONS
from tests.conformance.permissions.matrix import (
    VERSIONS,
    Need,
    Row,
    for_some_name,
    methods_of,
    others,
    rows,
)
from tests.conformance.permissions.uses import EXAMPLES, KEPT, before, before_there, example
from tests.conformance.permissions.worlds import (
    KEY,
    Refused,
    Session,
    allow,
    allow_topics,
    different,
    empty,
    furnished,
)
from tests.conformance.sites import MemorySite

ROWS = rows()
ANY = "any"


def _chosen(needs: tuple[Need, ...], action: str) -> list[Need]:
    """The permissions of a row, with one of the three for those that may be any."""
    return [Need(action, need.kind, need.name) if need.action == ANY else need for need in needs]


def _ways(row: Row) -> list[str]:
    return list(ACTIONS) if any(need.action == ANY for need in row.needs) else [ACTIONS[0]]


def _done(site: MemorySite, row: Row, needs: list[Need], *, there: bool = False) -> Refused | None:
    """What an operation is refused with, for a user with these permissions."""
    session = Session(site, row.version)
    ahead = before(row) + (before_there(row) if there else [])
    assert session.do(*ahead) is None
    allow(site, needs)
    return session.do(*example(row))


def _names(site: MemorySite) -> tuple[set[str], set[str]]:
    """What there is."""
    vhost = site.broker.vhosts["/"]
    return set(vhost.queues), set(vhost.exchanges)


def _text(need: Need) -> str:
    where = f"access to {need.kind} '{need.name}' in vhost '/' refused for user 'guest'"
    return where if need.action == ANY else f"{need.action} {where}"


def test_every_method_of_every_version_is_in_the_table() -> None:
    known = {method for version in VERSIONS for method in methods_of(version)}
    asked = {row.method for row in ROWS}
    assert not asked & others()
    assert known - asked - others() == set()
    assert (asked | others()) - known == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_method_of_a_version_has_a_row_there(version: str) -> None:
    here = {row.method for row in ROWS if row.version == version}
    assert methods_of(version) - others() == here


def test_every_operation_has_an_example() -> None:
    named = {(row.operation, row.method) for row in ROWS}
    assert named == {(name, method) for name, each in EXAMPLES.items() for method in each}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_permissions_of_the_row_are_enough(row: Row) -> None:
    for action in _ways(row):
        assert _done(furnished(), row, _chosen(row.needs, action), there=True) is None


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_without_any_one_of_them_it_is_refused_whether_or_not_anything_exists(row: Row) -> None:
    for missing in row.needs:
        for action in _ways(row):
            left = _chosen(tuple(need for need in row.needs if need != missing), action)
            site = furnished()
            refused = _done(site, row, left, there=True)
            assert refused is not None, missing
            assert _names(site) == _names(furnished())
            assert refused.code == 403, refused
            assert _text(missing) in refused.text
            if row.operation != "publish rows that reach no queue" and row.method != "lease.open":
                assert _done(empty(), row, left) == refused


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_user_with_no_permission_learns_nothing(row: Row) -> None:
    answers = {_done(world(), row, []) for world in (empty, furnished, different)}
    assert len(answers) == 1, answers
    (answer,) = answers
    assert answer is not None
    assert answer.code == 403


SOME = for_some_name()


def test_everything_that_is_kept_for_some_name_has_an_example() -> None:
    assert {method for method, _, _ in SOME} == KEPT.keys()


@pytest.mark.parametrize(("method", "version", "actions"), SOME)
def test_nothing_is_kept_for_a_user_without_the_permission_for_any_name(
    method: str, version: str, actions: tuple[str, ...]
) -> None:
    for action in ACTIONS:
        site = furnished()
        session = Session(site, version)
        allow(site, [Need(action, "exchange", "x")])
        refused = session.do(KEPT[method](version))
        if action in actions:
            assert refused is None
        else:
            assert refused is not None
            assert refused.code == 403
            assert "access to some name in vhost '/': refused for user 'guest'" in refused.text
        makes = action in actions and method in ("stage.open", "publisher.declare")
        assert len(site.broker.publishers) == makes
    session = Session(site, version)
    allow(site, [])
    refused = session.do(KEPT[method](version))
    assert refused is not None
    assert refused.code == 403


TOPICS = [row for row in ROWS if any(need.topic for need in row.needs)]


@pytest.mark.parametrize("pattern", [f"^{KEY}$", "^something else$"], ids=["allowed", "refused"])
@pytest.mark.parametrize("row", TOPICS, ids=str)
def test_the_key_is_asked_for_at_an_exchange_of_type_topic(row: Row, pattern: str) -> None:
    site = furnished("topic")
    session = Session(site, row.version)
    assert session.do(*before(row), *before_there(row)) is None
    allow(site, list(row.needs))
    allow_topics(site, pattern)
    if row.operation == "publish rows that reach no queue":
        # Its rows may go to the exchange that they are for, and not to the other one.
        user = site.users.get("guest")
        assert user is not None
        del user.topic_permissions["/"]["x"]
    refused = session.do(*example(row))
    if pattern == f"^{KEY}$":
        assert refused is None
        return
    (need,) = [need for need in row.needs if need.topic]
    text = f"{need.action} access to topic '{KEY}' in exchange '{need.name}' in vhost '/' refused"
    assert refused is not None
    assert refused.code == 403
    assert text in refused.text
