"""The documentation site is whole: built without a warning, offline, searchable, with redirects.

It is built once, for the browser reads the files of the same build.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from harebell import __version__
from tests.docs.markdown import ROOT, documents, read, rows
from tools.site_links import faults

SLUGS = (
    *("queues", "exchanges", "publishers", "consumers", "confirms", "dlx", "ttl", "priority"),
    *("streams", "management", "monitoring", "ssl", "access-control", "configure"),
    *("production-checklist", "vhosts", "policies", "definitions", "prometheus", "quorum-queues"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of all versions, with another one that was there before."""
    directory = tmp_path_factory.mktemp("docs") / "site"
    (directory / "0.0.9").mkdir(parents=True)
    (directory / "0.0.9" / "README.html").touch()
    done = subprocess.run(
        [sys.executable, "tools/docs_site.py", directory],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """A tab without a network that shows the front page from the disk, in light colours."""
    asked: list[str] = []
    context = browser.new_context(offline=True, color_scheme="light")
    made = context.new_page()
    made.on("request", lambda request: asked.append(request.url))
    made.goto((site / "index.html").as_uri())
    # It leads on to the newest version, whose scripts have run when it is loaded.
    made.wait_for_url("**/README.html")
    expect(made.locator("h1").first).to_contain_text("Harebell")
    yield made
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_reader_without_a_network_searches_from_files(page: Page) -> None:
    page.get_by_placeholder("Search").first.fill("delivery limit")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a")
    # The list grows until then, so that a click may miss its link.
    expect(page.locator("#search-results")).to_contain_text("Search finished")
    expect(found.filter(has_text="Queues").first).to_be_visible()
    found.filter(has_text="Queues").first.click()
    expect(page.locator("h1").first).to_contain_text("Queues")


def test_a_reader_switches_to_dark_colours_and_back(page: Page) -> None:
    light = background(page)
    switch = page.get_by_role("button", name=re.compile("theme|Light|Dark")).locator("visible=true")
    seen = {light}
    for _ in range(3):
        switch.first.click()
        seen.add(background(page))
    assert len(seen) == 2
    assert background(page) == light


def test_the_menu_of_versions_has_them_all_and_leads_to_another(page: Page, site: Path) -> None:
    menu = page.get_by_label("Version")
    expect(menu.locator("option")).to_have_text([__version__, "0.0.9"])
    with page.expect_navigation():
        menu.select_option("0.0.9")
    assert page.url == (site / "0.0.9" / "README.html").as_uri()


def test_a_name_of_rabbitmq_leads_to_its_heading(page: Page, site: Path) -> None:
    page.goto((site / __version__ / "docs" / "dlx.html").as_uri())
    page.wait_for_url("**/docs/guides/dead-lettering.html")


def test_every_page_is_built_and_the_navigation_has_it(site: Path) -> None:
    front = (site / __version__ / "README.html").read_text()
    for document in documents():
        if document.path.is_relative_to(ROOT / "docs" / "site"):
            continue
        page = str(Path(document.name).with_suffix(".html"))
        assert (site / __version__ / page).exists()
        assert f'href="{page}"' in front or page == "README.html"


def test_pages_made_from_the_code_have_commands_routes_options_and_classes(site: Path) -> None:
    generated = site / __version__ / "docs" / "generated"
    for name, words in {
        "commands": "harebell queues declare",
        "http-routes": "/api/queues/{vhost}/{name}",
        "spark-options": "max_offsets_per_trigger",
        "client-library": "publish_many",
    }.items():
        assert words in (generated / f"{name}.html").read_text(), name


def test_names_of_rabbitmq_s_pages_lead_to_pages_here(site: Path) -> None:
    table = rows(read(ROOT / "docs/reference/rabbitmq-pages.md").section("Pages"))
    names = [name for row in table for name in re.findall(r"`([^`]+)`", row[0])]
    assert len(names) == len(set(names))
    assert set(SLUGS) <= set(names)
    for name in names:
        for path in (f"{name}.html", f"docs/{name}.html"):
            text = (site / __version__ / path).read_text()
            assert 'http-equiv="refresh"' in text, path
    # That each of them leads to a page and a heading that exist is checked when the site is built.


def test_the_index_of_the_search_is_a_file_that_needs_no_server(site: Path) -> None:
    index = (site / __version__ / "searchindex.js").read_text()
    assert index.startswith("Search.setIndex(")
    assert "docs/guides/queues" in index


def test_versions_that_were_there_stay_and_the_newest_is_shown_first(site: Path) -> None:
    listed = (site / "versions.js").read_text()
    assert listed == f"window.harebellVersions = ['{__version__}', '0.0.9'];\n"
    assert f"url={__version__}/README.html" in (site / "index.html").read_text()
    assert (site / "0.0.9" / "README.html").exists()


def test_faults_of_a_page_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="here"></h1><a href="b.html"></a><a href="#here"></a><a href="#there"></a>'
        '<script src="https://cdn.example/x.js"></script><a href="https://example.org/"></a>'
    )
    (tmp_path / "a.css").write_text("@font-face { src: url('//fonts.example/f.woff2') }")
    assert faults(tmp_path) == [
        "a.html links to b.html, which is not there",
        "a.html links to #there: that page has no such place",
        "a.html loads https://cdn.example/x.js",
        "a.css loads //fonts.example/f.woff2",
    ]
