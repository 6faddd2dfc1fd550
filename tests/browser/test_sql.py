"""The page that asks queues with SQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from harebell.client.blocking import connect
from tests.browser.browsing import Window
from tests.browser.traffic import Site

ENDLESS = "SELECT count(*) FROM " + ", ".join(
    f"queue('asked.often') AS {name}" for name in "abcdef"
)


@pytest.fixture
def asking(shown: Window, site: Site) -> Iterator[Window]:
    """The page, and a queue with messages."""
    with connect(f"{site.broker.address()}/%2F") as connection:
        channel = connection.channel()
        channel.declare_queue("asked.often")
        channel.publish_many([b"x"] * 60, routing_key="asked.often")
    shown.show("sql", "SQL")
    yield shown
    site.api.ask("DELETE", "/api/queues/%2F/asked.often")


def test_a_question_is_typed_with_suggestions_and_answered_as_a_table_and_a_chart(
    asking: Window,
) -> None:
    page = asking.page
    field = page.get_by_role("textbox", name="Question")
    field.press_sequentially("SELECT routing_key, count(*) AS n FROM queue('asked.o")
    suggestions = page.get_by_role("listbox", name="Suggestions")
    expect(suggestions.get_by_role("option").first).to_have_text("asked.often")
    assert asking.barriers() == []
    field.press("ArrowDown")
    expect(suggestions.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(suggestions).to_have_count(0)
    field.press_sequentially("') GROUP BY routing_k")
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value(
        "SELECT routing_key, count(*) AS n FROM queue('asked.often') GROUP BY routing_key"
    )
    field.press("Control+Enter")
    rows = page.get_by_role("region", name="Rows")
    expect(rows).to_contain_text("asked.often")
    chart = page.get_by_role("button", name="Chart")
    chart.press("Enter")
    expect(page.get_by_role("region", name="Chart").locator("rect").first).to_be_visible()
    asking.unfold()
    assert asking.barriers() == []
    page.set_viewport_size({"width": 390, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_mistake_names_its_place_and_the_question_stays(asking: Window) -> None:
    page = asking.page
    field = page.get_by_role("textbox", name="Question")
    field.fill("SELECT nope FROM queue('asked.often')")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column 8: there is no column 'nope'")
    expect(field).to_have_value("SELECT nope FROM queue('asked.often')")


def test_a_question_is_cancelled_and_the_last_ones_are_there_again(asking: Window) -> None:
    page = asking.page
    page.get_by_role("textbox", name="Question").fill(ENDLESS)
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("the question was cancelled")
    page.get_by_role("textbox", name="Question").fill("SELECT 1 AS one")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Rows")).to_contain_text("one")
    page.reload()
    page.get_by_text("Last questions").click()
    page.get_by_role("button", name=ENDLESS).click()
    expect(page.get_by_role("textbox", name="Question")).to_have_value(ENDLESS)
    page.get_by_role("button", name="Forget them").click()
    expect(page.get_by_text("Last questions")).to_have_count(0)


def test_each_example_is_a_question_that_can_be_asked(asking: Window) -> None:
    page = asking.page
    examples = page.locator("section[aria-labelledby=examples]").get_by_role("button")
    field = page.get_by_role("textbox", name="Question")
    expect(examples).to_have_count(3)
    for statement in examples.all_inner_texts():
        examples.filter(has_text=statement).click()
        expect(field).to_have_value(statement)
        page.get_by_role("button", name="Ask").click()
        expect(
            page.get_by_role("region", name="Rows").or_(page.get_by_text("No row."))
        ).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        field.fill("")
