"""What clients choose, such as names and bodies, is text on every page, and never runs."""

from __future__ import annotations

import base64
import gzip
import pickle
from collections.abc import Iterator

import msgspec
import pika
import pytest
from playwright.sync_api import Browser, expect

from harebell.client import blocking
from tests.browser.browsing import Window, window
from tests.browser.payloads import PAYLOADS
from tests.browser.traffic import Site, serving
from tests.patience import eventually
from tests.unit.management.http.asking import segment

_ALL = segment(PAYLOADS[0])
"""A queue that is bound with every payload, and has a message with each."""
_LATER = f"later {PAYLOADS[0]}"
_FORMS = f"forms {PAYLOADS[0]}"
TALL = {"width": 1280, "height": 3200}


@pytest.fixture(scope="module")
def hostile() -> Iterator[Site]:
    """A broker in which everything that a client can name is a payload."""
    with serving() as site:
        hashed = site.api.get("/api/auth/hash_password/p")["ok"]
        site.api.done("POST", "/api/definitions", _definitions(hashed))
        with pika.BlockingConnection(_claims(site, PAYLOADS[0])) as link:
            channel = link.channel()
            for payload in PAYLOADS:
                properties = pika.BasicProperties(
                    headers={payload: payload},
                    **dict.fromkeys(("content_type", "message_id", "reply_to", "type"), payload),
                )
                channel.basic_publish(payload, payload, payload.encode(), properties)
            for payload in PAYLOADS:
                death = {"queue": payload, "reason": payload, "routing-keys": [payload]}
                died = {"x-death": [death], "x-error": payload, "x-first-death-queue": payload}
                properties = pika.BasicProperties(headers=died)
                channel.basic_publish("", PAYLOADS[1], payload.encode(), properties)
        _delay(site)
        for payload in PAYLOADS:
            site.api.done("PUT", f"/api/queues/%2F/{segment(f'log {payload}')}", {})
            site.api.done("DELETE", f"/api/queues/%2F/{segment(f'log {payload}')}")
        with blocking.connect(site.broker.address() + "/%2F") as link:
            for payload in PAYLOADS:
                link.channel().lease_open(PAYLOADS[0], payload, timeout=3600)
                facts = dict.fromkeys(("error", "sink", "application"), payload)
                link.channel().report_query(payload, facts | {"sources": [payload]})
        yield site


def _delay(site: Site) -> None:
    """Messages that wait, and one in each form that the page takes apart."""
    with blocking.connect(site.broker.address() + "/%2F") as link:
        channel = link.channel()
        arguments = {"x-delayed-type": "fanout"}
        channel.declare_exchange(_LATER, "x-delayed-message", durable=True, arguments=arguments)
        for payload in PAYLOADS:
            headers = {"x-delay": 3_600_000, payload: payload}
            channel.publish(payload.encode(), exchange=_LATER, routing_key=payload, headers=headers)
        channel.declare_queue(_FORMS, durable=True)
        for payload in PAYLOADS[::4]:
            for body, kind in (
                (msgspec.msgpack.encode({payload: [payload]}), "application/msgpack"),
                (pickle.dumps({payload: payload}), "application/x-python-serialize"),
                (b"\x0a%c" % len(payload) + payload.encode(), "application/x-protobuf"),
                (gzip.compress(payload.encode()), "text/plain; charset=iso-8859-1"),
            ):
                headers = {"task": payload, "id": payload, "x-death": [{"queue": payload}]}
                channel.publish(body, routing_key=_FORMS, headers=headers, content_type=kind)


def _definitions(password_hash: str) -> dict[str, list[dict[str, object]]]:
    """Objects of every kind with each payload as their name."""
    kept = {"vhost": "/", "durable": True, "auto_delete": False}
    found: dict[str, list[dict[str, object]]] = {
        kind: []
        for kind in (
            *("users", "vhosts", "policies", "queues", "exchanges", "bindings"),
            "topic_permissions",
        )
    }
    for payload in PAYLOADS:
        arguments = {"x-hostile": payload}
        found["users"].append({"name": payload, "password_hash": password_hash, "tags": payload})
        found["vhosts"].append({"name": payload, "description": payload})
        settings = {"dead-letter-routing-key": payload}
        policy = {"vhost": "/", "pattern": "^never$", "apply-to": "queues", "priority": 0}
        found["policies"].append({"name": payload, **policy, "definition": settings})
        found["queues"].append({"name": payload, **kept, "arguments": {}})
        exchange = {"name": payload, **kept, "type": "topic", "internal": False}
        found["exchanges"].append({**exchange, "arguments": arguments})
        rule = {"user": PAYLOADS[0], "vhost": "/", "exchange": payload}
        found["topic_permissions"].append({**rule, "write": ".*", "read": ".*"})
        for queue in {payload, PAYLOADS[0]}:
            ends = {"vhost": "/", "source": payload, "destination": queue}
            key = {"destination_type": "queue", "routing_key": payload, "arguments": arguments}
            found["bindings"].append({**ends, **key})
    return found


