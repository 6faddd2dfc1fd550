"""The ledger counts honestly: every way a test can end, with and without pytest-xdist."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conformance.ledger import ROOT
from tests.conformance.rule_list import HERE, SPECIFICATIONS, load_not_applicable, load_rules
from tests.conformance.tally import Outcome, Phase, Status, Tally, outcome

if TYPE_CHECKING:
    from pathlib import Path

RULES = load_rules()
EXCUSES = load_not_applicable(RULES)
EXCUSED = next(iter(EXCUSES))
KEYS = ["rules", "passing", "failing", "not_applicable", "missing"]
PLUGIN = ("-p", "tests.conformance.ledger", "-p", "no:asyncio", "--strict-markers")
SETUP, CALL, TEARDOWN = (Phase(when, "passed") for when in ("setup", "call", "teardown"))


class Run:
    """One run of pytest over the test files of ``inner`` with the ledger loaded.

    Runs with workers get a process of their own; the others run inside this one, for speed.
    """

    def __init__(self, pytester: pytest.Pytester, *arguments: str) -> None:
        self.path: Path = pytester.path / "out" / "conformance.json"
        alone = "-n2" in arguments
        run = pytester.runpytest_subprocess if alone else pytester.runpytest_inprocess
        self.result = run(*PLUGIN, "--ledger=out/conformance.json", *arguments)
        self.text = self.result.stdout.str() + self.result.stderr.str()

    def ledger(self) -> dict[str, dict[str, int]]:
        ledger: dict[str, dict[str, int]] = json.loads(self.path.read_text(encoding="utf-8"))
        assert list(ledger) == list(SPECIFICATIONS)
        for counts in ledger.values():
            assert list(counts) == KEYS
            assert all(type(count) is int for count in counts.values())
            assert sum(counts[key] for key in KEYS[1:]) == counts["rules"]
        return ledger

    def counts(self, specification: str) -> tuple[int, int]:
        """How many rules pass and how many fail."""
        row = self.ledger()[specification]
        return row["passing"], row["failing"]


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # An inner run is a run of its own: nothing of the outer xdist or options may leak in.
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    return pytester


def write(inner: pytest.Pytester, body: str, name: str = "test_inner") -> None:
    inner.makepyfile(**{name: "import pytest\n\n" + body})


PASSES = """
@pytest.mark.rule("0-9-1#037", "0-9-1r#011")
def test_passes():
    pass
"""
FAILS = """
@pytest.mark.rule("0-9-1#038")
def test_fails():
    assert 1 == 2
"""


def marked(marker: str, name: str = "test_marked") -> str:
    """A test that passes and carries this rule marker, which may be wrong."""
    return f"\n@pytest.mark.rule({marker})\ndef {name}():\n    pass\n"


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([SETUP, CALL, TEARDOWN], Outcome.PASSED),
        ([SETUP, Phase("call", "failed"), TEARDOWN], Outcome.FAILED),
        ([Phase("setup", "failed"), TEARDOWN], Outcome.FAILED),
        ([SETUP, CALL, Phase("teardown", "failed")], Outcome.FAILED),
        ([Phase("setup", "skipped"), TEARDOWN], Outcome.SKIPPED),
        ([SETUP, Phase("call", "skipped"), TEARDOWN], Outcome.SKIPPED),
        ([SETUP, Phase("call", "skipped", expected_to_fail=True), TEARDOWN], Outcome.FAILED),
        ([SETUP, Phase("call", "passed", expected_to_fail=True), TEARDOWN], Outcome.FAILED),
        ([Phase("???", "failed")], Outcome.FAILED),
        ([SETUP], Outcome.FAILED),
        ([], Outcome.FAILED),
    ],
)
def test_phases_add_up_to_one_outcome(phases: list[Phase], expected: Outcome) -> None:
    assert outcome(phases) is expected


def test_a_rule_passes_only_when_no_test_that_carries_it_fails() -> None:
    good, bad = [SETUP, CALL, TEARDOWN], [SETUP, Phase("call", "failed"), TEARDOWN]
    skipped = [Phase("setup", "skipped"), TEARDOWN]
    tally = Tally(
        RULES,
        EXCUSES,
        {
            "good": ["0-8#001", "0-8#002", "0-8#003"],
            "bad": ["0-8#002"],
            "skipped": ["0-8#003", "0-8#004"],
            "crashed": ["0-8#005"],
        },
        {"good": good, "bad": bad, "skipped": skipped},
    )
    status = {n: tally.status[f"0-8#00{n}"] for n in range(1, 6)}
    assert status == {
        1: Status.PASSING,
        2: Status.FAILING,
        3: Status.PASSING,
        4: Status.MISSING,
        5: Status.FAILING,
    }


def test_a_tally_refuses_a_rule_both_tested_and_excused() -> None:
    with pytest.raises(ValueError, match=f"tested and listed as not applicable: {EXCUSED}"):
        Tally(RULES, EXCUSES, {"test": [EXCUSED]}, {"test": [SETUP, CALL, TEARDOWN]})


def test_the_table_ends_with_totals_over_all_rules() -> None:
    lines = Tally(RULES, EXCUSES, {}, {}).table()
    assert [line.split()[0] for line in lines] == ["specification", *SPECIFICATIONS, "all"]
    excused = len(EXCUSES)
    assert lines[-1].split() == ["all", "623", "0", "0", str(excused), str(623 - excused)]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_passing_and_failing_rules_are_counted_and_written(
    inner: pytest.Pytester, workers: str
) -> None:
    write(inner, PASSES + FAILS)
    run = Run(inner, workers)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.counts("0-9-1") == (1, 1)
    assert run.counts("0-9-1r") == (1, 0)
    assert run.counts("0-8") == (0, 0)
    run.result.stdout.fnmatch_lines(
        ["specification*rules*passing*failing*not applicable*missing", "failing rules:"]
    )
    run.result.stdout.fnmatch_lines(["0-9-1#038*", "    test_inner.py::test_fails"])


def test_counts_are_the_same_with_and_without_workers(inner: pytest.Pytester) -> None:
    write(inner, PASSES + FAILS)
    write(inner, PASSES.replace("0-9-1#037", "0-8#001"), "test_other")
    alone = Run(inner, "-n0").ledger()
    assert Run(inner, "-n2").ledger() == alone


def test_a_marker_on_a_module_or_class_counts_for_its_tests(inner: pytest.Pytester) -> None:
    body = """
