"""Build the documentation site: `make docs-site`, or `tools/docs_site.py DIRECTORY`.

    DIRECTORY/index.html      leads to the newest version
    DIRECTORY/versions.js     the versions that are there, for the menu of every page
    DIRECTORY/0.1.0/          one version, whole: it needs no other directory and no network

Another version's directory that is already there stays, so that a site of several versions is made
by building each of them into the same directory. Sphinx reads a copy of the Markdown, to which the
pages that are made from the code are added. The build fails at any warning, at a page that the
navigation does not have, and at a link that leads nowhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from site_links import faults
from site_pages import generated_pages

from harebell import __version__

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\]\(([^)#\s:]+)\)")
_REDIRECT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Harebell</title>
<meta http-equiv="refresh" content="0; url={0}/README.html">
</head>
<body><p>The documentation of <a href="{0}/README.html">Harebell {0}</a>.</p></body>
</html>
"""


def fail(sentence: str) -> None:
    """End with a sentence."""
    sys.exit(f"harebell: the documentation site was not built: {sentence}")


def lay_out(target: Path) -> None:
    """Copy what Sphinx reads: the pages, the files that they link to, and the generated pages."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        _copy(page, target)
        for link in _LINK.findall(page.read_text()):
            linked = (page.parent / link).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT):
                _copy(linked, target)
    shutil.copytree(ROOT / "docs" / "site", target / "docs" / "site")
    for name, text in generated_pages().items():
        path = target / "docs" / "generated" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def _copy(file: Path, target: Path) -> None:
    copied = target / file.relative_to(ROOT)
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, copied)


def build(source: Path, target: Path) -> None:
    """Run Sphinx, for which every warning is an error."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--builder", "html", "--jobs", "auto"),
            *(
                "--fail-on-warning",
                "--quiet",
                "--fresh-env",
                "--doctree-dir",
                source.parent / "doctrees",
            ),
            *("--conf-dir", source / "docs" / "site", source, target),
        ],
        cwd=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fail(f"Sphinx says:\n{done.stdout.replace(f'{source}/', '')}")


def newest_first(site: Path) -> list[str]:
    """The versions that are built."""
    found = [path.parent.name for path in site.glob("*/README.html")]
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)], reverse=True)


def main(arguments: list[str]) -> None:
    """Build this version, and list it beside the others."""
    if len(arguments) != 1:
        fail("usage: tools/docs_site.py DIRECTORY")
    site = Path(arguments[0])
    target = site / __version__
    with tempfile.TemporaryDirectory(prefix="harebell-site-") as scratch:
        source = Path(scratch) / "source"
        lay_out(source)
        build(source, Path(scratch) / "html")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(
            Path(scratch) / "html", target, ignore=shutil.ignore_patterns(".buildinfo*")
        )
    versions = newest_first(site)
    (site / "versions.js").write_text(f"window.harebellVersions = {versions!r};\n")
    (site / "index.html").write_text(_REDIRECT.format(versions[0]))
    found = faults(target)
    if found:
        fail("\n" + "\n".join(found))
    print(site / "index.html")


if __name__ == "__main__":
    main(sys.argv[1:])