def _claims(site: Site, payload: str) -> pika.ConnectionParameters:
    claims = dict.fromkeys(("connection_name", "product", "platform", "version"), payload)
    return pika.ConnectionParameters(port=site.broker.port, client_properties=claims)


@pytest.fixture(scope="module")
def opened(browser: Browser, hostile: Site) -> Iterator[Window]:
    with window(browser, hostile.base, viewport=TALL) as made:
        made.enter()
        yield made
        assert made.complaints == []


def _nothing_ran(opened: Window) -> None:
    assert opened.page.evaluate("window.executed") is None
    assert opened.dialogs == []
    strange = opened.page.evaluate(
        "[...document.querySelectorAll('main script, main img, main iframe, main object,"
        " main embed, [onerror], [onload], [onfocus], [ontoggle],"
        ' a[href^="javascript:" i]\')].length'
    )
    assert strange == 0


def test_payloads_in_the_list_of_queues_are_text(opened: Window) -> None:
    opened.show("queues", "Queues")
    rows = opened.page.locator(".body .row")
    expect(rows).to_have_count(len([*PAYLOADS, _FORMS]))
    for payload in PAYLOADS[:40:13]:
        expect(rows.get_by_text(payload, exact=True).first).to_be_attached()
    _nothing_ran(opened)


def test_payloads_in_previews_of_bulk_actions_and_favourites_are_text(opened: Window) -> None:
    opened.show("queues", "Queues")
    page = opened.page
    page.get_by_role("checkbox", name=f"Choose all {len([*PAYLOADS, _FORMS])} queues").check()
    for payload in PAYLOADS[:40:13]:
        page.get_by_role("button", name=f"Favourite {payload}", exact=True).click()
    page.get_by_role("button", name="Set a policy…").click()
    dialog = page.get_by_role("dialog")
    for payload in PAYLOADS[:40:13]:
        expect(dialog.get_by_role("cell", name=payload, exact=True)).to_be_attached()
        expect(page.locator(".favourites")).to_contain_text(payload)
    _nothing_ran(opened)
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Choose none").click()


def test_payloads_in_what_is_done_with_many_exchanges_are_text(opened: Window) -> None:
    opened.show("exchanges", "Exchanges")
    page = opened.page
    chosen = PAYLOADS[:40:13]
    for payload in chosen:
        page.get_by_label("Filter", exact=True).fill(payload)
        page.get_by_role("checkbox", name=f"Choose {payload}", exact=True).check()
        page.get_by_role("button", name=f"Favourite {payload}", exact=True).click()
        expect(page.locator(".favourites")).to_contain_text(payload)
    page.get_by_role("button", name="Set a policy…").click()
    dialog = page.get_by_role("dialog")
    for payload in chosen:
        expect(dialog.get_by_role("cell", name=payload, exact=True)).to_be_attached()
    # Refused as a whole: nothing of it is done.
    dialog.get_by_label("Name of the policy").fill(f"several {chosen[0]}")
    dialog.get_by_label("Settings").fill('{"alternate-exchange": 1}')
    dialog.get_by_label("to confirm").fill(str(len(chosen)))
    dialog.get_by_role("button", name="Set a policy").click()
    expect(dialog.get_by_role("alert")).to_contain_text("1 is not a valid")
    _nothing_ran(opened)
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Choose none").click()


def test_payloads_on_the_pages_of_queues_are_text(opened: Window) -> None:
    for payload in PAYLOADS:
        opened.show(f"queues/%2F/{segment(payload)}", payload)
    for payload in PAYLOADS[::8]:
        opened.show(f"queues/%2F/{segment(payload)}", payload)
        expect(opened.page.get_by_role("heading", name="Purge or delete")).to_be_visible()
        _nothing_ran(opened)


