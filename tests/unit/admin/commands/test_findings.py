"""Findings: a user sees those about what that user can see elsewhere, and no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harebell.admin.catalog import find
from harebell.admin.context import CommandRefused
from harebell.admin.findings import ALARM, NODE, QUERY, QUEUE, Finding, counted, verdict
from harebell.admin.sampling_plan import SamplingPlan
from harebell.auth.permissions import Permissions
from harebell.base.errors import HarebellError
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.management.http.test_rights import MAY, TAGS
from tests.unit.model.things import message

ELSEWHERE = {
    ALARM: "health.in-effect",
    QUEUE: "queues.list",
    QUERY: "queries.list",
    NODE: "nodes.list",
}
"""What shows a user what a finding of a kind is about."""
VHOSTS = ("/", "other")


def _finding(kind: str, vhost: str, more: int = 0) -> Finding:
    return Finding("rule", kind, vhost, "q", "why", 5, "advice", "command", more)


FINDINGS = [
    *(_finding(kind, "") for kind in (ALARM, NODE)),
    *(_finding(kind, vhost) for kind in (QUEUE, QUERY) for vhost in VHOSTS),
]


def _site() -> Site:
    site = Site()
    site.world.peer().ask(m.QueueDeclare("q"))
    other = site.world.broker.add_vhost("other")
    for vhost in (site.world.broker.vhosts["/"], other):
        vhost.query_reports.add("somebody", "q", {})
    found: Any = SimpleNamespace(found=tuple(FINDINGS))
    site.context.findings = found
    return site


def _shows(site: Site, tag: str, finding: Finding) -> bool:
    """Whether what the finding is about is shown to the actor by the command for such things."""
    command = find(ELSEWHERE[finding.kind])
    assert command is not None
    if tag not in MAY[command.tag]:
        return False
    return not finding.vhost or finding.vhost in [row["name"] for row in site.run("vhosts.list")]


@pytest.mark.parametrize("vhosts", [(), ("/",), ("other",), VHOSTS], ids=str)
@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag in MAY["management"]])
def test_a_finding_shows_nothing_that_a_user_cannot_see_elsewhere(
    tag: str, vhosts: tuple[str, ...]
) -> None:
    site = _site()
    user = site.world.users.add("ann", "secret", tags=(tag,), vhosts=vhosts)
    site.context = site.context.on_behalf_of(user)
    seen = [(row["kind"], row["vhost"]) for row in site.run("health.findings")]
    assert seen == [(each.kind, each.vhost) for each in FINDINGS if _shows(site, tag, each)]


def test_the_operator_sees_every_finding_with_its_members() -> None:
    rows = _site().run("health.findings")
    assert len(rows) == len(FINDINGS)
    assert rows[2] == {
        "node": "harebell@localhost",
        "rule": "rule",
        "kind": "queue",
        "vhost": "/",
        "name": "q",
        "why": "why",
        "since": 5,
        "advice": "advice",
        "command": "command",
        "more": 0,
        "generation": "",
        "repair": None,
    }


@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag in MAY["management"]])
@pytest.mark.parametrize("read", ["", ".*"])
@pytest.mark.parametrize("name", ["ann", "somebody"])
def test_a_finding_has_the_act_that_repairs_it_for_those_who_may_do_it(
    name: str, read: str, tag: str
) -> None:
    site = _site()
    reports = site.world.broker.vhosts["/"].query_reports
    reports.add("somebody", "q", {"state": "failed"})
    reports.add("somebody", "runs", {})
    generation = site.world.broker.vhosts["/"].queues["q"].identity
    found: Any = SimpleNamespace(
        found=[
            Finding(rule, kind, "/", about, "why", 5, "advice", "command", generation=generation)
            for rule, kind, about in (
                ("no-consumer", QUEUE, "q"),
                ("all-unacknowledged", QUEUE, "q"),
                ("query", QUERY, "q"),
                ("query", QUERY, "runs"),
                ("old-messages", QUEUE, "q"),
            )
        ]
    )
    site.context.findings = found
    user = site.world.users.add(name, "secret", tags=(tag,))
    user.permissions["/"] = Permissions("", "", read)
    site.context = site.context.on_behalf_of(user)
    rows = site.run("health.findings")
    arguments: dict[str, dict[str, Any]] = {
        "queues.purge": {"name": "q", "generation": generation},
        "connections.close": {"name": ""},
        "queries.delete": {"name": "q", "user": "somebody"},
    }
    may_end = tag == "administrator"
    assert [row["repair"] for row in rows] == [
        {"act": "queues.purge", "generation": generation} if read else None,
        {"act": "connections.close"} if may_end else None,
        {"act": "queries.delete", "user": "somebody"} if may_end or name == "somebody" else None,
        None,
        None,
    ]
    # The command itself decides the same.
    for row, act in zip(rows, arguments, strict=False):
        if act != "connections.close":
            if row["repair"]:
                site.run(act, **arguments[act])
            else:
                with pytest.raises(HarebellError, match=r"refused|may delete it"):
                    site.run(act, **arguments[act])


def test_a_queue_that_is_declared_again_is_not_purged_for_a_finding_about_the_one_before() -> None:
    site = _site()
    vhost = site.world.broker.vhosts["/"]
    before = vhost.queues["q"].identity
    assert site.run("queues.purge", name="q", generation=before)["messages"] == 0
    site.run("queues.delete", name="q")
    vhost.declare_queue("q").publish(message(b"new", "q"))
    with pytest.raises(CommandRefused, match=r"^queue 'q' .*declared again since.*not [0-9a-f]+$"):
        site.run("queues.purge", name="q", generation=before)
    assert vhost.queues["q"].ready_count() == 1
    assert site.run("queues.purge", name="q")["messages"] == 1


def test_findings_are_refused_where_nothing_that_is_counted_is_shown() -> None:
    site = Site(SamplingPlan(disabled=True))
    user = site.world.users.add("ann", "secret", tags=("administrator",), vhosts=("/",))
    site.context = site.context.on_behalf_of(user)
    with pytest.raises(CommandRefused, match="disabled on this node"):
        site.run("health.findings")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [([], "Healthy"), ([0], "1 thing needs you"), ([0, 0, 7], "9 things need you")],
)
def test_the_verdict_is_a_sentence(more: list[int], sentence: str) -> None:
    rows = [_finding(QUEUE, "/", count).row("node") for count in more]
    assert verdict(counted(rows)) == sentence
