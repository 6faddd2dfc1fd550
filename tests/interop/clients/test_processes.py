"""What applications leave for the tests to read is read when it is whole."""

from __future__ import annotations

from pathlib import Path

from tests.interop.clients.processes import Application


def test_a_mark_that_is_being_written_is_none_yet(tmp_path: Path) -> None:
    application = Application(["never", "started"], "ready", tmp_path, "amqp://nowhere")
    assert application.marks("letters") == []
    with (tmp_path / "marks" / "letters").open("a") as marks:
        for text, found in (("whole\nha", ["whole"]), ("lf\n", ["whole", "half"])):
            marks.write(text)
            marks.flush()
            assert application.marks("letters") == found
