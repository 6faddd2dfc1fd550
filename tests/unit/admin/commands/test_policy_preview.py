"""The preview of a policy says what would change on which queues, and sets nothing."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.admin.limits import POLICY_PREVIEW_ROWS
from harebell.base.errors import HarebellError
from tests.unit.admin.commands.site import Site


def _shop() -> Site:
    site = Site()
    for name in ("orders.eu", "orders.us", "bills"):
        site.run("queues.declare", name=name)
    site.run("policies.set", name="low", pattern="^orders", definition={"max-length": 5})
    return site


def _preview(site: Site, noun: str = "policies", **fields: Any) -> Any:
    return site.run(f"{noun}.preview", **fields)


def test_a_new_policy_names_what_it_would_change() -> None:
    site = _shop()
    new = {"name": "high", "pattern": "us$", "definition": {"max-length": 1}, "priority": 1}
    found = _preview(site, **new)
    assert found["changed"] == 1
    assert found["changes"] == [
        {
            "kind": "queue",
            "name": "orders.us",
            "before": {"policy": "low", "definition": {"max-length": 5}},
            "after": {"policy": "high", "definition": {"max-length": 1}},
        }
    ]
    assert [row["name"] for row in site.run("policies.list")] == ["low"]
    assert {row["name"]: row["policy"] for row in site.run("queues.list")}["orders.us"] == "low"


def test_an_edited_policy_names_what_it_would_leave() -> None:
    changes = _preview(_shop(), name="low", pattern="us$", definition={"max-length": 5})["changes"]
    assert [(each["name"], each["after"]["policy"]) for each in changes] == [("orders.eu", "")]


def test_a_policy_that_stands_behind_another_changes_nothing() -> None:
    definition = {"max-length": 1}
    found = _preview(_shop(), name="z", pattern="^orders", definition=definition, priority=-1)
    assert (found["changed"], found["changes"]) == (0, [])


def test_an_operator_policy_has_a_preview_too() -> None:
    fields = {"name": "o", "pattern": "bills", "definition": {"max-length": 1}}
    found = _preview(_shop(), "operator-policies", **fields, apply_to="queues")
    assert [each["name"] for each in found["changes"]] == ["bills"]


@pytest.mark.parametrize("noun", ["policies", "operator-policies"])
@pytest.mark.parametrize("most", [1, 3, 9])
def test_a_preview_has_the_settings_that_queues_have_when_it_is_set(noun: str, most: int) -> None:
    site = _shop()
    bound = {"max-length": 3, "expires": 60_000}
    site.run("operator-policies.set", name="bound", pattern="eu$", definition=bound)
    before = _effective(site)
    fields = {"name": "new", "pattern": ".", "priority": 7, "definition": {"max-length": most}}
    changes = _preview(site, noun, **fields, apply_to="queues")["changes"]
    assert _effective(site) == before
    site.run(f"{noun}.set", **fields, apply_to="queues")
    after = _effective(site)
    assert {each["name"]: each["before"]["definition"] for each in changes} == before
    assert {each["name"]: each["after"]["definition"] for each in changes} == after
    policies = noun == "policies"
    assert after["orders.eu"]["max-length"] == min(most, 3 if policies else 5)


def _effective(site: Site) -> dict[str, Any]:
    rows = site.run("queues.list")
    return {row["name"]: row["effective_policy_definition"] for row in rows}


def test_a_policy_that_an_operator_policy_outdoes_changes_no_setting() -> None:
    site = _shop()
    site.run("operator-policies.set", name="bound", pattern="us$", definition={"max-length": 2})
    fields = {"name": "low", "pattern": "^orders", "definition": {"max-length": 9}}
    changes = _preview(site, **fields)["changes"]
    assert [each["name"] for each in changes] == ["orders.eu"]


@pytest.mark.parametrize("noun", ["policies", "operator-policies"])
@pytest.mark.parametrize("verb", ["preview", "set"])
def test_a_definition_that_is_nested_deeply_is_refused(noun: str, verb: str) -> None:
    deep: list[Any] = []
    for _ in range(900):
        deep = [deep]
    fields = {"name": "p", "pattern": "a", "definition": {"max-length": deep}}
    with pytest.raises(HarebellError, match=r"the definition of .*policy 'p' cannot be kept.*deep"):
        _shop().run(f"{noun}.{verb}", **fields)


def test_a_wrong_policy_is_refused_as_when_it_is_set() -> None:
    for wrong in ({"pattern": "("}, {"definition": {"no-such": 1}}, {"definition": {}}):
        fields = {"name": "x", "pattern": "x", "definition": {"max-length": 1}, **wrong}
        texts = []
        for verb in ("preview", "set"):
            with pytest.raises(HarebellError) as refused:
                _shop().run(f"policies.{verb}", **fields)
            texts.append(str(refused.value))
        assert texts[0] == texts[1]


def test_a_preview_names_so_many_and_counts_all() -> None:
    site = Site()
    for number in range(POLICY_PREVIEW_ROWS + 5):
        site.run("queues.declare", name=f"q{number}")
    found = _preview(site, name="all", pattern="^q", definition={"max-length": 1})
    assert (found["changed"], len(found["changes"])) == (POLICY_PREVIEW_ROWS + 5, 100)
