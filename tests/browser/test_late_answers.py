"""Answers that come late, or when the user is somewhere else: what users do meanwhile stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving
from tests.patience import eventually

_HOLD = """
window.held = [];
const ask = window.fetch;
window.fetch = async (...request) => {
  const answer = await ask(...request);
  if (!window.holding || !request[0].includes(window.holding)) return answer;
  const { ok, status } = answer;
  const text = await answer.text();
  await new Promise(resolve => window.held.push(resolve));
  return { ok, status, text: async () => text, json: async () => JSON.parse(text) };
};
"""
"""Answers come when a test says so, so that no time passes from then until they are handled."""
_SORT_AND_ANSWER = """() => {
  document.querySelector('.sort').click();
  window.held.shift()();
}"""
_CHOOSE_AT_ONCE = """() => {
  const observer = new MutationObserver(() => {
    const field = document.querySelector('.filters input');
    if (!field) return;
    observer.disconnect();
    field.focus();
  });
  observer.observe(document, {childList: true, subtree: true});
  location.hash = '#/queues';
}"""
_AFTER_EFFECTS = "new Promise(resolve => setTimeout(resolve, 300))"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving() as found:
        yield found


def _until(page: Page, expression: str) -> None:
    """Wait until something is true of the page; its policy forbids wait_for_function."""
    assert eventually(lambda: page.evaluate(expression))


class Held:
    """A request that the broker gets when a test lets it go."""

    def __init__(self) -> None:
        self._route: Route | None = None

    def hold(self, route: Route) -> None:
        self._route = route

    def let_go(self, page: Page, url: str) -> None:
        """Let it reach the broker, and wait for the answer."""
        assert eventually(lambda: page.wait_for_timeout(10) or self._route)
        assert self._route is not None
        with page.expect_response(url):
            self._route.continue_()
        page.evaluate(_AFTER_EFFECTS)


@contextmanager
def held(page: Page, method: str, url: str) -> Iterator[Held]:
    """The next request of a method waits."""
    found = Held()
    page.route(url, lambda it: found.hold(it) if it.request.method == method else it.continue_())
    yield found
    page.unroute(url)


def test_a_user_who_has_gone_elsewhere_stays_there_when_a_queue_is_deleted(
    shown: Window, site: Site
) -> None:
    page, url = shown.page, "**/api/queues/%2F/slow"
    site.api.done("PUT", "/api/queues/%2F/slow", {})
    shown.show("queues/%2F/slow", "slow")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("slow")
    with held(page, "DELETE", url) as answer:
        dialog.get_by_role("button", name="Delete").click()
        dialog.get_by_role("button", name="Cancel").click()
        shown.show("users", "Users")
        page.get_by_text("New user").click()
        name = page.get_by_role("form", name="New user").get_by_label("Name")
        name.fill("half typed")
        answer.let_go(page, url)
    assert site.api.ask("GET", "/api/queues/%2F/slow").status == 404
    expect(name).to_have_value("half typed")


def test_a_text_typed_while_a_form_is_sent_stays_in_it(shown: Window, site: Site) -> None:
    page, url = shown.page, "**/api/users/first"
    shown.show("users", "Users")
    page.get_by_text("New user").click()
    form = page.get_by_role("form", name="New user")
    form.get_by_label("Name").fill("first")
    form.get_by_label("Password").fill("secret")
    with held(page, "PUT", url) as answer:
        form.get_by_role("button", name="Add").click()
        form.get_by_label("Name").fill("second")
        answer.let_go(page, url)
    expect(form.get_by_role("status")).to_contain_text("User 'first' is there")
    expect(form.get_by_label("Name")).to_have_value("second")
    expect(form.get_by_label("Password")).to_have_value("")
    site.api.done("DELETE", "/api/users/first")


def test_rows_in_another_order_are_not_shown_for_those_of_the_new_one(
    browser: Browser, site: Site
) -> None:
    for name in ("a", "b"):
        site.api.done("PUT", f"/api/queues/%2F/{name}", {})
    with window(browser, site.base) as shown:
        page = shown.page
        page.add_init_script(_HOLD)
        shown.enter()
        shown.show("queues", "Queues")
        rows = page.locator(".body .row a")
        expect(rows).to_have_text(["a", "b"])
        page.evaluate("window.holding = 'api/queues'")
        _until(page, "window.held.length === 1")
        # The answer comes when the new order is drawn, and nothing else has been done yet.
        page.evaluate(_SORT_AND_ANSWER)
        _until(page, "window.held.length === 1")
        expect(rows).to_have_count(0)
        page.evaluate("window.holding = null; window.held.shift()()")
        expect(rows).to_have_text(["b", "a"])
        assert shown.complaints == []
    for name in ("a", "b"):
        site.api.done("DELETE", f"/api/queues/%2F/{name}")


def test_a_dialog_stays_with_its_row_and_goes_with_it(shown: Window, site: Site) -> None:
    page = shown.page
    for name in ("first", "last"):
        site.api.done("PUT", f"/api/exchanges/%2F/{name}", {"type": "direct"})
    site.api.done("PUT", "/api/queues/%2F/bound", {})

    def bind(exchange: str) -> None:
        site.api.done("POST", f"/api/bindings/%2F/e/{exchange}/q/bound", {"routing_key": "k"})

    bind("first")
    bind("last")
    shown.show("queues/%2F/bound", "bound")
    rows = page.get_by_role("region", name="Bindings").locator("tbody tr")
    dialog = page.get_by_role("dialog")
    rows.filter(has_text="last").get_by_role("button", name="Unbind").click()
    site.api.done("DELETE", "/api/bindings/%2F/e/first/q/bound/k")
    expect(rows.filter(has_text="first")).to_have_count(0)
    expect(dialog).to_contain_text("'last' will no longer route to 'bound' by 'k'.")
    # It goes with its row, and is not that of the row that comes in its place.
    bind("first")
    expect(rows.filter(has_text="first")).to_be_attached()
    site.api.done("DELETE", "/api/bindings/%2F/e/last/q/bound/k")
    expect(rows.filter(has_text="last")).to_have_count(0)
    expect(dialog).to_have_count(0)
    site.api.done("DELETE", "/api/queues/%2F/bound")


def test_the_name_that_confirms_a_deletion_stays_typed_when_rows_come_before_it(
    shown: Window, site: Site
) -> None:
    page = shown.page
    site.api.done("PUT", "/api/vhosts/last", {})
    shown.show("vhosts", "Vhosts")
    page.get_by_role("row", name="last").get_by_role("button", name="Delete").click()
    typed = page.get_by_role("dialog").get_by_label("to confirm")
    typed.fill("la")
    site.api.done("PUT", "/api/vhosts/first", {})
    expect(page.locator(".body .row").filter(has_text="first")).to_be_attached()
    expect(typed).to_have_value("la")
    for name in ("first", "last"):
        site.api.done("DELETE", f"/api/vhosts/{name}")


def test_a_field_that_is_chosen_as_soon_as_a_page_is_drawn_stays_chosen(shown: Window) -> None:
    shown.page.evaluate(_CHOOSE_AT_ONCE)
    expect(shown.page.locator("h1")).to_have_text("Queues")
    shown.page.evaluate(_AFTER_EFFECTS)
    expect(shown.page.get_by_label("Filter")).to_be_focused()


def test_an_act_confirmed_by_one_user_is_not_done_in_the_name_of_the_next(
    browser: Browser,
) -> None:
    with serving() as site, window(browser, site.base) as shown:
        site.api.user("ada", "administrator", vhost="/")
        shown.enter()
        page = shown.page
        shown.show("queues", "Queues")
        page.get_by_text("New queue").click()
        form = page.get_by_role("form", name="New queue")
        form.get_by_label("Name").fill("of guest")
        changed = {"password": "another", "tags": "administrator"}
        site.api.done("PUT", "/api/users/guest", changed)
        form.get_by_role("button", name="Declare").click()
        dialog = page.get_by_role("dialog", name="Log in again")
        dialog.get_by_role("button", name="Log out").click()
        shown.log_in("ada", "p")
        shown.show("queues", "Queues")
        expect(page.get_by_text("0 queues")).to_be_visible()
        page.evaluate(_AFTER_EFFECTS)
        assert site.api.ask("GET", "/api/queues/%2F/of%20guest", user="ada:p").status == 404
        assert shown.complaints == []
