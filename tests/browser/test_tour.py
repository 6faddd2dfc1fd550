"""A tour of the web interface: from the overview to what becomes of one message.

With HAREBELL_SCREENSHOTS=1 the animated picture of the README is taken again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from tests.browser.animated import animated, chunks
from tests.browser.browsing import window
from tests.browser.test_pages import PICTURES, TAKES_PICTURES
from tests.browser.traffic import Site

VIEW = {"width": 1120, "height": 700}
TOUR = PICTURES / "tour.png"
TOUR_BYTES = 640_000
SHOWN_MS = 2200
CHARTS_MS = 30_000
"""Until charts of a minute have something to show."""


def _overview(page: Page) -> None:
    expect(page.get_by_text("Messages per second")).to_be_visible()
    page.get_by_label("Range").select_option(label="1 minute")
    if TAKES_PICTURES:
        page.wait_for_timeout(CHARTS_MS)


def _queues(page: Page) -> None:
    page.get_by_role("link", name="Queues").click()
    expect(page.get_by_role("link", name="orders.eu")).to_be_visible()


def _queue(page: Page) -> None:
    page.get_by_role("link", name="orders.us").click()
    expect(page.get_by_role("heading", name="Messages per second")).to_be_visible()
    page.get_by_label("Range").select_option(label="1 minute")


def _messages(page: Page) -> None:
    page.get_by_text("Browse without consuming").click()
    form = page.get_by_role("form", name="Browse")
    form.get_by_role("button", name="Browse").click()
    page.locator(".messages tbody button[aria-expanded]").first.click()
    opened = page.locator(".messages .opened")
    expect(opened).to_contain_text("currency")
    opened.evaluate("it => it.scrollIntoView({ block: 'center' })")


def _topology(page: Page) -> None:
    page.get_by_role("link", name="Topology").first.click()
    expect(page.locator(".picture .node").first).to_be_visible()


def _explain(page: Page) -> None:
    page.evaluate("location.hash = '#/explain/%2F/orders/eu.order.created'")
    page.get_by_role("button", name="Explain").click()
    verdict = page.get_by_text("It reaches 2 queues.")
    expect(verdict).to_be_visible()
    verdict.evaluate("it => it.scrollIntoView({ block: 'center' })")


def _dark(page: Page) -> None:
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("button", name="Account").click()
    page.get_by_label("Colours").select_option("dark")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Messages per second")).to_be_visible()


STEPS: tuple[Callable[[Page], None], ...] = (
    *(_overview, _queues, _queue, _messages, _topology, _explain, _dark),
)


def test_the_tour_goes_from_the_overview_to_what_becomes_of_one_message(
    browser: Browser, site: Site
) -> None:
    frames = []
    with window(browser, site.base, viewport=VIEW, device_scale_factor=1) as opened:
        opened.enter()
        for step in STEPS:
            step(opened.page)
            opened.page.wait_for_timeout(1500 if TAKES_PICTURES else 0)
            frames.append((opened.page.screenshot(), SHOWN_MS))
        assert opened.complaints == []
    made = animated(frames)
    kinds = [kind for kind, _ in chunks(made)]
    assert kinds.count(b"fcTL") == len(STEPS)
    if TAKES_PICTURES:
        TOUR.write_bytes(made)


def test_the_picture_of_the_tour_is_small_and_has_all_its_steps() -> None:
    tour = TOUR.read_bytes()
    assert len(tour) <= TOUR_BYTES
    (shown,) = (data for kind, data in chunks(tour) if kind == b"acTL")
    assert struct.unpack(">II", shown) == (len(STEPS), 0)
