"""The list of exchanges: acts on many at once, favourites, and what vanished meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving
from tests.unit.management.http.asking import segment

NAMES = ("shop.a", "shop.b", "<b>shop.c</b>")
BOUND = NAMES[0]


@pytest.fixture(scope="module")
def stock() -> Iterator[Site]:
    with serving() as site:
        yield site


@pytest.fixture
def lists(browser: Browser, stock: Site) -> Iterator[Window]:
    """The list of exchanges, to one of which a queue is bound."""
    for name in NAMES:
        stock.api.done("PUT", f"/api/exchanges/%2F/{segment(name)}", {"type": "fanout"})
    stock.api.done("PUT", "/api/queues/%2F/bound", {})
    stock.api.done("POST", f"/api/bindings/%2F/e/{BOUND}/q/bound", {})
    with window(browser, stock.base) as opened:
        opened.enter()
        opened.show("exchanges", "Exchanges")
        yield opened
        assert opened.complaints == []
        assert opened.dialogs == []


def _choose(lists: Window, *names: str) -> Locator:
    for name in names:
        lists.page.get_by_role("checkbox", name=f"Choose {name}", exact=True).check()
    return lists.page.get_by_role("group", name="Chosen")


def _confirmed(bar: Locator, button: str, number: int, **typed: str) -> Locator:
    bar.get_by_role("button", name=f"{button}…").click()
    dialog = bar.page.get_by_role("dialog")
    for label, text in typed.items():
        dialog.get_by_label(label).fill(text)
    dialog.get_by_label("to confirm").fill(str(number))
    return dialog


def _names(stock: Site) -> set[str]:
    return {row["name"] for row in stock.api.get("/api/exchanges/%2F")}


def test_chosen_exchanges_are_deleted_after_a_preview(lists: Window, stock: Site) -> None:
    bar = _choose(lists, *NAMES)
    expect(bar.get_by_role("status")).to_have_text("3 exchanges chosen")
    dialog = _confirmed(bar, "Delete", 3)
    expect(dialog.get_by_role("row").filter(has_text="shop.")).to_have_count(3)
    assert lists.barriers() == []
    dialog.get_by_role("button", name="Delete 3 exchanges").dblclick()
    expect(dialog.get_by_role("status")).to_have_text("3 exchanges done, 0 refused.")
    assert lists.barriers() == []
    dialog.get_by_role("button", name="Close").click()
    expect(bar).to_be_hidden()
    assert _names(stock).isdisjoint(NAMES)


def test_an_exchange_in_use_a_vanished_and_a_reserved_one_are_each_reported(
    lists: Window, stock: Site
) -> None:
    bar = _choose(lists, *NAMES, "amq.topic", "(default exchange)")
    stock.api.done("DELETE", "/api/exchanges/%2F/shop.b")
    dialog = _confirmed(bar, "Delete", 5)
    dialog.get_by_label("Which").select_option("those to which nothing is bound")
    dialog.get_by_role("button", name="Delete 5 exchanges").click()
    expect(dialog.get_by_role("status")).to_have_text("1 exchange done, 4 refused.")
    outcomes = dialog.get_by_role("region", name="What came of each").get_by_role("row")
    for name, outcome in (
        (BOUND, "in use"),
        ("shop.b", "no exchange 'shop.b'"),
        ("amq.topic", "amq.topic"),
        ("(default exchange)", "default exchange"),
        (NAMES[2], "deleted"),
    ):
        expect(outcomes.filter(has_text=name).first).to_contain_text(outcome)
    assert {BOUND, "amq.topic"} <= _names(stock)
    assert NAMES[2] not in _names(stock)
    # What was refused stays chosen.
    dialog.get_by_role("button", name="Close").click()
    expect(bar.get_by_role("status")).to_have_text("4 exchanges chosen")


def test_a_policy_is_set_for_chosen_exchanges_and_no_others(lists: Window, stock: Site) -> None:
    bar = _choose(lists, *NAMES[1:])
    typed = {"Name of the policy": "unrouted", "Settings": '{"alternate-exchange": "amq.fanout"}'}
    dialog = _confirmed(bar, "Set a policy", 2, **typed)
    dialog.get_by_role("button", name="Set a policy 2 exchanges").click()
    expect(dialog.get_by_text("the policy 'unrouted' is in force")).to_have_count(2)
    rows = stock.api.get("/api/exchanges/%2F")
    assert {row["name"] for row in rows if row["policy"] == "unrouted"} == set(NAMES[1:])
    stock.api.done("DELETE", "/api/policies/%2F/unrouted")


def test_all_exchanges_of_a_filter_are_chosen_with_the_keyboard_alone(lists: Window) -> None:
    lists.page.get_by_label("Filter", exact=True).fill("shop.")
    every = lists.page.get_by_role("checkbox", name="Choose all 3 exchanges")
    every.focus()
    lists.page.keyboard.press("Space")
    bar = lists.page.get_by_role("group", name="Chosen")
    expect(bar.get_by_role("status")).to_have_text("3 exchanges chosen")
    bar.get_by_role("button", name="Delete…").focus()
    lists.page.keyboard.press("Enter")
    lists.page.keyboard.press("Escape")
    expect(lists.page.get_by_role("dialog")).to_be_hidden()


def test_favourite_exchanges_are_above_the_list_and_not_above_that_of_queues(
    lists: Window,
) -> None:
    star = lists.page.get_by_role("button", name="Favourite shop.b", exact=True)
    star.click()
    above = lists.page.locator(".favourites")
    expect(above.get_by_role("link", name="shop.b")).to_be_visible()
    lists.show("queues", "Queues")
    expect(lists.page.get_by_text(re.compile(r"^1 queue"))).to_be_visible()
    expect(above).to_be_hidden()
    lists.show("exchanges", "Exchanges")
    above.get_by_role("link", name="shop.b").click()
    expect(lists.page.locator("h1")).to_have_text("shop.b")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_list_fits_and_has_no_barriers(lists: Window, width: int) -> None:
    lists.page.set_viewport_size({"width": width, "height": 844})
    _choose(lists, BOUND)
    assert lists.page.evaluate("document.documentElement.scrollWidth") <= width
    assert lists.barriers() == []
