"""Thousands of queues scroll without a pause: each step draws and asks for what is in view."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import window
from tests.browser.traffic import Site, serving

QUEUES = 10_000
ROWS_MAX = 60
FRAMES = 200
FIRST_PAGE_BYTES = 120_000
"""Transferred until the overview has all it shows, with the answers of the broker."""
PAGE_ROWS = 100
"""Rows per answer."""
_SCROLL = """async () => {
  const view = document.querySelector('.tall');
  const work = { frames: 0, made: 0, most: 0 };
  const watch = new MutationObserver((changes) => {
    for (const each of changes) work.made += each.addedNodes.length;
  });
  const body = view.querySelector('.body');
  watch.observe(body, { childList: true });
  for (let at = 0; at <= view.scrollHeight; at += 1500) {
    view.scrollTop = at;
    await new Promise(requestAnimationFrame);
    work.frames += 1;
    work.most = Math.max(work.most, body.querySelectorAll('.row').length);
  }
  view.scrollTop = view.scrollHeight;
  watch.disconnect();
  return work;
}"""


@pytest.fixture(scope="module")
def crowded() -> Iterator[Site]:
    with serving() as site:
        rest = {"vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}
        queues = [{"name": f"queue {number:05}", **rest} for number in range(QUEUES)]
        site.api.done("POST", "/api/definitions", {"queues": queues})
        yield site


def test_the_first_page_of_10000_queues_is_small_and_asks_for_no_list_of_them(
    browser: Browser, crowded: Site
) -> None:
    with window(browser, crowded.base) as opened:
        asked: list[str] = []
        opened.page.on("request", lambda made: asked.append(made.url))
        session = opened.page.context.new_cdp_session(opened.page)
        session.send("Network.enable")
        sizes: list[float] = []
        session.on("Network.loadingFinished", lambda end: sizes.append(end["encodedDataLength"]))
        opened.enter()
        expect(opened.page.get_by_text("10,000", exact=True)).to_be_visible()
        expect(opened.page.locator(".chart canvas")).to_have_count(6)
        assert sum(sizes) <= FIRST_PAGE_BYTES
        assert [url for url in asked if "/api/queues" in url] == []


def test_10000_queues_scroll_without_a_pause(browser: Browser, crowded: Site) -> None:
    with window(browser, crowded.base) as opened:
        opened.enter()
        page = opened.page
        opened.show("queues", "Queues")
        expect(page.get_by_text("10,000 queues")).to_be_visible()
        expect(page.get_by_role("link", name="queue 00000")).to_be_visible()
        asked: list[str] = []
        page.on("request", lambda made: asked.append(made.url))
        work = page.evaluate(_SCROLL)
        expect(page.get_by_role("link", name="queue 09999")).to_be_visible()
        # The rows in view are asked for again, and drawn.
        with page.expect_response("**/api/queues?*"):
            pass
        assert work["frames"] > FRAMES
        assert 0 < work["most"] < ROWS_MAX
        assert work["made"] < ROWS_MAX * work["frames"]
        asked = [url for url in asked if "/api/queues?" in url]
        assert len(asked) <= work["frames"]
        assert all(f"page_size={PAGE_ROWS}&" in url for url in asked), asked
        page.get_by_label("Filter").fill("queue 0123")
        expect(page.get_by_text("10 queues")).to_be_visible()
        expect(page.get_by_role("link", name="queue 01239")).to_be_visible()
        assert opened.complaints == []


def test_a_reload_and_the_way_back_find_the_row_again(browser: Browser, crowded: Site) -> None:
    with window(browser, crowded.base) as opened:
        opened.enter()
        page = opened.page
        opened.show("queues", "Queues")
        expect(page.get_by_role("link", name="queue 00000")).to_be_visible()
        page.locator(".tall").evaluate("each => { each.scrollTop = 36 * 5000 }")
        wanted = page.get_by_role("link", name="queue 05003")
        expect(wanted).to_be_visible()
        expect(page).to_have_url(re.compile("row=5001$"))
        asked: list[str] = []
        page.on("request", lambda made: asked.append(made.url))
        page.reload()
        expect(wanted).to_be_in_viewport()
        # The pages before it were not asked for.
        assert [url for url in asked if "?page=1&" in url] == []
        wanted.click()
        expect(page.locator("h1")).to_contain_text("queue 05003")
        page.go_back()
        expect(wanted).to_be_in_viewport()
        page.get_by_label("Filter").fill("queue 0123")
        expect(page.get_by_role("link", name="queue 01230")).to_be_in_viewport()
        expect(page).to_have_url(re.compile("filter=queue.0123$"))
        assert opened.complaints == []


@pytest.mark.parametrize("row", ["99999999", "-5", "none", "1e300"])
def test_a_row_that_the_list_has_not_is_the_nearest_one(
    browser: Browser, crowded: Site, row: str
) -> None:
    with window(browser, crowded.base) as opened:
        opened.enter()
        opened.show(f"queues?row={row}", "Queues")
        name = "queue 09999" if row in ("99999999", "1e300") else "queue 00000"
        expect(opened.page.get_by_role("link", name=name)).to_be_in_viewport()
        assert opened.complaints == []