pytestmark = pytest.mark.rule("0-9-1#049")

@pytest.mark.rule("0-9-1#050")
class TestHeartbeat:
    @pytest.mark.rule("0-9-1#051")
    def test_it(self):
        pass
"""
    write(inner, body)
    run = Run(inner)
    assert run.result.ret == pytest.ExitCode.OK
    assert run.counts("0-9-1") == (3, 0)


def test_one_failing_case_of_a_parametrised_test_fails_the_rule(inner: pytest.Pytester) -> None:
    body = """
@pytest.mark.rule("0-9-1#035")
@pytest.mark.parametrize("size", [1, 2])
def test_size(size):
    assert size == 1
"""
    write(inner, body)
    assert Run(inner).counts("0-9-1") == (0, 1)


@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_an_error_around_the_test_fails_the_rule(inner: pytest.Pytester, phase: str) -> None:
    before, after = ("1 / 0", "pass") if phase == "setup" else ("pass", "1 / 0")
    body = f"""
@pytest.fixture
def broker():
    {before}
    yield
    {after}

@pytest.mark.rule("0-9-1#035")
def test_with_broker(broker):
    pass
"""
    write(inner, body)
    run = Run(inner)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.counts("0-9-1") == (0, 1)


def test_a_skipped_test_covers_nothing(inner: pytest.Pytester) -> None:
    body = """
@pytest.mark.rule("0-9-1#035")
def test_skips():
    pytest.skip("no reason")
"""
    write(inner, body)
    run = Run(inner)
    assert run.counts("0-9-1") == (0, 0)
    assert run.ledger()["0-9-1"]["missing"] == 58 - run.ledger()["0-9-1"]["not_applicable"]


@pytest.mark.parametrize("broken", ["assert False", "pass"])
def test_an_expected_failure_is_a_failing_rule_and_fails_the_run(
    inner: pytest.Pytester, broken: str
) -> None:
    body = f"""
@pytest.mark.xfail(strict=False)
@pytest.mark.rule("0-9-1#035")
def test_known_bug():
    {broken}
