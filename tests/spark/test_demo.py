"""`harebell demo` asks Spark what its consumers have added up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run_harebell


@pytest.mark.spark
def test_spark_gives_the_answer_of_the_consumers(tmp_path: Path) -> None:
    result = run_harebell("demo", "--spark", "--picture", str(tmp_path / "answer.svg"))
    assert result.returncode == 0, result.stderr
    assert "read the stream with SQL" in result.stdout.decode()
    assert result.stderr == b"", "Spark prints none of the lines of a start"
