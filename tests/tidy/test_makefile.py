"""The Makefile fits on a screen, and lists itself."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml

from tests.tidy.sources import ROOT

C_TYPES = "from harebell.base.c_types import"
TARGETS_MAX = 18
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


def starting_spark() -> list[str]:
    """Files of tests that use the mark `spark`, from the root."""
    return [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"\bmark\.spark\b", path.read_text()) and path.name != "test_makefile.py"
    ]


def same_tested() -> set[str]:
    """Files of tests that would say the same uncompiled."""
    found = re.search(r"^SAME .*addprefix tests/,([^)]+)", TEXT, re.M)
    assert found is not None
    return {f"tests/{path}" for path in found[1].split()}


def once_tested() -> list[str]:
    """Directories and files of unit tests that run compiled only, as what they test is so only."""
    plan = make("--dry-run", ".test-python")
    ignored = re.findall(r"--ignore=(tests/unit/\S+)", plan)
    return [path for path in ignored if path not in same_tested()]


def test_there_are_few_targets_and_the_usual_ones_are_there() -> None:
    assert len(TARGETS) <= TARGETS_MAX
    usual = {
        "run",
        "test",
        "demo",
        "bench",
        "lint",
        "types",
        "conformance",
        "interop",
        "soak",
        "coverage",
    }

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


def test_make_coverage_measures_the_unit_tests_of_the_uncompiled_package() -> None:
    plan = [line for line in make("--dry-run", "coverage").splitlines() if "-m pytest" in line]
    assert len(plan) == 1
    words = shlex.split(make("--dry-run", "coverage").replace("\\\n", ""))
    assert "HAREBELL_IMPL=python" in words
    assert "--cov=harebell" in words
    assert words[-1] == "tests/unit"
    assert "not (soak or spark)" in words


def test_pre_commit_runs_programs_of_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repository["repo"] for repository in hooks] == ["local"]
    entries = [hook["entry"] for hook in hooks[0]["hooks"]]
    linted = {line.split()[0] for line in make("--dry-run", "lint").splitlines()}
    assert [entry.split()[0] for entry in entries if entry.split()[0] not in linted] == []
    assert {hook["language"] for hook in hooks[0]["hooks"]} == {"system"}


def test_make_test_leaves_no_test_out() -> None:
    lines = [
        next(line for line in make("--dry-run", part).splitlines() if " -m pytest " in line)
        for part in (".test-native", ".test-python", ".test-rest", ".test-spark")
    ]
    both, plain, rest, spark = map(shlex.split, lines)
    directories = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir()}
    ignored = {word.removeprefix("--ignore=") for word in rest if word.startswith("--ignore=")}
    assert "tests" in rest
    assert ignored <= set(both) & directories
    assert ignored - set(plain) == {"tests/robustness"}
    once = {word for word in plain if word.startswith("--ignore=")}
    assert once == {f"--ignore={path}" for path in (*once_tested(), *same_tested())}
    # What the rest leaves to Spark by its mark is where Spark's own command looks for it.
    assert rest[rest.index("-m", 3) + 1] == "not (soak or spark)"
    assert spark[spark.index("-m", 3) + 1] == "spark and not soak"
    marked = {path for path in starting_spark() if not path.startswith("tests/spark/")}
    assert marked <= set(spark)
    assert "tests/spark" in spark


def test_modules_not_tested_uncompiled_have_no_compiled_module() -> None:
    assert once_tested(), "the rule has nothing to say any more"
    for tested in once_tested():
        package = ROOT / "src/harebell" / tested.removeprefix("tests/unit/")
        # A file tests modules of the package itself, and a directory all that is below.
        modules = package.parent.glob("*") if package.suffix else package.rglob("*")
        package = package.parent if package.suffix else package
        assert (package / "__init__.py").exists(), tested
        sources = [path for path in modules if path.suffix in (".py", ".pyx")]
        assert not [
            path for path in sources if path.suffix == ".pyx" or C_TYPES in path.read_text("utf-8")
        ], tested


def test_make_test_runs_every_part_and_fails_if_one_of_them_did(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for program, status in {"ruff": 1, "lint-imports": 0, "mypy": 1, "python": 0}.items():
        script = tmp_path / program
        noted = f'echo "{program} $*" >> {log}\nexit {status}\n'
        parts = f'case "$1" in tools/*) exec {sys.executable} "$@" ;; esac\n'
        script.write_text(f"#!/bin/sh\n{parts}{noted}")
        script.chmod(0o755)
    done = subprocess.run(
        ["make", "--no-print-directory", f"BIN={tmp_path}", "SETUP=true", "test"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    called = log.read_text().splitlines()
    assert Counter(line.split()[0] for line in called) == {"ruff": 1, "mypy": 1, "python": 4}
    ran = [line for line in called if line.startswith("python")]
    before = ran[: next(at for at, line in enumerate(ran) if "-m spark and not soak" in line)]
    # Beside Spark there is only what leaves it the machine.
    assert {"tests/fuzz", "--ignore=tests/fuzz"} <= {line.split()[-1] for line in before}
    assert "nice -n 10" in make("--dry-run", ".test-python")
    assert done.returncode != 0
    # The last lines say how long each part took and which failed, where a reader of the log looks.
    assert re.findall(r"^(\S+): \d+ s(, failed)?$", done.stderr, re.M) == [
        ("lint", ", failed"),
        ("types", ", failed"),
        *((f".test-{part}", "") for part in ("python", "native", "rest", "spark")),
    ]
