"""Write docs/reference/interop.md from the results of the suites."""

from __future__ import annotations

from dataclasses import dataclass

from tests.interop.suites.catalogue import KNOWN, SUITES, Suite
from tests.interop.suites.outcomes import Outcomes

_HEAD = """\
# Tests of other clients

The authors of the clients below have written test suites for RabbitMQ. `make interop` downloads
the releases named here, runs their tests on Harebell and on RabbitMQ, and writes this page. The
tests are not changed, except that those in Python 2 are converted to Python 3. Both brokers run in
a network without access to other networks, and are restarted for every suite.

"""


@dataclass(frozen=True)
class Comparison:
    """The results of one suite on both brokers."""

    suite: Suite
    harebell: Outcomes
    rabbitmq: Outcomes

    @property
    def worse(self) -> list[str]:
        """Return the tests that pass only on RabbitMQ."""
        return sorted(
            test for test, passed in self.rabbitmq.items()
            if passed and not self.harebell.get(test, False)
        )  # fmt: skip

    @property
    def better(self) -> list[str]:
        """Return the tests that pass only on Harebell."""
        return sorted(
            test for test, passed in self.harebell.items()
            if passed and not self.rabbitmq.get(test, False)
        )  # fmt: skip

    @property
    def neither(self) -> list[str]:
        """Return the tests that pass on neither broker."""
        tests = {*self.harebell, *self.rabbitmq}
        return sorted(
            test for test in tests
            if not self.harebell.get(test, False) and not self.rabbitmq.get(test, False)
        )  # fmt: skip

    @property
    def tests(self) -> int:
        """Return the number of tests."""
        return len({*self.harebell, *self.rabbitmq})


def reason(suite: Suite, test: str, *, better: bool = False) -> str:
    """Return why a test does not pass on both brokers, "" if the reason is not known.

    Args:
        suite: the suite of the test.
        test: its name.
        better: whether it passes on Harebell.
    """
    for (label, pattern), why in KNOWN.items():
        if label == suite.name and pattern in test:
            return why
    return suite.ours if better else ""


def render(comparisons: list[Comparison], versions: dict[str, str], date: str) -> str:
    """Return the text of the page."""
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
