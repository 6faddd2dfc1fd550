"""When the web interface is first painted: `python -m bench.first_paint [QUEUES]`.

A real browser opens the overview of a broker with that many queues, again and again, without
anything in its cache. Printed is the least and the median of the milliseconds from the start of the
navigation to the first contents, and to the first figures of the broker.
"""

from __future__ import annotations

import statistics
import sys

from playwright.sync_api import Page, sync_playwright

from tests.browser.browsing import launched, window
from tests.browser.traffic import serving

_QUEUES = 10_000
_OPENINGS = 20
_WATCH = """() => {
  const look = () => {
    if (document.querySelector('main .tiles dd')) globalThis.figuresAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
}"""
_MOMENTS = """() => new Promise((done) => {
  const look = () => {
    const [painted] = performance.getEntriesByName('first-contentful-paint');
    if (painted && globalThis.figuresAt) done([painted.startTime, figuresAt]);
    else setTimeout(look, 10);
  };
  look();
})"""


def _opening(page: Page) -> list[float]:
    page.reload(wait_until="load")
    moments: list[float] = page.evaluate(_MOMENTS)
    return moments


def main(queues: int) -> None:
    """Open the overview, and print a line for each of the two moments."""
    with sync_playwright() as tool, serving() as site:
        browser = launched(tool)
        rest = {"vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}
        rows = [{"name": f"queue {number:05}", **rest} for number in range(queues)]
        site.api.done("POST", "/api/definitions", {"queues": rows})
        with window(browser, site.base) as opened:
            opened.page.add_init_script(f"({_WATCH})()")
            opened.enter()
            session = opened.page.context.new_cdp_session(opened.page)
            session.send("Network.setCacheDisabled", {"cacheDisabled": True})
            moments = zip(*(_opening(opened.page) for _ in range(_OPENINGS)), strict=True)
            for name, taken in zip(("first contents", "first figures"), moments, strict=True):
                print(f"{name:15} {min(taken):6.0f} ms {statistics.median(taken):6.0f} ms")
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _QUEUES)
