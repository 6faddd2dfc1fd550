"""Thousands of queues scroll without a pause."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import window
from tests.browser.traffic import Site, serving

QUEUES = 10_000
ROWS_MAX = 60
PAUSE_MS = 400
"""The machine may be busy with other tests; alone it has no task of 50 ms."""
_WATCH = """() => {
  window.pauses = [];
  new PerformanceObserver(list => list.getEntries().forEach(each => pauses.push(each.duration)))
    .observe({type: 'longtask'});
}"""
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
        page.evaluate(_WATCH)
        page.evaluate(_SCROLL)
        expect(page.get_by_role("link", name="queue 09999")).to_be_visible()
        assert page.locator(".body .row").count() < ROWS_MAX
        pauses = page.evaluate("window.pauses")
        assert max(pauses, default=0) < PAUSE_MS, pauses
        page.get_by_label("Filter").fill("queue 0123")
        expect(page.get_by_text("10 queues")).to_be_visible()
        expect(page.get_by_role("link", name="queue 01239")).to_be_visible()
        assert opened.complaints == []
