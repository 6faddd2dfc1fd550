"""What a page is before it has anything to show: loading, empty, or not to be had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving

EMPTY = {
    "queues": "harebell queues declare orders",
    "streams": "harebell queues declare events --type stream",
    "connections": "harebell publish -r orders hello",
    "channels": "harebell consume -q orders",
    "pipelines": "harebell pipeline run sales.yaml",
    "policies": "harebell policies set",
    "limits": "harebell limits set --vhost",
}
"""The command that fills each page of a new broker."""
REQUESTS_MAX = 60
"""Of scripts, styles and rows until the overview of a new broker is there."""


@pytest.fixture(scope="module")
def new() -> Iterator[Site]:
    """A broker that has nothing yet."""
    with serving() as site:
        yield site


@pytest.fixture
def opened(browser: Browser, new: Site) -> Iterator[Window]:
    with window(browser, new.base) as found:
        yield found
        assert found.complaints == []


@pytest.mark.parametrize("path", EMPTY)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_empty_page_says_what_it_is_for_and_which_command_fills_it(
    opened: Window, path: str, theme: str
) -> None:
    opened.enter()
    opened.account().get_by_label("Colours").select_option(theme)
    opened.page.keyboard.press("Escape")
    opened.show(path, path.capitalize())
    expect(opened.page.locator(".nothing code").first).to_contain_text(EMPTY[path])
    assert opened.barriers() == []


def test_the_overview_loads_no_script_of_other_pages_in_few_requests(opened: Window) -> None:
    asked: list[str] = []
    opened.page.on("request", lambda made: asked.append(made.url))
    opened.enter()
    expect(opened.page.get_by_text("Messages per second")).to_be_visible()
    assert len(asked) <= REQUESTS_MAX, asked
    assert [url for url in asked if "/pages/queues.js" in url] == []
    opened.show("queues", "Queues")
    assert len([url for url in asked if "/pages/queues.js" in url]) == 1
    opened.show("overview", "Overview")
    opened.show("queues", "Queues")
    assert len([url for url in asked if "/pages/queues.js" in url]) == 1


def test_a_page_that_is_not_known_yet_has_a_place(opened: Window) -> None:
    opened.enter()
    opened.page.route("**/api/users/guest*", lambda _: None)
    opened.show("users/guest", "guest")
    waiting = opened.page.get_by_role("status").filter(has_text="Loading…")
    expect(waiting).to_be_visible()
    assert opened.barriers() == []


def test_a_script_that_cannot_be_loaded_is_said_to_be_and_a_reload_brings_it(
    opened: Window,
) -> None:
    page = opened.page
    opened.enter()
    # As after an update of the broker, whose scripts have other addresses.
    page.route("**/pages/streams.js", lambda made: made.fulfill(status=404))
    page.get_by_role("link", name="Streams").click()
    problem = page.locator("main").get_by_role("alert")
    expect(problem).to_contain_text("The script of this page could not be loaded.")
    page.unroute("**/pages/streams.js")
    problem.get_by_role("button", name="Try again").click()
    expect(page.locator("h1")).to_have_text("Streams")
