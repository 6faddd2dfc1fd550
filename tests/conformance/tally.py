"""The arithmetic of the ledger: outcomes of tests in, counts per specification out.

A test has one outcome, made of its phases (setup, call, teardown):

    phases                                    outcome
    any phase failed, or expected to fail     FAILED    (xfail and xpass are debts, not passes)
    none of the above, any phase skipped      SKIPPED
    call passed                               PASSED
    collected, never reported                 FAILED    (a crash or an early stop proves nothing)

A rule has one status, made of the tests that carry it:

    listed in not_applicable.toml             NOT_APPLICABLE  (no test may carry it)
    any test FAILED                           FAILING
    at least one test PASSED                  PASSING
    no test, or skipped ones only             MISSING
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tests.conformance.rule_list import SPECIFICATIONS, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Outcome(Enum):
    """What a whole test came to."""

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"


class Status(Enum):
    """What the tests say about a rule; the values are the keys of the written ledger."""

    PASSING = "passing"
    FAILING = "failing"
    NOT_APPLICABLE = "not_applicable"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Phase:
    """One report about one test: setup, call or teardown."""

    when: str
    outcome: str
    expected_to_fail: bool = False


def outcome(phases: Iterable[Phase]) -> Outcome:
    """The outcome of a test whose reports are these."""
    seen = list(phases)
    if any(phase.outcome == "failed" or phase.expected_to_fail for phase in seen):
        return Outcome.FAILED
    if any(phase.outcome == "skipped" for phase in seen):
        return Outcome.SKIPPED
    if any(phase.when == "call" and phase.outcome == "passed" for phase in seen):
        return Outcome.PASSED
    return Outcome.FAILED


class Tally:
    """The status of every rule, after a run."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        not_applicable: Iterable[str],
        carried: Mapping[str, Iterable[str]],
        phases: Mapping[str, Iterable[Phase]],
    ) -> None:
        """``carried``: rule ids by test; ``phases``: reports by test (both by node id)."""
        self.rules = rules
        self.tests: dict[str, dict[str, Outcome]] = defaultdict(dict)
        for test, rule_ids in carried.items():
            result = outcome(phases.get(test, ()))
            for rule_id in rule_ids:
                self.tests[rule_id][test] = result
        excused = frozenset(not_applicable)
        clashes = sorted(excused & self.tests.keys())
        if clashes:
            raise ValueError(f"tested and listed as not applicable: {', '.join(clashes)}")
        self.status = {rule_id: self._status(rule_id, excused) for rule_id in rules}

    def _status(self, rule_id: str, excused: frozenset[str]) -> Status:
        if rule_id in excused:
            return Status.NOT_APPLICABLE
        outcomes = set(self.tests.get(rule_id, {}).values())
        if Outcome.FAILED in outcomes:
            return Status.FAILING
        return Status.PASSING if Outcome.PASSED in outcomes else Status.MISSING

    def having(self, status: Status) -> list[Rule]:
        """The rules of that status, in the order of the lists."""
        return [rule for rule in self.rules.values() if self.status[rule.id] is status]

    def counts(self) -> dict[str, dict[str, int]]:
        """Per specification: how many rules there are, and how many of each status."""
        counts = {
            specification: {"rules": 0} | {status.value: 0 for status in Status}
            for specification in SPECIFICATIONS
        }
        for rule in self.rules.values():
            row = counts[rule.specification]
            row["rules"] += 1
            row[self.status[rule.id].value] += 1
        return counts

    def table(self) -> list[str]:
        """The counts as lines of text, with a line of totals."""
        counts = self.counts()
        columns = ("rules", *(status.value for status in Status))
        totals = {column: sum(row[column] for row in counts.values()) for column in columns}
        head = "specification" + "".join(f"{c.replace('_', ' '):>16}" for c in columns)
        return [head] + [
            f"{name:<13}" + "".join(f"{row[column]:>16}" for column in columns)
            for name, row in (counts | {"all": totals}).items()
        ]

    def failing_lines(self) -> list[str]:
        """Each failing rule, and below it the tests that make it so."""
        lines: list[str] = []
        for rule in self.having(Status.FAILING):
            lines.append(describe(rule))
            lines.extend(
                f"    {test}"
                for test, result in self.tests[rule.id].items()
                if result is Outcome.FAILED
            )
        return lines


def describe(rule: Rule) -> str:
    """A rule in one line of text."""
    return f"{rule.id:<11} {rule.level:<10} {rule.where}: {rule.text}"