def test_payloads_in_bindings_are_text(opened: Window) -> None:
    opened.show(f"queues/%2F/{_ALL}", PAYLOADS[0])
    table = opened.page.get_by_role("region", name="Bindings")
    for payload in PAYLOADS:
        expect(table.get_by_role("row").filter(has_text=payload).first).to_be_attached()
    _nothing_ran(opened)


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("exchanges", "Exchanges"),
        ("topology", "Topology"),
        (f"topology/%2F/queue/{_ALL}", "Topology"),
        ("pipelines", "Pipelines"),
        ("policies", "Policies"),
        ("vhosts", "Vhosts"),
        ("users", "Users"),
        ("audit", "Audit"),
        (f"exchanges/%2F/{_ALL}", PAYLOADS[0]),
        (f"users/{_ALL}", PAYLOADS[0]),
    ],
    ids=[
        "exchanges",
        "topology",
        "around",
        "pipelines",
        "policies",
        "vhosts",
        "users",
        "audit",
        "exchange",
        "user",
    ],
)
def test_payloads_on_other_pages_are_text(opened: Window, path: str, heading: str) -> None:
    opened.show(path, heading)
    expect(opened.page.locator("main")).to_contain_text(PAYLOADS[0])
    opened.unfold()
    _nothing_ran(opened)


def test_payloads_of_a_client_are_text(opened: Window, hostile: Site) -> None:
    for payload in PAYLOADS[::8]:
        with pika.BlockingConnection(_claims(hostile, payload)):
            # The one before may be there for a moment.
            assert eventually(lambda: len(hostile.api.get("/api/connections")) == 1)
            (link,) = hostile.api.get("/api/connections")
            opened.show("overview", "Overview")
            opened.show("connections", "Connections")
            expect(opened.page.get_by_role("link", name=payload, exact=True)).to_be_attached()
            opened.show(f"connections/{segment(link['name'])}", link["name"])
            expect(opened.page.get_by_text(payload, exact=True).first).to_be_attached()
            _nothing_ran(opened)


def test_payloads_in_leases_and_topic_permissions_are_text(opened: Window) -> None:
    for path, table in ((f"queues/%2F/{_ALL}", "Leases"), (f"users/{_ALL}", "Topic permissions")):
        opened.show(path, PAYLOADS[0])
        rows = opened.page.get_by_role("region", name=table, exact=True).last.get_by_role("row")
        expect(rows).to_have_count(len(PAYLOADS) + 1)
        opened.unfold()
        _nothing_ran(opened)


def test_payloads_in_what_would_happen_to_a_message_are_text(opened: Window) -> None:
    for payload in PAYLOADS[::4]:
        name = segment(payload)
        opened.show(f"explain/%2F/{name}/{name}", "Explain")
        form = opened.page.get_by_role("form", name="Explain")
        expect(form.get_by_label("Exchange")).to_have_value(payload)
        form.get_by_role("button", name="Explain").click()
        expect(opened.page.get_by_text("It reaches")).to_be_visible()
        expect(opened.page.locator("main")).to_contain_text(payload)
        _nothing_ran(opened)


def test_payloads_in_the_log_are_text(opened: Window) -> None:
    opened.show("log", "Log")
    log = opened.page.get_by_role("region", name="Log", exact=True)
    for payload in PAYLOADS[::8]:
        expect(log.get_by_text(f"log {payload}").first).to_be_attached()
    _nothing_ran(opened)


def test_payloads_in_messages_are_text(opened: Window) -> None:
    opened.show(f"queues/%2F/{_ALL}", PAYLOADS[0])
    expect(opened.page.get_by_role("heading", name="Purge or delete")).to_be_visible()
    opened.unfold()
    form = opened.page.get_by_role("form", name="Browse")
    form.get_by_label("At most").fill("100")
    form.get_by_role("button", name="Browse").click()
    expect(form.get_by_role("status")).to_contain_text(f"{len(PAYLOADS)} messages.")
    # Header, four properties and routing key; bodies that are JSON are shown with line breaks.
    opened.page.get_by_role("button", name="Open all").click()
    expect(opened.page.get_by_role("region", name="Body")).to_have_count(len(PAYLOADS))
    opened.unfold()
    shown = opened.page.locator(".messages").first.inner_text()
    assert not [payload for payload in PAYLOADS if shown.count(payload.strip()) < 6]
    _nothing_ran(opened)


