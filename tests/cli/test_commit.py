"""`harebell --version` names the commit, in a clone and in a wheel, and works without Git."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harebell.cli import commit as module
from tests.cli.conftest import run_harebell

SHA = "0123456789abcdef0123456789abcdef01234567"


def test_the_version_has_the_commit_where_it_is_known() -> None:
    said = run_harebell("--version").stdout.decode()
    known = module.commit()
    assert said.strip().endswith(f", commit {known})" if known else ")")
    assert re.fullmatch(r"[0-9a-f]{8}|", known)


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": SHA},
        {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{SHA}\n"},
        {
            "HEAD": "ref: refs/heads/a/b\n",
            "packed-refs": f"# x\n{'f' * 40} r\n{SHA} refs/heads/a/b\n",
        },
    ],
)
def test_the_commit_is_read_from_a_clone_in_all_its_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    package = tmp_path / "src" / "harebell"
    package.mkdir(parents=True)
    monkeypatch.setattr(module, "_PACKAGE", package)
    monkeypatch.setattr(module, "_WRITTEN", package / "COMMIT")
    assert module.commit() == ""
    for name, text in files.items():
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text(text)
    assert module.commit() == SHA[:8]
    (package / "COMMIT").write_text("f" * 40 + "\n")
    assert module.commit() == "f" * 8
