"""Documents have one title each, can be found from the index, and link to what is there."""

from __future__ import annotations

import pytest

from tests.docs.markdown import ROOT, Document, documents, read, rows

DOCUMENTS = documents()
COLUMNS = 120
CELL_CHARACTERS = 520
GENERATED = ("docs/internals/track-record.md", "docs/reference/interop.md")
"""Pages of long records: what a test ran, and why a suite differs."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_a_document_has_one_title_and_it_comes_first(document: Document) -> None:
    assert len(document.titles()) == 1
    assert document.prose[0].startswith("# ")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_to_files_that_exist(document: Document) -> None:
    for link in document.links():
        if link:
            target = (document.path.parent / link).resolve()
            assert target.exists(), f"{document.name} links to {link}"
            assert target.is_relative_to(ROOT)


def test_every_document_is_linked_from_the_index() -> None:
    index = read(ROOT / "docs/README.md")
    linked = {(index.path.parent / link).resolve() for link in index.links() if link}
    every = {document.path for document in DOCUMENTS} - {index.path}
    assert linked == every


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in read(ROOT / "README.md").links()


def test_tables_are_complete() -> None:
    for document in DOCUMENTS:
        for row in rows("\n".join(document.prose)):
            assert len(row) > 1, f"{document.name}: {row}"


def test_lines_and_cells_are_short_enough_to_read() -> None:
    for document in DOCUMENTS:
        if document.name in GENERATED:
            continue
        for number, line in enumerate(document.prose, start=1):
            where = f"{document.name}, line {number}"
            if line.startswith("|"):
                assert all(len(cell) <= CELL_CHARACTERS for cell in line.split("|")), where
            elif "](" not in line and not line.startswith("#"):
                assert len(line) <= COLUMNS, f"{where}: {len(line)} columns"
