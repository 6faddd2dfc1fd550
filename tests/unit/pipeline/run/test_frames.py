"""The functions of Python steps, as they are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.frames import function_of


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("half_a_module", "def f(:\n", "invalid syntax"),
        ("without_a_friend", "import no_such_friend\n", "No module named 'no_such_friend'"),
        ("with_a_typo", "undefined\n", "name 'undefined' is not defined"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, said: str
) -> None:
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PipelineError, match=f"the module {name} cannot be imported: {said}"):
        function_of(f"{name}:f", tmp_path)