"""
    write(inner, body)
    run = Run(inner)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.counts("0-9-1") == (0, 1)


@pytest.mark.parametrize(
    ("marker", "complaint"),
    [
        ('"0-9-1#999"', "*unknown rule '0-9-1#999'; 0-9-1 has 0-9-1#001 to 0-9-1#058*"),
        ('"0-9-1"', "*unknown rule '0-9-1'; 0-9-1 has 0-9-1#001 to 0-9-1#058*"),
        ('"1-0#001"', "*unknown rule '1-0#001'; an id starts with one of 0-8, *"),
        ("37", "*unknown rule 37; an id starts with one of 0-8, *"),
        ("", "*a rule marker names rule ids: @pytest.mark.rule*"),
        (f'"{EXCUSED}"', f"*rule {EXCUSED} has a test, and not_applicable.toml lists it*"),
    ],
)
def test_a_wrong_marker_is_an_error_of_collection_and_no_ledger_is_written(
    inner: pytest.Pytester, marker: str, complaint: str
) -> None:
    write(inner, PASSES + marked(marker))
    run = Run(inner)
    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    run.result.stdout.fnmatch_lines([complaint])
    assert not run.path.exists()


def test_a_wrong_marker_stops_a_run_with_workers_too(inner: pytest.Pytester) -> None:
    write(inner, PASSES + marked('"0-9-1#999"') + marked(f'"{EXCUSED}"', "test_excused"))
    run = Run(inner, "-n2")
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    run.result.stdout.fnmatch_lines(["*unknown rule '0-9-1#999'*", f"*rule {EXCUSED} has a test*"])
    assert "INTERNALERROR" not in run.text
    assert not run.path.exists()


def test_a_run_that_cannot_collect_removes_the_ledger_of_an_earlier_one(
    inner: pytest.Pytester,
) -> None:
    write(inner, PASSES)
    assert Run(inner).counts("0-9-1") == (1, 0)
    write(inner, "import no_such_module_anywhere\n", "test_broken")
    run = Run(inner)
    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert not run.path.exists()
    run.result.stdout.fnmatch_lines(["not written: the run did not get to its end"])


def test_a_worker_that_dies_fails_the_rule_it_was_at(inner: pytest.Pytester) -> None:
    body = """
import os

@pytest.mark.rule("0-9-1#035")
def test_dies():
    os._exit(3)
"""
    write(inner, PASSES + body)
    run = Run(inner, "-n2")
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.counts("0-9-1") == (1, 1)


def test_a_test_that_an_early_stop_left_out_does_not_pass_its_rule(
    inner: pytest.Pytester,
) -> None:
    write(inner, FAILS + PASSES)
    assert Run(inner, "-x").counts("0-9-1") == (0, 2)


def test_missing_rules_are_listed_on_request_only(inner: pytest.Pytester) -> None:
    write(inner, PASSES)
    line = f"0-9-1#035 *{RULES['0-9-1#035'].text}"
    Run(inner).result.stdout.no_fnmatch_line(line)
    run = Run(inner, "--ledger-missing")
    run.result.stdout.fnmatch_lines(["missing rules:", line])
    run.result.stdout.no_fnmatch_line(f"0-9-1#037 *{RULES['0-9-1#037'].text}")
    run.result.stdout.no_fnmatch_line(f"{EXCUSED} *{RULES[EXCUSED].text}")


def test_without_its_options_the_ledger_is_silent(inner: pytest.Pytester) -> None:
    write(inner, PASSES)
    result = inner.runpytest_inprocess(*PLUGIN)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*conformance ledger*")


def test_the_marker_is_documented_by_pytest(inner: pytest.Pytester) -> None:
    result = inner.runpytest_inprocess(*PLUGIN, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.rule(*ids): the normative rules*"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own with this ledger and rule list, and two tests, one without a rule."""
    package = tmp_path / "tests" / "conformance"
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    for name in ("passwords.py", "running.py"):  # what conftest.py of this package imports
        shutil.copy(HERE.parent / name, tmp_path / "tests")
    (tmp_path / "tests" / "conftest.py").write_text('pytest_plugins = ["tests.conformance.ledger"]')
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["."]\n'
        'addopts = "--strict-markers --import-mode=importlib -p no:asyncio"\n'
    )
    unmarked = "\ndef test_unmarked():\n    assert False, 'a test without a rule was run'\n"
    (tmp_path / "tests" / "test_broker.py").write_text("import pytest\n" + PASSES + unmarked)
    return tmp_path


def command(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.conformance.ledger", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_the_command_runs_the_tests_with_rules_and_writes_the_ledger(project: Path) -> None:
    done = command(project, "--missing", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = json.loads((project / "build" / "conformance.json").read_text(encoding="utf-8"))
    assert [ledger[name]["passing"] for name in SPECIFICATIONS] == [0, 1, 1, 0]
    assert "missing rules:" in done.stdout
    assert "1 passed, 1 deselected" in done.stdout


@pytest.mark.parametrize(
    "body",
    [
        FAILS,
        PASSES + "@pytest.mark.xfail" + FAILS,
        marked('"0-9-1#999"'),
        "def test_without_a_rule():\n    pass\n",
    ],
    ids=["failing", "xfail", "unknown rule", "no rule"],
)
def test_the_command_exits_with_one_when_a_rule_fails_or_none_is_tested(
    project: Path, body: str
) -> None:
    (project / "tests" / "test_broker.py").write_text("import pytest\n" + body)
    done = command(project)
    assert done.returncode == 1, done.stdout + done.stderr
