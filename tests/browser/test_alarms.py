"""Every page of the web interface says what is short while publishers are blocked."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import window
from tests.ports import free_port
from tests.running import asked, running_broker


@pytest.mark.parametrize(
    ("key", "value", "what", "usual"),
    [
        ("memory_high_watermark", "0", "Memory", "0.9"),
        ("disk_free_limit", "1000TiB", "Disk space", "1MiB"),
    ],
)
def test_every_page_says_what_is_blocked_and_since_when(
    browser: Browser, key: str, value: str, what: str, usual: str
) -> None:
    port = free_port()
    with (
        running_broker("--management-port", str(port)) as broker,
        window(browser, f"http://127.0.0.1:{port}") as opened,
    ):
        opened.enter()
        banner = opened.page.get_by_role("alert")
        expect(banner).to_have_count(0)
        days = [_today()]
        assert asked(broker, "config", "set", key, value).returncode == 0
        # Midnight may be in between.
        days.append(_today())
        for path, heading in (("queues", "Queues"), ("users", "Users"), ("log", "Log")):
            opened.show(path, heading)
            expect(banner).to_contain_text(f"{what} is short: publishers are blocked since")
            expect(banner).to_contain_text(key)
            expect(banner).to_contain_text(re.compile("|".join(days)))
        assert asked(broker, "config", "set", key, usual).returncode == 0
        expect(banner).to_have_count(0)
        assert opened.complaints == []


def _today() -> str:
    return f"{datetime.now():%d/%m/%Y}"
