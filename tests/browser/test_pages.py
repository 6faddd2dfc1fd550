"""Every page of the web interface, light and dark, wide and on a phone.

With HAREBELL_SCREENSHOTS=1 the pictures of docs/images/web are taken again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.animated import packed
from tests.browser.browsing import Window, window, worked_ms
from tests.browser.traffic import Site
from tests.patience import eventually
from tests.unit.management.http.asking import segment

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images" / "web"
TAKES_PICTURES = bool(os.environ.get("HAREBELL_SCREENSHOTS"))
PHONES = (360, 390)
"""Widths of phones."""
WIDE = {"width": 1440, "height": 900}
PAINT_MS = 200
"""What the browser may work until a page is there."""
_PAINTED = "performance.getEntriesByName('first-contentful-paint').length"
_CUT = """() => [...document.querySelectorAll('.tiles dd')]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"""
"""Figures that do not fit where they are."""


class Shown(NamedTuple):
    """A page.

    Args:
        path: its address.
        heading: its heading.
        text: what it shows of the broker.
    """

    path: str
    heading: str
    text: str


PAGES = (
    Shown("overview", "Overview", "Messages per second"),
    Shown("queues", "Queues", "orders.us"),
    Shown("queues/%2F/orders.eu", "orders.eu", "eu-worker"),
    Shown("exchanges", "Exchanges", "unrouted"),
    Shown("exchanges/%2F/orders", "orders", "eu.#"),
    Shown("exchanges/%2F/amq.default", "(default exchange)", "orders.us"),
    Shown("topology", "Topology", "orders.failed"),
    Shown("topology/%2F/queue/orders.eu", "Topology", "steps from queue 'orders.eu'"),
    Shown("streams", "Streams", "reports"),
    Shown("dead-letters/%2F", "Dead letters", "orders.failed"),
    Shown("pipelines", "Pipelines", "no space left for table daily"),
    Shown("publish", "Publish", "Sent from this page"),
    Shown("explain/%2F/orders/eu.order.created", "Explain", "without publishing it"),
    Shown("sql", "SQL", "nothing is taken from them"),
    Shown("connections", "Connections", "shop"),
    Shown("channels", "Channels", "guest"),
    Shown("policies", "Policies", "bounded"),
    Shown("vhosts", "Vhosts", "invoices"),
    Shown("users", "Users", "ada"),
    Shown("users/ada", "ada", "monitoring"),
    Shown("limits", "Limits", "max-queues"),
    Shown("definitions", "Definitions", "Upload"),
    Shown("audit", "Audit", "acts, the last one first"),
    Shown("log", "Log", "accepting AMQP connection"),
)


@pytest.fixture(scope="module", params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Browser, site: Site) -> Iterator[Window]:
    with window(browser, site.base, color_scheme=request.param, device_scale_factor=1) as opened:
        opened.enter()
        expect(opened.page.locator("html")).to_have_attribute("data-theme", request.param)
        yield opened
        assert opened.complaints == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_a_page_shows_the_broker_without_barriers(themed: Window, page: Shown) -> None:
    themed.page.set_viewport_size(WIDE)
    themed.show(page.path, page.heading)
    expect(themed.page.locator("main")).to_contain_text(page.text)
    if page.heading == "Explain":
        themed.page.get_by_role("button", name="Explain").click()
        expect(themed.page.get_by_text("It reaches 2 queues.")).to_be_visible()
    if TAKES_PICTURES:
        # Charts have a minute to show then.
        charts = page is PAGES[0] and _theme(themed) == "light"
        _take(themed, page.path, wait_ms=70_000 if charts else 2500)
    assert themed.page.evaluate(_CUT) == []
    themed.unfold()
    assert themed.barriers() == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_a_page_fits_a_phone(themed: Window, page: Shown) -> None:
    themed.page.set_viewport_size({"width": PHONES[0], "height": 740})
    themed.show(page.path, page.heading)
    expect(themed.page.locator("main")).to_contain_text(page.text)
    themed.unfold()
    for width in PHONES:
        themed.page.set_viewport_size({"width": width, "height": 740})
        widest = themed.page.evaluate("document.documentElement.scrollWidth")
        assert widest <= width, f"{page.path} is {widest} px wide"


def test_queries_that_failed_are_above_those_that_run(themed: Window) -> None:
    themed.page.set_viewport_size(WIDE)
    themed.show("pipelines", "Pipelines")
    rows = themed.page.locator("main .rows tbody tr")
    expect(rows).to_have_text([re.compile("table-daily"), re.compile("orders-to-lake")])


def test_the_pages_of_a_connection_and_a_channel_have_no_barriers(
    themed: Window, site: Site
) -> None:
    themed.page.set_viewport_size(WIDE)
    for kind, text in (("connection", "Pika Python Client Library"), ("channel", "eu-worker")):
        # Those of the tests before may still be ending.
        assert eventually(lambda: len(site.api.get(f"/api/{kind}s")) == 1)  # noqa: B023
        (found,) = site.api.get(f"/api/{kind}s")
        themed.show(f"{kind}s/{segment(found['name'])}", found["name"])
        expect(themed.page.locator("main")).to_contain_text(text)
        assert themed.barriers() == []
        assert themed.page.evaluate(_CUT) == []
        if TAKES_PICTURES:
            _take(themed, kind)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_login_has_no_barriers_and_refuses_a_wrong_password(
    browser: Browser, site: Site, theme: Literal["light", "dark"]
) -> None:
    with window(browser, site.base, color_scheme=theme, device_scale_factor=1) as opened:
        opened.page.goto(site.base)
        expect(opened.page.locator("h1")).to_have_text("Harebell")
        assert opened.barriers() == []
        if TAKES_PICTURES:
            _take(opened, "login")
        opened.log_in(password="wrong")
        alert = opened.page.get_by_role("alert")
        expect(alert).to_have_text("The user or the password is wrong.")
        expect(opened.page.get_by_label("User")).to_have_value("guest")
        site.api.user("untagged")
        opened.log_in("untagged", "p")
        expect(alert).to_contain_text("has no tag for management")


def test_the_page_is_used_with_the_keyboard_alone(browser: Browser, site: Site) -> None:
    with window(browser, site.base) as opened:
        page = opened.page
        page.goto(site.base)
        expect(page.get_by_label("User")).to_be_focused()
        page.keyboard.type("guest")
        page.keyboard.press("Tab")
        page.keyboard.type("guest")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Overview")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.get_by_role("link", name="Queues").focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Queues")
        expect(page.locator("main")).to_be_focused()


def test_a_loaded_page_is_painted_at_once(shown: Window) -> None:
    page, worked = shown.page, []
    # It waits for no answer of the broker.
    page.route("**/api/**", lambda _: None)
    # Beside other tests work takes longer; the least of some is near to what it takes alone.
    for _ in range(5):
        with worked_ms(page) as tasks:
            page.reload()
            expect(page.locator("h1")).to_have_text("Overview")
            assert eventually(lambda: page.evaluate(_PAINTED))
        worked.append(sum(tasks))
    assert min(worked) < PAINT_MS, worked


def test_the_chosen_colours_stay(shown: Window) -> None:
    shown.account().get_by_label("Colours").select_option("dark")
    shown.page.reload()
    expect(shown.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_nothing_moves_when_the_user_says_so(shown: Window) -> None:
    skeleton = "() => { const made = document.body.appendChild(document.createElement('p'));" + (
        "made.className = 'skeleton'; const { animationName } = getComputedStyle(made);"
        "made.remove(); return animationName; }"
    )
    assert shown.page.evaluate(skeleton) == "waiting"
    shown.account().get_by_label("Motion").select_option("none")
    assert shown.page.evaluate(skeleton) == "none"
    shown.page.reload()
    assert shown.page.evaluate(skeleton) == "none"


def test_nothing_moves_when_the_system_says_so(browser: Browser, site: Site) -> None:
    with window(browser, site.base, reduced_motion="reduce") as opened:
        opened.page.route("**/api/overview*", lambda _: None)
        opened.enter()
        waiting = opened.page.locator(".skeleton")
        expect(waiting).to_have_css("animation-name", "none")


def test_the_account_is_reached_with_the_keyboard(shown: Window) -> None:
    page = shown.page
    page.get_by_role("button", name="Account").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("guest · administrator")).to_be_visible()
    assert shown.barriers() == []
    page.keyboard.press("Tab")
    expect(page.get_by_label("Colours")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Colours")).to_be_hidden()
    expect(page.get_by_role("button", name="Account")).to_be_focused()


def test_pages_are_in_groups(shown: Window) -> None:
    pages = shown.page.get_by_role("navigation", name="Pages")
    messages = pages.get_by_role("list", name="Messages").get_by_role("link")
    expect(messages).to_contain_text(["Queues", "Exchanges", "Streams", "Topology"])
    expect(pages.get_by_role("list", name="Administration").get_by_role("link")).to_contain_text(
        ["Policies", "Vhosts", "Users", "Limits", "Definitions", "Log"]
    )


def _theme(opened: Window) -> str:
    return str(opened.page.evaluate("document.documentElement.dataset.theme"))


def _take(opened: Window, path: str, *, wait_ms: int = 2500) -> None:
    ranges = opened.page.get_by_label("Range")
    if ranges.count():
        ranges.select_option(label="1 minute")
    opened.page.wait_for_timeout(wait_ms)
    PICTURES.mkdir(parents=True, exist_ok=True)
    name = path.replace("/%2F", "").replace("/", "-")
    (PICTURES / f"{name}-{_theme(opened)}.png").write_bytes(packed(opened.page.screenshot()))
