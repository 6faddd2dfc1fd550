"""One browser, and one broker with traffic, for all tests of the web interface.

They end with the last test of this package: while Playwright runs, its event loop does, and tests
of other packages begin loops of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.browsing import Window, launched, window
from tests.browser.traffic import Site, shop


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as tool:
        made = launched(tool)
        yield made
        made.close()


@pytest.fixture(scope="package")
def site() -> Iterator[Site]:
    with shop() as found:
        yield found


@pytest.fixture
def shown(browser: Browser, site: Site) -> Iterator[Window]:
    """A window in which a user has logged in, who saw nothing that browsers complain about."""
    with window(browser, site.base) as opened:
        opened.enter()
        yield opened
        assert opened.complaints == []
        assert opened.dialogs == []
