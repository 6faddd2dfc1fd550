"""The Makefile fits on a screen, and lists itself."""

from __future__ import annotations

import re
import subprocess

from tests.tidy.sources import ROOT

TARGETS_MAX = 13
TEXT = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z-]+):", TEXT, re.M)


def make(*arguments: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_there_are_few_targets_and_the_usual_ones_are_there() -> None:
    assert len(TARGETS) <= TARGETS_MAX
    usual = {"run", "test", "demo", "bench", "lint", "types", "conformance", "interop", "soak"}
    assert usual < set(TARGETS)


def test_make_alone_lists_every_target_with_a_word_about_it() -> None:
    listed = [line.split(maxsplit=1) for line in make().splitlines()]
    assert [name for name, _ in listed] == TARGETS
    assert all(words[0].isupper() for _, words in listed)


def test_no_target_is_mistaken_for_a_file() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", TEXT, re.M)
    assert phony is not None
    assert set(phony[1].split()) == set(TARGETS)


def test_continuous_integration_runs_make_test_and_nothing_else() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert script.splitlines()[-1] == "exec make test"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_make_test_runs_every_check() -> None:
    plan = make("--dry-run", "test")
    for part in ("ruff check", "ruff format --check", "lint-imports", "mypy"):
        assert part in plan
    assert "HAREBELL_IMPL=native" in plan
    assert "HAREBELL_IMPL=python" in plan
