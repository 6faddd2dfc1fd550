"""A window of the browser on the web interface of a broker, and what is looked for in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Playwright, expect

_SETTLED = """() => Promise.allSettled(document.getAnimations()
    .filter((each) => each.effect.getComputedTiming().iterations !== Infinity)
    .map((each) => each.finished))"""
AXE = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
SECONDS = 60.0
expect.set_options(timeout=SECONDS * 1000)
SERIOUS = ("serious", "critical")
# Chromium says this about each answer that is an error, also where the page shows it.
_STATUS = "Failed to load resource"
_TASK = "ThreadControllerImpl::RunTask"


def launched(tool: Playwright) -> Browser:
    """Debian's chromium; only root's needs to do without its sandbox."""
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing: `make test` installs it on Debian"
    return tool.chromium.launch(executable_path=path, args=["--no-sandbox"])


class Window:
    """A tab of the browser.

    Args:
        page: the tab.
        base: where the web interface is.

    Attributes:
        complaints: what the browser's console, scripts and content policy complained about.
        dialogs: texts of `alert` and the like, which no page of ours opens.
    """

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._asked)

    def _said(self, message: Any) -> None:
        if message.type == "error" and _STATUS not in message.text:
            self.complaints.append(message.text)

    def _asked(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def log_in(self, user: str = "guest", password: str = "guest") -> None:
        """Fill in the form of the login that is shown."""
        form = self.page.get_by_role("form", name="Login", exact=True)
        form.get_by_label("User").fill(user)
        form.get_by_label("Password").fill(password)
        form.get_by_role("button", name="Log in").click()

    def enter(self) -> None:
        """Open the web interface, and log in."""
        self.page.goto(self.base)
        self.log_in()
        expect(self.page.get_by_role("navigation", name="Pages")).to_be_attached()

    def account(self) -> Locator:
        """Open what is below the name of the user: colours, motion, and the way out."""
        self.page.get_by_role("button", name="Account").click()
        return self.page.locator("#account")

    def show(self, path: str, heading: str) -> None:
        """Open a page, and wait for its heading."""
        self.page.evaluate("path => { location.hash = path }", f"#/{path}")
        expect(self.page.locator("h1")).to_have_text(heading)

    def unfold(self) -> None:
        """Open everything of the page that is folded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")

    def barriers(self) -> list[str]:
        """What axe-core finds serious on the page as it is."""
        if not self.page.evaluate("typeof axe === 'object'"):
            self.page.evaluate(AXE.read_text())
        # Colours that are on their way to others are nobody's choice.
        self.page.evaluate(_SETTLED)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in SERIOUS
            for node in each["nodes"]
        ]


@contextmanager
def worked_ms(page: Page) -> Iterator[list[float]]:
    """How much CPU time each task of the page takes in the block, the longest first at its end.

    On a machine that is busy with other tests a task also waits for a CPU; that time is not its
    own, so it does not count.
    """
    session = page.context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    ended: list[object] = []
    session.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    session.on("Tracing.tracingComplete", lambda end: ended.append(end))
    settings = {"includedCategories": ["toplevel"]}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": settings})
    tasks: list[float] = []
    yield tasks
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    session.detach()
    mains = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks += sorted(
        [
            each["tdur"] / 1000
            for each in events
            if each["name"] == _TASK and (each["pid"], each["tid"]) in mains and "tdur" in each
        ],
        reverse=True,
    )


@contextmanager
def window(browser: Browser, base: str, **options: Any) -> Iterator[Window]:
    """A window of its own: no other has its cookies and settings."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    try:
        yield Window(context.new_page(), base)
    finally:
        context.close()
