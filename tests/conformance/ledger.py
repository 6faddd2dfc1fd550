"""The conformance ledger: which normative rules the tests prove, fail, or do not touch.

A test says which rules it proves:

    @pytest.mark.rule("0-9-1#037", "0-9-1r#011")
    def test_an_oversized_frame_is_answered_with_501(): ...

As a pytest plugin this module knows that marker. An unknown id in it, or one that
``not_applicable.toml`` excuses, is an error of collection. ``--ledger=PATH`` writes the counts per
specification as JSON and prints them; ``--ledger-missing`` also lists the rules without a test.
``python -m tests.conformance.ledger`` runs every test that carries a rule and writes
``build/conformance.json``; it exits with 1 if anything failed.

Under pytest-xdist the workers know which test carries which rule, and the controller hears the
outcomes: each worker hands its map over when it ends, and the controller does the counting.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.rule_list import (
    Rule,
    RuleListError,
    load_not_applicable,
    load_rules,
    nearest,
)
from tests.conformance.tally import Phase, Status, Tally, describe

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = Path("build") / "conformance.json"
WORKER_KEY = "harebell_rules_by_test"
PLUGIN_NAME = "harebell-ledger"

# After these endings, as after a failed collection, tests are unaccounted for: no ledger may claim
# to know how the rules stand.
INCONCLUSIVE = frozenset(
    {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR}
)


class MarkerError(ValueError):
    """A rule marker that cites nothing, or something that is no rule to be tested."""


def cited_rules(
    item: pytest.Item, rules: Mapping[str, Rule], not_applicable: Mapping[str, str]
) -> list[str]:
    """The rule ids that a test carries, on itself, its class or its module."""
    cited: dict[str, None] = {}
    for mark in item.iter_markers("rule"):
        if not mark.args or mark.kwargs:
            raise MarkerError("a rule marker names rule ids: @pytest.mark.rule('0-9-1#037')")
        for rule_id in mark.args:
            if not isinstance(rule_id, str) or rule_id not in rules:
                hint = nearest(str(rule_id), rules)
                raise MarkerError(f"unknown rule {rule_id!r}; {hint}")
            if rule_id in not_applicable:
                raise MarkerError(
                    f"rule {rule_id} has a test, and not_applicable.toml lists it "
                    f"({not_applicable[rule_id]!r}): remove one of the two"
                )
            cited[rule_id] = None
    return list(cited)


class Ledger:
    """The plugin of one pytest session: gathers marks and reports, writes and prints the counts."""

    def __init__(
        self, config: pytest.Config, rules: Mapping[str, Rule], not_applicable: Mapping[str, str]
    ) -> None:
        self.config = config
        self.rules = rules
        self.not_applicable = not_applicable
        self.worker = hasattr(config, "workerinput")
        self.path: str | None = config.getoption("--ledger")
        self.list_missing: bool = config.getoption("--ledger-missing")
        self.carried: dict[str, list[str]] = {}
        self.phases: dict[str, list[Phase]] = {}
        self.collected = True
        self.tally: Tally | None = None
        self.verdict = ""

    @property
    def wanted(self) -> bool:
        """Whether this session is the one to count, and was asked to."""
        asked = self.path is not None or self.list_missing
        return asked and not self.worker and not self.config.getoption("collectonly")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn a wrong rule marker into a failed collection of the file or class it is in."""
        report = yield
        problems = []
        for node in report.result or ():
            if isinstance(node, pytest.Item):
                try:
                    cited_rules(node, self.rules, self.not_applicable)
                except MarkerError as error:
                    problems.append(f"{node.nodeid}: {error}")
        if problems:
            report.outcome = "failed"
            report.longrepr = "\n".join(problems)
            report.result = []
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember that tests may be hidden; under pytest-xdist the exit status does not tell."""
        self.collected = self.collected and not report.failed

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember which of the tests that will run carries which rules."""
        for item in session.items:
            cited = cited_rules(item, self.rules, self.not_applicable)
            if cited:
                self.carried[item.nodeid] = cited

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what became of each phase of each test."""
        phase = Phase(str(report.when), report.outcome, hasattr(report, "wasxfail"))
        self.phases.setdefault(report.nodeid, []).append(phase)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a pytest-xdist worker knew of rules; one that crashed tells nothing."""
        del error
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        self.carried.update(output.get(WORKER_KEY, {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Count and write; a failing rule fails the run, even one that is expected to fail."""
        if self.worker:
            output: dict[str, Any] = self.config.workeroutput  # type: ignore[attr-defined]
            output[WORKER_KEY] = self.carried
        if not self.wanted:
            return
        path = self.config.invocation_params.dir / self.path if self.path else None
        if session.exitstatus in INCONCLUSIVE or not self.collected:
            if path is not None:
                path.unlink(missing_ok=True)
            self.verdict = "not written: the run did not get to its end"
            return
        self.tally = Tally(self.rules, self.not_applicable, self.carried, self.phases)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.tally.counts(), indent=2) + "\n", encoding="utf-8")
            self.verdict = f"written to {self.path}"
        if self.tally.having(Status.FAILING) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the counts, what fails, and on request what is missing."""
        if not self.wanted:
            return
        terminalreporter.section("conformance ledger")
        if self.tally is not None:
            self._section(terminalreporter, "", self.tally.table())
            self._section(terminalreporter, "failing rules:", self.tally.failing_lines())
            if self.list_missing:
                missing = [describe(rule) for rule in self.tally.having(Status.MISSING)]
                self._section(terminalreporter, "missing rules:", missing)
        if self.verdict:
            terminalreporter.write_line(self.verdict)

    @staticmethod
    def _section(
        terminalreporter: pytest.TerminalReporter, title: str, lines: Iterable[str]
    ) -> None:
        rows = list(lines)
        if rows and title:
            terminalreporter.write_line(title)
        for row in rows:
            terminalreporter.write_line(row)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of the ledger."""
    group = parser.getgroup("conformance ledger")
    group.addoption(
        "--ledger",
        metavar="PATH",
        default=None,
        help="write the conformance counts per specification to PATH as JSON, and print them",
    )
    group.addoption(
        "--ledger-missing",
        action="store_true",
        default=False,
        help="print the conformance counts and every rule that no test covers",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the rules, register the marker, and start a ledger for this session."""
    try:
        rules = load_rules()
        not_applicable = load_not_applicable(rules)
    except (OSError, RuleListError) as error:
        raise pytest.UsageError(f"conformance ledger: {error}") from error
    config.addinivalue_line(
        "markers", "rule(*ids): the normative rules that this test proves, as '0-9-1#037'"
    )
    config.addinivalue_line(
        "markers", "departs(*ids): the rules that are broken on purpose, as this test shows"
    )
    config.pluginmanager.register(Ledger(config, rules, not_applicable), PLUGIN_NAME)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every test that carries a rule, and write the ledger."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.ledger",
        description="Run the tests that carry a rule marker and write build/conformance.json.",
        epilog="Anything else is handed to pytest, for example -n 2 or -x.",
    )
    parser.add_argument("--missing", action="store_true", help="list the rules without a test")
    options, rest = parser.parse_known_args(arguments)
    os.chdir(ROOT)
    OUTPUT.unlink(missing_ok=True)
    missing = ["--ledger-missing"] if options.missing else []
    status = pytest.main([f"--rootdir={ROOT}", "-m", "rule", f"--ledger={OUTPUT}", *missing, *rest])
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        sys.stderr.write("conformance ledger: no test carries a rule marker\n")
    return 0 if status == pytest.ExitCode.OK else 1


if __name__ == "__main__":
    sys.exit(main())
