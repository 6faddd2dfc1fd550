"""Charts of one page have the same range, and show nothing from before the broker started."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, expect

from tests.browser.browsing import window
from tests.patience import eventually
from tests.ports import free_port
from tests.running import running_broker

_AXES = """() => [...document.querySelectorAll('.chart .plot')].map(plot => plot.dataset.range)"""
_POINTS = """async () => {
  const user = JSON.parse(sessionStorage.getItem('harebell.login'));
  const answer = await fetch('api/overview?lengths_age=600&lengths_incr=5',
    {headers: {authorization: user.authorization}});
  const totals = (await answer.json()).queue_totals;
  return totals.messages_details.samples.map(each => each.timestamp);
}"""


def test_all_charts_of_a_page_have_one_range_and_nothing_from_before_the_start(
    browser: Browser,
) -> None:
    port = free_port()
    before = time.time() * 1000
    with (
        running_broker("--management-port", str(port)),
        window(browser, f"http://127.0.0.1:{port}") as opened,
    ):
        opened.enter()
        opened.show("overview", "Overview")
        expect(opened.page.locator(".chart .plot")).to_have_count(6)
        assert eventually(lambda: len(opened.page.evaluate(_POINTS)) > 1)
        points = opened.page.evaluate(_POINTS)
        assert min(points) >= before
        # Every point has the time of a pass, and these are at multiples of five seconds.
        assert all(point % 5_000 < 4_000 for point in points[:-1])
        ranges = opened.page.evaluate(_AXES)
        assert len(set(ranges)) == 1
        start, end = map(float, ranges[0].split())
        assert end - start == 600
        assert opened.complaints == []
