"""Thousands of queues scroll without a pause."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import window, worked_ms
from tests.browser.traffic import Site, serving

QUEUES = 10_000
ROWS_MAX = 60
FRAMES = 200
PAUSE_MS = 50
"""What browsers call a long task."""
_SCROLL = """async () => {
  const view = document.querySelector('.tall');
  for (let at = 0; at <= view.scrollHeight; at += 1500) {
    view.scrollTop = at;
    await new Promise(requestAnimationFrame);
  }
  view.scrollTop = view.scrollHeight;
}"""


@pytest.fixture(scope="module")
def crowded() -> Iterator[Site]:
    with serving() as site:
        rest = {"vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}
        queues = [{"name": f"queue {number:05}", **rest} for number in range(QUEUES)]
        site.api.done("POST", "/api/definitions", {"queues": queues})
        yield site


def test_10000_queues_scroll_without_a_pause(browser: Browser, crowded: Site) -> None:
    with window(browser, crowded.base) as opened:
        opened.enter()
        page = opened.page
        opened.show("queues", "Queues")
        expect(page.get_by_text("10,000 queues")).to_be_visible()
        expect(page.get_by_role("link", name="queue 00000")).to_be_visible()
        with worked_ms(page) as tasks:
            page.evaluate(_SCROLL)
            expect(page.get_by_role("link", name="queue 09999")).to_be_visible()
            # The rows in view are asked for again, and drawn.
            with page.expect_response("**/api/queues?*"):
                pass
            page.evaluate("new Promise(resolve => setTimeout(resolve, 500))")
        assert len(tasks) > FRAMES
        assert tasks[0] < PAUSE_MS, tasks[:10]
        assert page.locator(".body .row").count() < ROWS_MAX
        page.get_by_label("Filter").fill("queue 0123")
        expect(page.get_by_text("10 queues")).to_be_visible()
        expect(page.get_by_role("link", name="queue 01239")).to_be_visible()
        assert opened.complaints == []
