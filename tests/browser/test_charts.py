"""Charts of one page have the same range, and show nothing from before the broker started."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, expect

from harebell.client import blocking
from tests.browser.browsing import window
from tests.patience import eventually
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api

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


_CURSORS = """() => [...document.querySelectorAll('.chart .u-cursor-x')].map(each =>
  [getComputedStyle(each).visibility, new DOMMatrix(getComputedStyle(each).transform).e])"""
_DRAWN = """name => {
  const wanted = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [red, green, blue] = wanted.match(/[0-9a-f]{2}/gi).map(part => parseInt(part, 16));
  return [...document.querySelectorAll('.chart canvas')].map(canvas => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
      found += data[at] === red && data[at + 1] === green && data[at + 2] === blue;
    }
    return found;
  });
}"""
"""How many pixels of each chart have a colour of the page."""


def test_charts_of_a_page_share_a_crosshair_and_show_limits_and_marks(browser: Browser) -> None:
    port = free_port()
    with (
        running_broker("--management-port", str(port)) as broker,
        window(browser, f"http://127.0.0.1:{port}") as opened,
    ):
        api, page = Api(port), opened.page
        api.done("PUT", "/api/queues/%2F/bounded", {"arguments": {"x-max-length": 20}})
        rule = {"pattern": "^bounded$", "definition": {"message-ttl": 60_000}}
        api.done("PUT", "/api/policies/%2F/short", rule)
        with blocking.connect(broker.address() + "/%2F") as connection:
            connection.channel().publish_many([b"x"] * 10, routing_key="bounded")
        opened.enter()
        opened.show("queues/%2F/bounded", "bounded")
        expect(page.locator(".chart .plot")).to_have_count(3)
        expect(page.get_by_text("max-length 20")).to_be_visible()
        expect(page.get_by_text("message-ttl 60 s")).to_be_visible()
        marks = page.get_by_role("list", name="Marks")
        expect(marks).to_contain_text("policy 'short' set by guest")
        expect(marks).to_contain_text("has started")
        # The lengths and the ages have a limit, and the rates have none.
        assert eventually(
            lambda: [n > 100 for n in page.evaluate(_DRAWN, "--bad")][:2] == [True, False]
        )
        page.locator(".chart .plot").first.hover(position={"x": 200, "y": 60})
        cursors = page.evaluate(_CURSORS)
        assert len(cursors) == 3
        assert len({tuple(each) for each in cursors}) == 1
        assert cursors[0][1] > 0
        assert opened.barriers() == []
        assert opened.complaints == []
