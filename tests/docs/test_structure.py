"""Documents have one title each, can be found from the index, and link to what is there."""

from __future__ import annotations

import pytest

from tests.docs.markdown import ROOT, Document, documents, read, rows

DOCUMENTS = documents()


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
