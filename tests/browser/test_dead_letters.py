"""The workbench of dead letters: groups, samples, what is done with them, and back again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving
from tests.patience import eventually

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def broken() -> Iterator[Site]:
    """A broker whose queue of orders has rejected some of them."""
    with serving() as site:
        yield site


@pytest.fixture
def opened(browser: Browser, broken: Site) -> Iterator[Window]:
    """The page, of a broker with five dead letters in two groups."""
    for name in ("orders", "dead", "dead-letters.held"):
        broken.api.ask("DELETE", f"/api/queues/%2F/{name}")
    with pika.BlockingConnection(pika.ConnectionParameters(port=broken.broker.port)) as link:
        channel = link.channel()
        channel.confirm_delivery()
        channel.queue_declare("dead", durable=True)
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("orders", durable=True, arguments=letters)
        for number in range(5):
            headers: dict[str, Any] = {"tenant": f"t{number}"}
            if number < 3:
                headers["x-exception-message"] = f"order {number} is late"
            body = json.dumps({"id": number, "total": 42}).encode()
            properties = pika.BasicProperties(delivery_mode=2, headers=headers)
            channel.basic_publish("", "orders", body, properties)
        for _ in range(5):
            method, _, _ = channel.basic_get("orders")
            channel.basic_reject(method.delivery_tag, requeue=False)
    assert eventually(lambda: ready(broken, "dead") == 5)
    with window(browser, broken.base) as made:
        made.enter()
        made.show("dead-letters/%2F", "Dead letters")
        yield made
        assert made.complaints == []


def ready(site: Site, queue: str) -> int:
    count: int = site.api.get(f"/api/queues/%2F/{queue}")["messages_ready"]
    return count


def bodies(site: Site, queue: str) -> list[Any]:
    fields = {"count": 100, "ackmode": "ack_requeue_true", "encoding": "auto"}
    rows: list[Any] = site.api.ask("POST", f"/api/queues/%2F/{queue}/get", fields).json
    return rows


def group(opened: Window, text: str) -> Locator:
    """Open a group; returns its section."""
    row = (
        opened.page.get_by_role("region", name="Dead letters", exact=True)
        .get_by_role("row")
        .filter(has_text=text)
    )
    row.get_by_role("button").click()
    section = opened.page.locator("section[aria-labelledby=group]")
    expect(section.get_by_role("group", name="Samples")).to_be_visible()
    return section


def test_groups_are_shown_with_samples_side_by_side_and_what_differs(opened: Window) -> None:
    rows = opened.page.get_by_role("region", name="Dead letters", exact=True).get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("order 0 is late")
    section = group(opened, "order 0 is late")
    expect(section.locator("article")).to_have_count(2)
    difference = section.get_by_role("region", name="Difference")
    expect(difference.locator(".gone")).to_contain_text(["headers.tenant: t0"])
    expect(difference.locator(".new")).to_contain_text(["headers.tenant: t1"])
    opened.unfold()
    for theme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=theme)
        expect(opened.page.locator("html")).to_have_attribute("data-theme", theme)
        assert opened.barriers() == []
    opened.page.set_viewport_size(PHONE)
    widest = opened.page.evaluate("document.documentElement.scrollWidth")
    assert widest <= PHONE["width"]


def done(opened: Window, text: str) -> None:
    """Wait until the page says what the job that was started last has done."""
    jobs = opened.page.locator("section[aria-labelledby=jobs]")
    expect(jobs.get_by_role("status").first).to_contain_text(text)


def test_a_group_is_tried_again_with_the_keyboard_alone(opened: Window, broken: Site) -> None:
    page = opened.page
    button = page.get_by_role("button", name="Look at 3 of orders")
    button.focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Retry", exact=True)
    expect(form).to_be_visible()
    form.get_by_role("button", name="Retry").focus()
    page.keyboard.press("Enter")
    done(opened, "(retry) is done: 5 examined, 3 selected, 3 done, 0 left")
    assert eventually(lambda: ready(broken, "orders") == 3)
    assert ready(broken, "dead") == 2
    expect(
        page.get_by_role("region", name="Dead letters", exact=True).get_by_role("row")
    ).to_have_count(2)


def test_one_message_is_edited_and_tried_again(opened: Window, broken: Site) -> None:
    section = group(opened, "order 0 is late")
    section.get_by_role("group", name="Samples").get_by_role("checkbox").nth(1).check()
    section.get_by_text("Edit one and retry it").click()
    form = section.get_by_role("form", name="Edit and retry")
    form.get_by_label("Body").fill('{"id": 1, "total": 43}')
    form.get_by_label("Headers").fill('{"tenant": "t9"}')
    form.get_by_role("button", name="Retry as edited").click()
    done(opened, "1 selected, 1 done")
    assert eventually(lambda: ready(broken, "orders") == 1)
    (row,) = bodies(broken, "orders")
    assert json.loads(row["payload"]) == {"id": 1, "total": 43}
    assert row["properties"]["headers"]["tenant"] == "t9"
    assert "x-exception-message" not in row["properties"]["headers"]
    assert ready(broken, "dead") == 4


def test_a_discard_is_undone(opened: Window, broken: Site) -> None:
    page = opened.page
    section = group(opened, "order 0 is late")
    section.locator("summary").filter(has_text="Discard").click()
    form = section.get_by_role("form", name="Discard")
    form.get_by_label("Reason").fill("known fault")
    form.get_by_role("button", name="Discard").click()
    done(opened, "(discard) is done: 5 examined, 3 selected, 3 done")
    assert eventually(lambda: ready(broken, "dead-letters.held") == 3)
    row = page.get_by_role("region", name="Jobs").get_by_role("row").filter(has_text="known fault")
    row.first.get_by_role("button", name="Undo").click()
    done(opened, "(restore) is done: 3 examined, 3 selected, 3 done")
    assert eventually(lambda: ready(broken, "dead") == 5)
    assert ready(broken, "dead-letters.held") == 0
    expect(
        page.get_by_role("region", name="Dead letters", exact=True).get_by_role("row")
    ).to_have_count(3)


def test_selected_messages_are_saved(opened: Window, tmp_path: Path) -> None:
    section = group(opened, "order 0 is late")
    section.get_by_role("group", name="Samples").get_by_role("checkbox").first.check()
    section.locator("summary").filter(has_text="Export").click()
    form = section.get_by_role("form", name="Export")
    with opened.page.expect_download() as saved:
        form.get_by_role("button", name="Save as NDJSON").click()
    saved.value.save_as(tmp_path / "saved.ndjson")
    (line,) = (tmp_path / "saved.ndjson").read_text().splitlines()
    assert json.loads(json.loads(line)["payload"])["id"] == 0
    expect(form.get_by_role("status")).to_have_text("1 messages were saved.")
