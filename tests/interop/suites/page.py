"""Writes docs/reference/interop.md from what the suites came to, and reads its table again."""

from __future__ import annotations

from dataclasses import dataclass

from tests.interop.suites.catalogue import KNOWN, SUITES, Suite
from tests.interop.suites.outcomes import Outcomes

_HEAD = """\
# Tests of other clients

The clients below have test suites of their own, written by their authors against RabbitMQ.
`make interop` fetches the releases named here, runs their tests on Harebell and on RabbitMQ, and
writes this page. The tests are run as they are, those in Python 2 rewritten for Python 3; both
brokers have a network of their own, without a way out, and start afresh for every suite.

"""


@dataclass(frozen=True)
class Comparison:
    """What one suite came to on both brokers."""

    suite: Suite
    harebell: Outcomes
    rabbitmq: Outcomes

    @property
    def worse(self) -> list[str]:
        """Tests that pass on RabbitMQ and not on Harebell."""
        return sorted(
            test for test, passed in self.rabbitmq.items()
            if passed and not self.harebell.get(test, False)
        )  # fmt: skip

    @property
    def better(self) -> list[str]:
        """Tests that pass on Harebell and not on RabbitMQ."""
        return sorted(
            test for test, passed in self.harebell.items()
            if passed and not self.rabbitmq.get(test, False)
        )  # fmt: skip

    @property
    def neither(self) -> list[str]:
        """Tests that pass on no broker."""
        tests = {*self.harebell, *self.rabbitmq}
        return sorted(
            test for test in tests
            if not self.harebell.get(test, False) and not self.rabbitmq.get(test, False)
        )  # fmt: skip

    @property
    def tests(self) -> int:
        """How many tests there are."""
        return len({*self.harebell, *self.rabbitmq})


def reason(suite: Suite, test: str, *, better: bool = False) -> str:
    """Why a test does not pass everywhere, or "" if nobody has looked yet.

    Args:
        suite: where it is from.
        test: its name.
        better: whether it passes on Harebell.
    """
    for (label, pattern), why in KNOWN.items():
        if label == suite.name and pattern in test:
            return why
    return suite.ours if better else ""


def render(comparisons: list[Comparison], versions: dict[str, str], date: str) -> str:
    """The whole page."""
    took_part = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [f"{_HEAD}Run on {date} with {took_part}.", ""]
    lines += ["| suite | tests | pass on RabbitMQ | pass on Harebell |", "|---|---|---|---|"]
    for found in comparisons:
        ours, theirs = sum(found.harebell.values()), sum(found.rabbitmq.values())
        lines.append(f"| {found.suite.label} | {found.tests} | {theirs} | {ours} |")
    lines += ["", "## Tests that do not pass on both", ""]
    lines += ["| suite | test | passes on | why |", "|---|---|---|---|"]
    for found in comparisons:
        groups = (("RabbitMQ", found.worse), ("Harebell", found.better), ("neither", found.neither))
        for where, tests in groups:
            lines += [
                f"| {found.suite.label} | {_cell(test)} | {where} | "
                f"{reason(found.suite, test, better=where == 'Harebell')} |"
                for test in tests
            ]
    lines += ["", "## Tests that are left out", ""]
    lines += ["| suite | tests with these words | why |", "|---|---|---|"]
    for suite in SUITES:
        lines += [f"| {suite.label} | {word} | {why} |" for word, why in suite.left_out.items()]
    return "\n".join(lines) + "\n"


def _cell(test: str) -> str:
    return test.replace("|", "\\|").replace("<", "&lt;")
