"""Looks for what is wrong with a built site: links that lead nowhere, and anything from elsewhere.

A reader without a network has every page, picture, script, style and font, so a page may link to
other sites but not load anything from them.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
_STYLE_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class _Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that links can name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        values = dict(attrs)
        place = values.get("id") or values.get("name")
        if place:
            self.places.add(place)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        loaded = values.get(_LOADS.get(tag, ""))
        if loaded and values.get("rel") not in ("canonical", "author"):
            self.loads.append(loaded)
        if tag == "meta" and values.get("http-equiv") == "refresh":
            self.links.append((values.get("content") or "").partition("url=")[2])


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> list[str]:
    """Sentences about links without a target and about files from elsewhere."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    faults.append(f"{name} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                faults.append(f"{name} links to {link}, which is not there")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].places
            ):
                faults.append(f"{name} links to {link}: that page has no such place")
    for path in sorted(site.rglob("*.css")):
        for pair in _STYLE_URL.findall(path.read_text(encoding="utf-8")):
            url = urlsplit("".join(pair))
            if url.netloc:
                faults.append(f"{path.relative_to(site)} loads {url.geturl()}")
    return faults
