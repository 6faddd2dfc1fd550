"""Lists that one works in: bulk actions, columns, saved filters, files of rows and favourites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pika
import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from harebell.client import blocking
from tests.browser.browsing import SECONDS, Window, window
from tests.browser.traffic import Site, serving
from tests.unit.management.http.asking import segment

LONG = "orders.of.the.european.branch.for.customers.with.contracts.priority-lane-7"
NAMES = ("bulk.a", "bulk.b", "bulk.c", LONG, "=formula", 'quo"te, and comma')
Theme = Literal["light", "dark"]
SIZES = ({"width": 390, "height": 844}, {"width": 1440, "height": 900})


@pytest.fixture(scope="module")
def stock() -> Iterator[Site]:
    with serving("--collect-statistics-interval", "1000") as site:
        yield site


@pytest.fixture
def lists(browser: Browser, stock: Site) -> Iterator[Window]:
    """The list of queues, some with three messages each."""
    for name in NAMES:
        stock.api.done("PUT", f"/api/queues/%2F/{segment(name)}", {"durable": True})
        stock.api.done("DELETE", f"/api/queues/%2F/{segment(name)}/contents")
    with blocking.connect(stock.broker.address() + "/%2F") as connection:
        for name in NAMES[:3]:
            connection.channel().publish_many([b"1", b"2", b"3"], routing_key=name)
    with window(browser, stock.base) as opened:
        opened.enter()
        opened.show("queues", "Queues")
        yield opened
        assert opened.complaints == []
        assert opened.dialogs == []


def _row(lists: Window, name: str) -> Locator:
    link = lists.page.get_by_role("link", name=name, exact=True)
    return lists.page.locator(".body .row").filter(has=link)


def _choose(lists: Window, *names: str) -> Locator:
    for name in names:
        lists.page.get_by_role("checkbox", name=f"Choose {name}", exact=True).check()
    return lists.page.get_by_role("group", name="Chosen")


def _confirm(lists: Window, bar: Locator, button: str, number: int, **typed: str) -> Locator:
    bar.get_by_role("button", name=f"{button}…").click()
    dialog = lists.page.get_by_role("dialog")
    for label, text in typed.items():
        dialog.get_by_label(label).fill(text)
    submit = dialog.get_by_role("button", name=re.compile(rf"^{button} {number} queues?$"))
    expect(submit).to_be_disabled()
    dialog.get_by_label("to confirm").fill(str(number))
    submit.click()
    return dialog


def test_a_backlog_without_consumers_is_marked_and_has_age_size_and_trend(lists: Window) -> None:
    row = _row(lists, "bulk.a")
    expect(row).to_contain_text("no consumers")
    expect(row.locator(".spark polyline")).to_be_attached()
    expect(row).to_contain_text(" B")
    expect(row).to_contain_text(re.compile(r"\d (ms|s|min)"))
    expect(_row(lists, LONG)).to_contain_text("running")


def test_queues_are_sorted_by_their_trend(lists: Window) -> None:
    lists.page.get_by_role("columnheader", name="Trend").get_by_role("button").click()
    expect(lists.page.locator(".body .row").first).to_contain_text("bulk.")
    assert "sort=messages_trend" in lists.page.url


def test_chosen_queues_are_purged_after_a_preview(lists: Window, stock: Site) -> None:
    bar = _choose(lists, "bulk.a", "bulk.b")
    expect(bar.get_by_role("status")).to_have_text("2 queues chosen")
    bar.get_by_role("button", name="Purge…").click()
    dialog = lists.page.get_by_role("dialog")
    expect(dialog).to_contain_text("6 ready messages will be gone")
    expect(dialog.get_by_role("row").filter(has_text="bulk.")).to_have_count(2)
    assert lists.barriers() == []
    dialog.get_by_role("button", name="Cancel").click()
    dialog = _confirm(lists, bar, "Purge", 2)
    expect(dialog.get_by_role("status")).to_have_text("2 queues done, 0 refused.")
    dialog.get_by_role("button", name="Close").click()
    expect(bar).to_be_hidden()
    found = {row["name"]: row["messages"] for row in stock.api.get("/api/queues/%2F")}
    assert (found["bulk.a"], found["bulk.b"], found["bulk.c"]) == (0, 0, 3)


def test_a_queue_that_vanishes_meanwhile_is_reported(lists: Window, stock: Site) -> None:
    bar = _choose(lists, "bulk.a", "bulk.c")
    stock.api.done("DELETE", "/api/queues/%2F/bulk.a")
    dialog = _confirm(lists, bar, "Delete", 2)
    expect(dialog.get_by_role("status")).to_have_text("1 queue done, 1 refused.")
    expect(dialog.locator(".problem")).to_contain_text("bulk.a")
    dialog.get_by_role("button", name="Close").click()
    # What was refused stays chosen.
    expect(bar.get_by_role("status")).to_have_text("1 queue chosen")
    expect(_row(lists, "bulk.c")).to_be_hidden()
    assert stock.api.ask("GET", "/api/queues/%2F/bulk.c").status == 404


def test_messages_of_chosen_queues_are_moved(lists: Window, stock: Site) -> None:
    bar = _choose(lists, "bulk.a", "bulk.b")
    dialog = _confirm(lists, bar, "Move messages", 2, **{"To queue": "bulk.c"})
    expect(dialog.get_by_role("status")).to_have_text("2 queues done, 0 refused.")
    expect(dialog.get_by_text("3 messages moved")).to_have_count(2)
    assert stock.api.get("/api/queues/%2F/bulk.c")["messages"] == 9


def test_a_policy_is_set_for_chosen_queues_and_no_others(lists: Window, stock: Site) -> None:
    bar = _choose(lists, "bulk.a", 'quo"te, and comma')
    dialog = _confirm(
        lists,
        bar,
        "Set a policy",
        2,
        **{"Name of the policy": "few", "Settings": '{"max-length": 1000}'},
    )
    expect(dialog.get_by_text("the policy 'few' is in force")).to_have_count(2)
    rows = stock.api.get("/api/queues/%2F")
    assert {row["name"] for row in rows if row["policy"] == "few"} == {NAMES[0], NAMES[5]}
    dialog.get_by_role("button", name="Close").click()
    typed = {"Name of the policy": "few", "Settings": '{"max-length": 1}'}
    again = _confirm(lists, _choose(lists, "bulk.b"), "Set a policy", 1, **typed)
    expect(again.get_by_role("alert")).to_contain_text("There is a policy 'few' already")
    assert stock.api.get("/api/policies/%2F/few")["definition"] == {"max-length": 1000}
    stock.api.done("DELETE", "/api/policies/%2F/few")


def test_a_refused_policy_touches_no_queue(lists: Window) -> None:
    bar = _choose(lists, "bulk.a")
    typed = {"Name of the policy": "few", "Settings": '{"no-such": 1}'}
    dialog = _confirm(lists, bar, "Set a policy", 1, **typed)
    expect(dialog.get_by_role("alert")).to_contain_text("no-such")
    expect(dialog.get_by_role("button", name="Set a policy 1 queue")).to_be_enabled()


def test_all_queues_of_a_filter_are_chosen(lists: Window) -> None:
    lists.page.get_by_label("Filter", exact=True).fill("bulk.")
    lists.page.get_by_role("checkbox", name="Choose all 3 queues").check()
    bar = lists.page.get_by_role("group", name="Chosen")
    expect(bar.get_by_role("status")).to_have_text("3 queues chosen")
    bar.get_by_role("button", name="Choose none").click()
    expect(bar).to_be_hidden()


def test_a_long_name_is_cut_in_its_middle_and_whole_in_its_tooltip(lists: Window) -> None:
    link = lists.page.get_by_role("link", name=LONG, exact=True)
    expect(link).to_have_attribute("title", LONG)
    expect(link).to_have_text(LONG)
    wide = link.evaluate("each => each.getBoundingClientRect().width")
    link.locator(".left-out").evaluate("each => { each.className = '' }")
    assert wide < link.evaluate("each => each.getBoundingClientRect().width")


def test_chosen_columns_stay(lists: Window) -> None:
    page = lists.page
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_role("group", name="Columns").get_by_label("Trend").uncheck()
    expect(page.get_by_role("columnheader", name="Trend")).to_be_hidden()
    assert lists.barriers() == []
    with page.expect_request("**/api/queues?*") as asked:
        page.reload()
    # What is not shown is not asked for.
    assert "messages_trend" not in asked.value.url
    expect(page.get_by_role("columnheader", name="Age")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Trend")).to_be_hidden()


def test_a_saved_filter_is_used_again_and_forgotten(lists: Window) -> None:
    page = lists.page
    filtered = page.get_by_label("Filter", exact=True)
    filtered.fill("bulk")
    expect(page.get_by_text("3 queues")).to_be_visible()
    page.get_by_text("Saved filters").click()
    page.get_by_label("Save as").fill("the bulk")
    page.get_by_role("button", name="Save", exact=True).click()
    filtered.fill("")
    expect(page.get_by_text(f"{len(NAMES)} queues")).to_be_visible()
    page.get_by_role("button", name="the bulk", exact=True).click()
    expect(filtered).to_have_value("bulk")
    expect(page.get_by_text("3 queues")).to_be_visible()
    page.get_by_role("button", name="Forget the bulk").click()
    expect(page.get_by_role("button", name="the bulk", exact=True)).to_be_hidden()


def test_a_list_is_saved_as_csv_without_formulas(lists: Window) -> None:
    page = lists.page
    with page.expect_download() as begun:
        page.get_by_role("button", name="CSV").click()
    assert begun.value.suggested_filename == "queues.csv"
    lines = Path(begun.value.path()).read_text().splitlines()
    assert lines[0].startswith("Name,Vhost,Ready,")
    assert len(lines) == len(NAMES) + 1
    assert "'=formula,/,0," in lines[1]
    assert any(line.startswith('"quo""te, and comma",') for line in lines)


def test_favourites_are_above_the_list(lists: Window) -> None:
    star = lists.page.get_by_role("button", name="Favourite bulk.b", exact=True)
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    above = lists.page.locator(".favourites")
    expect(above.get_by_role("link", name="bulk.b")).to_be_visible()
    lists.page.reload()
    expect(above.get_by_role("link", name="bulk.b")).to_be_visible()
    star.click()
    expect(above).to_be_hidden()


@pytest.mark.parametrize("size", SIZES, ids=["390", "1440"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_list_fits_and_has_no_barriers(
    lists: Window, size: dict[str, int], theme: Theme
) -> None:
    lists.page.set_viewport_size(size)
    lists.page.emulate_media(color_scheme=theme)
    _choose(lists, "bulk.a")
    for opened in ("Columns", "Saved filters"):
        lists.page.locator("summary").filter(has_text=opened).click()
    assert lists.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert lists.barriers() == []


def test_the_badges_of_a_queue_are_whole_at_1440_pixels(lists: Window, stock: Site) -> None:
    rule = {"pattern": "^bulk.a$", "definition": {"max-length": 50}, "apply-to": "queues"}
    stock.api.done("PUT", "/api/policies/%2F/bounded", rule)
    lists.page.set_viewport_size(SIZES[1])
    lists.page.reload()
    badges = _row(lists, "bulk.a").locator(".badge")
    expect(badges).to_have_text(["classic", "bounded", "no consumers"])
    cut = "each => each.filter(({ scrollWidth: all, clientWidth: seen }) => all > seen).length"
    assert badges.evaluate_all(cut) == 0
    inside = """each => each.every((badge) => {
      const cell = badge.closest(".cell").getBoundingClientRect();
      return badge.getBoundingClientRect().right <= cell.right;
    })"""
    assert badges.evaluate_all(inside)
    stock.api.done("DELETE", "/api/policies/%2F/bounded")


def test_queues_are_purged_with_the_keyboard_alone(lists: Window, stock: Site) -> None:
    keys = lists.page.keyboard
    lists.page.get_by_role("checkbox", name="Choose bulk.a", exact=True).focus()
    keys.press("Space")
    lists.page.get_by_role("button", name="Purge…").focus()
    keys.press("Enter")
    lists.page.get_by_label("to confirm").focus()
    keys.type("1")
    keys.press("Enter")
    dialog = lists.page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_have_text("1 queue done, 0 refused.")
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    assert stock.api.get("/api/queues/%2F/bulk.a")["messages"] == 0


def _connected(stock: Site, name: str) -> pika.BlockingConnection:
    claims = {"connection_name": name}
    return pika.BlockingConnection(
        pika.ConnectionParameters(port=stock.broker.port, client_properties=claims)
    )


def test_connections_and_channels_are_found_by_the_name_of_the_client(
    lists: Window, stock: Site
) -> None:
    with _connected(stock, "payments") as one, _connected(stock, "mails") as other:
        one.channel()
        other.channel()
        for page, heading in (("connections", "Connections"), ("channels", "Channels")):
            lists.show(page, heading)
            expect(lists.page.get_by_role("link", name=re.compile("^mails"))).to_be_visible()
            lists.page.get_by_label("Filter", exact=True).fill("paym")
            expect(lists.page.get_by_text(re.compile("^1 "))).to_be_visible()
            expect(lists.page.get_by_role("link", name=re.compile("^payments"))).to_be_visible()
            assert lists.barriers() == []


def test_chosen_connections_are_closed(lists: Window, stock: Site) -> None:
    one, other = _connected(stock, "closing"), _connected(stock, "staying")
    lists.show("connections", "Connections")
    lists.page.get_by_label("Filter", exact=True).fill("closing")
    lists.page.get_by_role("checkbox", name="Choose all 1 connections").check()
    bar = lists.page.get_by_role("group", name="Chosen")
    bar.get_by_role("button", name="Close…").click()
    dialog = lists.page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("1")
    dialog.get_by_role("button", name="Close 1 connection").click()
    expect(dialog.get_by_role("status")).to_have_text("1 connection done, 0 refused.")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
        one.sleep(SECONDS)
    other.channel()
    other.close()


def test_a_stuck_consumer_is_said_to_be_stuck(lists: Window, stock: Site) -> None:
    """What the broker says after a minute is put into its answer; its own tests wait for that."""

    def answer(route: Route) -> None:
        found = route.fetch()
        text = found.text().replace('"stuck_seconds":null', '"stuck_seconds":90.0')
        route.fulfill(response=found, body=text)

    with _connected(stock, "hanging") as link:
        link.channel().basic_consume("bulk.a", lambda *_: None, consumer_tag="lazy")
        link.process_data_events(0)
        lists.page.route("**/api/channels?*", answer)
        lists.page.route("**/api/queues/%2F/bulk.a?*", answer)
        lists.show("channels", "Channels")
        row = lists.page.locator(".body .row").filter(has_text="hanging")
        expect(row.get_by_text("stuck 90 s")).to_have_attribute(
            "title", re.compile("^3 deliveries are not acknowledged")
        )
        lists.show("queues/%2F/bulk.a", "bulk.a")
        expect(lists.page.get_by_role("region", name="Consumers").first).to_contain_text(
            "stuck 90 s"
        )


def test_a_policy_is_edited_where_it_is_with_a_preview_of_what_changes(
    lists: Window, stock: Site
) -> None:
    rule = {"pattern": "^bulk", "definition": {"max-length": 50}, "apply-to": "queues"}
    stock.api.done("PUT", "/api/policies/%2F/edited", rule)
    page = lists.page
    lists.show("policies", "Policies")
    page.get_by_role("button", name="Edit edited").click()
    form = page.get_by_role("form", name="Edit edited")
    expect(form.get_by_label("Pattern")).to_be_focused()
    form.get_by_label("Pattern").fill("^bulk[.]a$")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_text("It would change 2.")).to_be_visible()
    changes = form.get_by_role("region", name="What would change").get_by_role("row")
    expect(changes.filter(has_text="bulk.")).to_have_count(2)
    expect(changes.filter(has_text="bulk.c")).to_contain_text("no policy")
    # Nothing is set before that is asked for.
    assert stock.api.get("/api/policies/%2F/edited")["pattern"] == "^bulk"
    picker = form.get_by_role("group", name="Picker")
    picker.get_by_label("Key").fill("overflow")
    picker.get_by_label("Value").fill("reject-publish")
    picker.get_by_role("button", name="Add").click()
    assert lists.barriers() == []
    form.get_by_role("button", name="Set").click()
    expect(form).to_be_hidden()
    found = stock.api.get("/api/policies/%2F/edited")
    assert found["pattern"] == "^bulk[.]a$"
    assert found["definition"] == {"max-length": 50, "overflow": "reject-publish"}
    stock.api.done("DELETE", "/api/policies/%2F/edited")


def test_a_queue_is_declared_with_arguments_that_are_picked(lists: Window, stock: Site) -> None:
    lists.page.get_by_text("New queue").click()
    form = lists.page.get_by_role("form", name="New queue")
    form.get_by_label("Name", exact=True).fill("picked")
    picker = form.get_by_role("group", name="Picker")
    for name, value in (("x-max-length", "7"), ("x-overflow", "reject-publish")):
        picker.get_by_label("Key").fill(name)
        picker.get_by_label("Value").fill(value)
        lists.page.keyboard.press("Enter")
    form.get_by_role("button", name="Declare").click()
    expect(form.get_by_role("status")).to_have_text("Queue 'picked' is there.")
    arguments = stock.api.get("/api/queues/%2F/picked")["arguments"]
    assert arguments["x-max-length"] == 7
    assert arguments["x-overflow"] == "reject-publish"
    stock.api.done("DELETE", "/api/queues/%2F/picked")