def test_payloads_in_dead_letters_are_text(opened: Window) -> None:
    opened.show("dead-letters/%2F", "Dead letters")
    groups = opened.page.get_by_role("region", name="Dead letters", exact=True)
    buttons = groups.get_by_role("button")
    # One queue has each payload as the queue that a message died in, and one has some of them.
    expect(buttons).to_have_count(len([*PAYLOADS, *PAYLOADS[::4]]))
    for number in range(0, len(PAYLOADS), 8):
        buttons.nth(number).click()
        samples = opened.page.get_by_role("group", name="Samples")
        samples.get_by_role("checkbox").first.check()
        opened.unfold()
        expect(opened.page.get_by_role("form", name="Edit and retry")).to_be_visible()
        _nothing_ran(opened)


def test_payloads_in_every_form_of_a_body_are_text(opened: Window) -> None:
    opened.show(f"queues/%2F/{segment(_FORMS)}", _FORMS)
    expect(opened.page.get_by_role("heading", name="Purge or delete")).to_be_visible()
    opened.unfold()
    form = opened.page.get_by_role("form", name="Browse")
    form.get_by_label("At most").fill("100")
    form.get_by_role("button", name="Browse").click()
    opened.page.get_by_role("button", name="Open all").click()
    bodies = opened.page.get_by_role("region", name="Body")
    expect(bodies).to_have_count(4 * len(PAYLOADS[::4]))
    opened.unfold()
    # The text of a task, of a death, of a body and of commands that publish it again.
    shown = opened.page.locator(".messages").first.inner_text()
    assert not [payload for payload in PAYLOADS[::4] if shown.count(payload) < 12]
    _nothing_ran(opened)


def test_payloads_in_messages_that_wait_are_text(opened: Window) -> None:
    opened.show(f"exchanges/%2F/{segment(_LATER)}", _LATER)
    rows = opened.page.get_by_role("region", name="Delayed messages").last.locator("tbody tr")
    expect(rows).to_have_count(len(PAYLOADS))
    for number in range(0, len(PAYLOADS), 16):
        rows.nth(number).get_by_role("button").first.click()
        expect(opened.page.get_by_role("region", name="Body")).to_have_text(PAYLOADS[number])
        rows.nth(number).get_by_role("button", name="Cancel").first.click()
        expect(opened.page.get_by_role("dialog")).to_contain_text(PAYLOADS[number])
        opened.page.keyboard.press("Escape")
        _nothing_ran(opened)


def test_a_payload_in_the_address_is_text(opened: Window) -> None:
    for payload in PAYLOADS[::6]:
        opened.show(segment(payload), "There is no such page")
        opened.page.evaluate("path => { location.hash = path }", f"#/queues/%2F/{payload}")
        _nothing_ran(opened)


def test_a_refusal_that_repeats_a_payload_is_text(opened: Window) -> None:
    payload = PAYLOADS[5]
    opened.show(f"queues/{segment(payload)}/{segment(payload)}", payload)
    expect(opened.page.get_by_role("alert").first).to_be_visible()
    _nothing_ran(opened)


def test_the_policy_of_the_page_stops_what_would_become_markup(opened: Window) -> None:
    """What stops a mistake of ours: no text becomes markup, and no script but ours is loaded."""
    opened.show("overview", "Overview")
    before = len(opened.complaints)
    refused = opened.page.evaluate(
        "() => { try { document.body.innerHTML += '<p>x</p>'; return '' }"
        " catch (error) { return error.name } }"
    )
    assert refused == "TypeError"
    code = base64.b64encode(b"window.executed=1").decode()
    opened.page.evaluate(
        "address => { try { const script = document.createElement('script');"
        " script.src = address; document.body.append(script) } catch {} }",
        f"data:text/javascript;base64,{code}",
    )
    assert opened.page.evaluate("window.executed") is None
    del opened.complaints[before:]


def test_payloads_in_questions_of_sql_and_their_answers_are_text(opened: Window) -> None:
    payload = PAYLOADS[0]
    text = payload.replace("\\", "\\\\").replace("'", "\\'")
    opened.show("sql", "SQL")
    field = opened.page.get_by_role("textbox", name="Question")
    field.fill(f"SELECT '{text}' AS one, '{text}' FROM queue('{text}')")
    opened.page.get_by_role("button", name="Ask").click()
    expect(
        opened.page.get_by_role("region", name="Rows").or_(opened.page.get_by_role("alert"))
    ).to_contain_text(payload)
    field.fill(f"SELECT '{text}' AS one")
    opened.page.get_by_role("button", name="Ask").click()
    expect(opened.page.get_by_role("region", name="Rows")).to_contain_text(payload)
    opened.unfold()
    _nothing_ran(opened)
