"""A sink goes on with the table that it has written to, and says where that was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.known_table import KnownTable


def stored(checkpoint: Path) -> KnownTable:
    KnownTable(checkpoint, "key").store("a", "Delta table /lake/old", 3)
    return KnownTable(checkpoint, "key")


def test_a_sink_that_names_another_place_reads_where_its_table_was(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        stored(tmp_path).check(None, "Delta table /lake/new", None)
    assert str(caught.value).startswith(
        "there is no table at the Delta table /lake/new, and this checkpoint has written to the "
        "Delta table /lake/old: name that one in the sink again, move the table to the new place"
    )
    with pytest.raises(PipelineError, match="there is another table at the Delta table /lake/new"):
        stored(tmp_path).check("b", "Delta table /lake/new", 3)


def test_a_table_that_was_moved_with_its_sink_is_the_same(tmp_path: Path) -> None:
    known = stored(tmp_path)
    known.check("a", "Delta table /lake/new", 3)
    known.store("a", "Delta table /lake/new", 3)
    with pytest.raises(PipelineError, match=r"^the Delta table /lake/new is gone"):
        KnownTable(tmp_path, "key").check(None, "Delta table /lake/new", None)


def test_an_older_copy_of_a_table_is_named_with_what_it_has(tmp_path: Path) -> None:
    what = "Delta table /lake/old"
    for last, has in ((2, "its last micro-batch is 2"), (None, "it has no micro-batch")):
        with pytest.raises(PipelineError) as caught:
            stored(tmp_path).check("a", what, last)
        assert str(caught.value).startswith(
            f"the {what} is older than this checkpoint: {has}, and the checkpoint counts what was "
            "written to it up to micro-batch 3. Restore a newer copy of it"
        )
    # A newer one has what a killed query could not note any more.
    stored(tmp_path).check("a", what, 4)
    (tmp_path / "tables" / "key.json").unlink()
    KnownTable(tmp_path, "key").check("a", what, 2)


def test_a_note_of_an_earlier_version_has_no_place_and_no_batch(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "key.json").write_text(json.dumps({"table": "a"}))
    KnownTable(tmp_path, "key").check("a", "Delta table /lake/new", 3)
    with pytest.raises(PipelineError, match="is gone"):
        KnownTable(tmp_path, "key").check(None, "Delta table /lake/new", None)
