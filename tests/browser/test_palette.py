"""Ctrl-K finds what the user may see and goes there; keys work on every page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.browsing import Window, window
from tests.browser.payloads import PAYLOADS
from tests.browser.traffic import Site
from tests.unit.management.http.asking import segment

Theme = Literal["light", "dark"]
SIZES = ({"width": 390, "height": 844}, {"width": 1440, "height": 900})


def _search(shown: Window, text: str) -> Locator:
    shown.page.keyboard.press("Control+k")
    dialog = shown.page.get_by_role("dialog", name="Search")
    dialog.get_by_role("combobox").fill(text)
    return dialog


@pytest.mark.parametrize(
    ("text", "kind", "heading"),
    [
        ("orders.us", "queue", "orders.us"),
        ("unrouted", "exchange", "unrouted"),
        ("shop", "connection", None),
        ("ada", "user", "ada"),
        ("bounded", "policy", "Policies"),
        ("us.#", "routing key", "orders"),
        ("topol", "page", "Topology"),
    ],
)
def test_everything_is_found_and_gone_to(
    shown: Window, text: str, kind: str, heading: str | None
) -> None:
    dialog = _search(shown, text)
    dialog.get_by_role("option").filter(has=shown.page.get_by_text(kind, exact=True)).first.click()
    expect(dialog).to_be_hidden()
    if heading is None:
        expect(shown.page.locator("main")).to_contain_text("Pika Python Client Library")
    else:
        expect(shown.page.locator("h1")).to_have_text(heading)


def test_it_is_used_with_the_keyboard_alone(shown: Window) -> None:
    dialog = _search(shown, "orders.")
    options = dialog.get_by_role("option")
    expect(options.filter(has_text="orders.us").first).to_be_visible()
    expect(options.first).to_have_attribute("aria-selected", "true")
    shown.page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    shown.page.keyboard.press("ArrowUp")
    shown.page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(shown.page.locator("h1")).to_contain_text("orders")
    dialog = _search(shown, "no such name")
    expect(dialog).to_contain_text("Nothing is found.")
    shown.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_user_finds_nothing_that_is_hidden_elsewhere(browser: Browser, site: Site) -> None:
    site.api.user("clerk", "management", vhost="billing")
    with window(browser, site.base) as opened:
        opened.page.goto(opened.base)
        opened.log_in("clerk", "p")
        expect(opened.page.get_by_role("navigation", name="Pages")).to_be_attached()
        for text in ("orders", "ada", "shop"):
            dialog = _search(opened, text)
            expect(dialog).to_contain_text("Nothing is found.")
            opened.page.keyboard.press("Escape")


def test_keys_go_to_pages_and_to_the_filter(shown: Window) -> None:
    keys = shown.page.keyboard
    keys.press("g")
    keys.press("q")
    expect(shown.page.locator("h1")).to_have_text("Queues")
    keys.press("/")
    expect(shown.page.get_by_label("Filter", exact=True)).to_be_focused()
    # In a field letters are text.
    keys.type("gc?")
    expect(shown.page.get_by_label("Filter", exact=True)).to_have_value("gc?")
    expect(shown.page.locator("h1")).to_have_text("Queues")
    shown.page.locator("main").focus()
    keys.press("?")
    dialog = shown.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("go to queues")
    assert shown.barriers() == []
    dialog.get_by_label("Keys of one letter").uncheck()
    dialog.get_by_role("button", name="Close").click()
    keys.press("g")
    keys.press("o")
    expect(shown.page.locator("h1")).to_have_text("Queues")
    keys.press("Control+k")
    expect(shown.page.get_by_role("dialog", name="Search")).to_be_visible()


@pytest.fixture
def hostile(shown: Window, site: Site) -> Iterator[Window]:
    """A window on a broker with policies that are named like attacks."""
    rule = {"pattern": "^no such$", "definition": {"max-length": 1}, "apply-to": "queues"}
    entries = [{"vhost": "/", "name": name, **rule} for name in PAYLOADS[::8]]
    site.api.done("POST", "/api/definitions", {"policies": entries})
    yield shown
    for entry in entries:
        site.api.done("DELETE", f"/api/policies/%2F/{segment(entry['name'])}")


def test_payloads_in_what_is_found_are_text(hostile: Window) -> None:
    for payload in PAYLOADS[::8]:
        dialog = _search(hostile, payload[:40])
        expect(dialog.get_by_role("option").filter(has_text=payload).first).to_be_visible()
        hostile.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
    assert hostile.page.evaluate("window.executed") is None


@pytest.mark.parametrize("size", SIZES, ids=["390", "1440"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_and_has_no_barriers(shown: Window, size: dict[str, int], theme: Theme) -> None:
    shown.page.set_viewport_size(size)
    shown.page.emulate_media(color_scheme=theme)
    shown.page.get_by_role("button", name="Search").click()
    dialog = shown.page.get_by_role("dialog", name="Search")
    dialog.get_by_role("combobox").fill("orders")
    expect(dialog.get_by_role("option").filter(has_text="queue").first).to_be_visible()
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert shown.barriers() == []
