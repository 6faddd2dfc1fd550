"""The page of the audit trail: searching, what an act has changed, older acts, saving."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, Route, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site

PHONE = {"width": 390, "height": 844}
_ACTS = "Acts"


def _changed_policy(site: Site, name: str) -> None:
    for length in (5, 9):
        policy = {"pattern": "^x", "apply-to": "queues", "definition": {"max-length": length}}
        site.api.done("PUT", f"/api/policies/%2F/{name}", policy)


def test_a_search_finds_an_act_and_what_it_has_changed(shown: Window, site: Site) -> None:
    page = shown.page
    _changed_policy(site, "watched")
    shown.show("audit", "Audit")
    form = page.get_by_role("form", name="Search")
    form.get_by_label("Object").fill("watched")
    form.get_by_role("button", name="Search").click()
    table = page.get_by_role("region", name=_ACTS)
    expect(table.locator("> table > tbody > tr")).to_have_count(2)
    row = table.locator("> table > tbody > tr").first
    expect(row).to_contain_text("policies.set")
    row.get_by_text("Details").click()
    changed = row.get_by_role("region", name="What was changed")
    expect(changed.locator("tbody tr")).to_have_text(
        re.compile(r"definition.*max-length.*5.*max-length.*9")
    )
    # The address has the search, so that a reload and a link keep it.
    page.reload()
    expect(form.get_by_label("Object")).to_have_value("watched")
    expect(table.locator("> table > tbody > tr")).to_have_count(2)


def test_a_search_that_cannot_be_done_says_why_and_stays(shown: Window) -> None:
    page = shown.page
    shown.show("audit", "Audit")
    form = page.get_by_role("form", name="Search")
    form.get_by_label("Since").fill("yesterday")
    form.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text("since is 'yesterday'")
    expect(form.get_by_label("Since")).to_have_value("yesterday")
    shown.complaints.clear()  # the browser's own line about the status 400


def test_older_acts_come_below_and_all_are_saved(shown: Window, site: Site, tmp_path: Path) -> None:
    page = shown.page
    for number in range(103):
        site.api.done("PUT", f"/api/global-parameters/many-{number}", {"value": number})
    shown.show("audit?object=many-", "Audit")
    rows = page.get_by_role("region", name=_ACTS).locator("> table > tbody > tr")
    expect(rows).to_have_count(100)
    expect(rows.first).to_contain_text("many-102")
    page.get_by_role("button", name="Older acts").click()
    expect(rows).to_have_count(103)
    expect(page.get_by_role("button", name="Older acts")).to_be_hidden()
    with page.expect_download() as awaited:
        page.get_by_role("button", name="Save as NDJSON").click()
    saved = tmp_path / "saved"
    awaited.value.save_as(saved)
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [line["object"] for line in lines] == [f"many-{each}" for each in range(102, -1, -1)]
    expect(page.get_by_role("status").filter(has_text="were saved")).to_have_text(
        "103 acts were saved."
    )


def test_a_late_answer_of_an_earlier_search_is_not_shown(shown: Window, site: Site) -> None:
    page = shown.page
    _changed_policy(site, "late")
    held: list[Route] = []
    late = re.compile(r"/api/audit\?.*object=late")
    page.route(late, lambda route: held.append(route))
    shown.show("audit?object=late", "Audit")
    form = page.get_by_role("form", name="Search")
    form.get_by_label("Object").fill("nothing-of-that-name")
    form.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No act was found.")).to_be_visible()
    for each in held:
        each.continue_()
    page.unroute(late)
    expect(page.get_by_text("No act was found.")).to_be_visible()


def test_the_page_is_used_with_the_keyboard_alone_on_a_phone(browser: Browser, site: Site) -> None:
    _changed_policy(site, "typed")
    with window(browser, site.base) as opened:
        opened.enter()
        page = opened.page
        page.set_viewport_size(PHONE)
        opened.show("audit", "Audit")
        page.get_by_label("Object").focus()
        page.keyboard.type("typed")
        page.keyboard.press("Enter")
        rows = page.get_by_role("region", name=_ACTS).locator("> table > tbody > tr")
        expect(rows).to_have_count(2)
        for _ in range(40):
            if page.evaluate("document.activeElement.textContent") == "Details":
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="What was changed").first).to_be_visible()
        assert opened.barriers() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert opened.complaints == []


def test_users_without_the_tag_do_not_find_the_page(browser: Browser, site: Site) -> None:
    site.api.user("auditor", "monitoring", vhost="/")
    with window(browser, site.base) as opened:
        opened.page.goto(site.base)
        opened.log_in("auditor", "p")
        expect(opened.page.get_by_role("link", name="Queues", exact=True)).to_be_visible()
        expect(opened.page.get_by_role("link", name="Audit", exact=True)).to_be_hidden()
