"""Sphinx's configuration of the documentation site; `tools/docs_site.py` lays out what it reads.

The pages are the Markdown files of the repository as they are. The navigation is made from the
tables of docs/README.md, and the redirects from the table of docs/reference/rabbitmq-pages.md: what
a reader of the sources sees is what the site has.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from harebell import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent
INDEX = SOURCE / "docs" / "README.md"
REDIRECTS = SOURCE / "docs" / "reference" / "rabbitmq-pages.md"
_ROW = re.compile(r"^\| \[[^]]*\]\(([^)#\s]+)\.md\)", re.M)
_REDIRECT = re.compile(r"^\| ([^|]+) \| \[[^]]*\]\(([^)\s]+)\)", re.M)

project = "Harebell"
author = "Harebell developers"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_reredirects"]
root_doc = "README"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = ["docs/site"]
templates_path = ["templates"]

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autoclass_content = "both"
# Both APIs of the client have a Connection and a Channel, which their own types name shortly.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"Harebell {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_show_copyright = False
html_use_index = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def rabbitmq_redirects() -> dict[str, str]:
    """The page names of RabbitMQ's site, at the top and below docs/, and where they lead here."""
    found = {}
    for names, link in _REDIRECT.findall(REDIRECTS.read_text()):
        page, mark, anchor = link.partition("#")
        path = os.path.relpath(REDIRECTS.parent / page, SOURCE).removesuffix(".md") + ".html"
        for name in re.findall(r"`([^`]+)`", names):
            found[name] = f"{path}{mark}{anchor}"
            found[f"docs/{name}"] = f"../{path}{mark}{anchor}"
    return found


redirects = {"index": "README.html", **rabbitmq_redirects()}
redirect_html_template_file = "docs/site/templates/redirect.html"


def navigation() -> str:
    """Trees of pages as MyST writes them, one for each section of the index."""
    trees = []
    for section in re.split(r"^## ", INDEX.read_text(), flags=re.M)[1:]:
        title, _, rows = section.partition("\n")
        pages = [os.path.relpath(INDEX.parent / row, SOURCE) for row in _ROW.findall(rows)]
        listed = "\n".join(page for page in pages if page != "README")
        trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```")
    return "\n\n".join(trees)


def add_navigation(app: Sphinx, name: str, content: list[str]) -> None:
    """Add to the front page what its readers on the site have at the side."""
    del app
    if name == "README":
        generated = sorted((SOURCE / "docs" / "generated").glob("*.md"))
        pages = "\n".join(f"docs/generated/{page.stem}" for page in generated)
        content[0] += "\n\n```{toctree}\n:hidden:\n\ndocs/README\ndocs/GLOSSARY\n```\n\n"
        content[0] += navigation()
        content[0] += (
            f"\n\n```{{toctree}}\n:hidden:\n:caption: Made from the code\n\n{pages}\n```\n"
        )


def setup(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("source-read", add_navigation)
