"""The picture of a vhost: all bindings, bundles of them, rates and zoom."""

from __future__ import annotations

from playwright.sync_api import Browser, Route, expect

from tests.browser.browsing import window
from tests.browser.traffic import serving

KEYS = 700


def _busy(route: Route) -> None:
    """A rate of one moment would be gone before the page asks for it."""
    found = route.fetch()
    route.fulfill(response=found, body=found.text().replace('"rate":0.0', '"rate":12.5'))


def test_many_bindings_are_read_bundled_and_zoomed(browser: Browser) -> None:
    with serving("--collect-statistics-interval", "1000") as site:
        names = {"source": "hub", "vhost": "/", "destination": "all", "destination_type": "queue"}
        rest = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
        site.api.done(
            "POST",
            "/api/definitions",
            {
                "exchanges": [{"name": "hub", "type": "topic", "internal": False, **rest}],
                "queues": [{"name": "all", **rest}],
                "bindings": [
                    {**names, "routing_key": f"key.{number:04}", "arguments": {}}
                    for number in range(KEYS)
                ],
            },
        )
        with window(browser, site.base) as opened:
            page = opened.page
            page.route("**/api/exchanges/%2F?*", _busy)
            opened.enter()
            opened.show("topology", "Topology")
            picture = page.get_by_role("region", name="Picture")
            edges = picture.locator(".edge")
            expect(edges).to_have_count(1)
            expect(edges.locator("text")).to_have_text(f"key.0000 +{KEYS - 1}")
            expect(picture.locator(".node.exchange")).to_contain_text("exchange, topic, 12.5/s")
            expect(page.locator("main")).not_to_contain_text("Read:")
            svg = picture.locator("svg")
            wide = svg.evaluate("each => each.getBoundingClientRect().width")
            zoom = page.get_by_role("group", name="Zoom")
            zoom.get_by_role("button", name="Larger").click()
            expect(zoom.get_by_role("status")).to_have_text("125 %")
            assert svg.evaluate("each => each.getBoundingClientRect().width") > wide
            zoom.get_by_role("button", name="Fit").click()
            assert svg.evaluate("each => each.getBoundingClientRect().width") <= wide
            assert opened.barriers() == []
            assert opened.complaints == []
