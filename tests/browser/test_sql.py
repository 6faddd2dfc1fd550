"""The page that asks queues with SQL."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Window
from tests.browser.traffic import Site

ENDLESS = "SELECT count(*) FROM " + ", ".join(f"queue('orders.eu') AS {name}" for name in "abcdef")


@pytest.fixture
def asking(shown: Window) -> Window:
    shown.show("sql", "SQL")
    return shown


def test_a_question_is_typed_with_suggestions_and_answered_as_a_table_and_a_chart(
    asking: Window, site: Site
) -> None:
    page = asking.page
    field = page.get_by_label("Question", exact=True)
    field.press_sequentially("SELECT routing_key, count(*) AS n FROM queue('orders.e")
    suggestions = page.get_by_role("listbox", name="Suggestions")
    expect(suggestions.get_by_role("option").first).to_have_text("orders.eu")
    assert asking.barriers() == []
    field.press("ArrowDown")
    expect(suggestions.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(suggestions).to_have_count(0)
    field.press_sequentially("') GROUP BY routing_k")
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value(
        "SELECT routing_key, count(*) AS n FROM queue('orders.eu') GROUP BY routing_key"
    )
    field.press("Control+Enter")
    rows = page.get_by_role("region", name="Rows")
    expect(rows).to_contain_text("eu.order.created")
    chart = page.get_by_role("button", name="Chart")
    chart.press("Enter")
    expect(page.get_by_role("region", name="Chart").locator("rect").first).to_be_visible()
    asking.unfold()
    assert asking.barriers() == []
    page.set_viewport_size({"width": 390, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_mistake_names_its_place_and_the_question_stays(asking: Window) -> None:
    page = asking.page
    field = page.get_by_label("Question", exact=True)
    field.fill("SELECT nope FROM queue('orders.eu')")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column 8: there is no column 'nope'")
    expect(field).to_have_value("SELECT nope FROM queue('orders.eu')")


def test_a_question_is_cancelled_and_the_last_ones_are_there_again(asking: Window) -> None:
    page = asking.page
    page.get_by_label("Question", exact=True).fill(ENDLESS)
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("the question was cancelled")
    page.get_by_label("Question", exact=True).fill("SELECT 1 AS one")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Rows")).to_contain_text("one")
    page.reload()
    page.get_by_text("Last questions").click()
    page.get_by_role("button", name=ENDLESS).click()
    expect(page.get_by_label("Question", exact=True)).to_have_value(ENDLESS)
    page.get_by_role("button", name="Forget them").click()
    expect(page.get_by_text("Last questions")).to_have_count(0)
