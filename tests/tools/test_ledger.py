"""The ledger counts honestly: a rule passes when tests prove it, with and without pytest-xdist."""

from __future__ import annotations

from tests.conformance.rule_list import load_not_applicable, load_rules
from tests.conformance.tally import Phase, Status, Tally

RULES = load_rules()
EXCUSES = load_not_applicable(RULES)
SETUP, CALL, TEARDOWN = (Phase(when, "passed") for when in ("setup", "call", "teardown"))
FAILED = Phase("call", "failed")


def test_a_rule_passes_only_when_no_test_that_carries_it_fails() -> None:
    tally = Tally(
        RULES,
        EXCUSES,
        {
            "good": ["0-8#001", "0-8#002", "0-8#003"],
            "bad": ["0-8#002"],
            "skipped": ["0-8#003", "0-8#004"],
            "crashed": ["0-8#005"],
        },
        {
            "good": [SETUP, CALL, TEARDOWN],
            "bad": [SETUP, FAILED, TEARDOWN],
            "skipped": [Phase("setup", "skipped"), TEARDOWN],
        },
    )
    assert [tally.status[f"0-8#00{number}"] for number in range(1, 6)] == [
        *(Status.PASSING, Status.FAILING, Status.PASSING, Status.MISSING, Status.FAILING)
    ]
