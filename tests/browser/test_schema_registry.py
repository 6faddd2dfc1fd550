"""A body that names a schema of the registry is read with it, and what is wrong is said there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pika
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving
from tests.unit.management.http.lying_registry import REGISTRY, registry

# The number 7: as Avro writes it, as Protobuf does behind the place of its message, and as JSON.
_BODIES = {
    1: (b"\x0e", '"id": 7', "schema 1 of a registry"),
    2: (b"\0\x08\x07", '"id": 7', None),
    3: (b"\x0e\x0c", '"zip": 6', "schema 3 of a registry"),
    4: (b"\0\x08\x07\x12\x02\x08\x01", '"ROME"', None),
    7: (b"\x0e", "0e", "it answered 404 for 'shop.Missing'"),
    5: (b'{"id":7}', '"id": 7', None),
    6: (b"\x0e", "0e", "the schema is not JSON"),
    10: (b"\x0e", "0e", "the schema registry: it answered 404 for schema 10."),
    11: (b"\x0e", "0e", "the schema registry: it answered 500 for schema 11."),
}
"""By the id of the schema: a body behind it, what is shown of it, and what is said."""


class Place(NamedTuple):
    """A window on a broker with a registry."""

    window: Window
    site: Site


@pytest.fixture
def place(browser: Browser) -> Iterator[Place]:
    with (
        registry() as server,
        serving(env={REGISTRY: server.url}) as site,
        window(browser, site.base) as opened,
    ):
        yield Place(opened, site)
        assert opened.complaints == []
        assert opened.dialogs == []


def test_a_body_that_names_its_schema_is_read_with_it(place: Place) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(port=place.site.broker.port)) as link:
        channel = link.channel()
        channel.queue_declare("typed")
        for number, (body, _, _) in _BODIES.items():
            channel.basic_publish("", "typed", b"\0" + number.to_bytes(4, "big") + body)
    opened, page = place.window, place.window.page
    opened.enter()
    opened.show("queues/%2F/typed", "typed")
    page.get_by_text("Browse without consuming").click()
    form = page.get_by_role("form", name="Browse", exact=True)
    form.get_by_role("button", name="Browse").click()
    table = page.get_by_role("table", name="Messages", exact=True)
    for offset, (_, shown, said) in enumerate(_BODIES.values()):
        table.get_by_role("button", name=str(offset), exact=True).click()
        message = page.get_by_role("article", name=f"Message {offset}")
        expect(message.get_by_role("region", name="Body")).to_contain_text(shown)
        if said is not None:
            expect(message).to_contain_text(said)
    assert page.evaluate("window.executed") is None
    assert opened.barriers() == []
