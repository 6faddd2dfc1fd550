"""The rule list is complete, agrees with the specifications' rules, and is in our own words."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from tests.conformance.rule_list import (
    HERE,
    SPECIFICATIONS,
    load_not_applicable,
    load_rules,
)

# Where the extract of the specifications lies when the project has it beside it; the repository
# stands alone without, and then the counts below are what the list is held to.
EXTRACT = HERE.parents[1].parent / "shared" / "specs" / "rules.tsv"
# The rules of this one were written in words of the project: its extract is no copy of sentences.
OWN_WORDS = "1.0"
COUNTS = {"0-8": 159, "0-9-1": 58, "0-9-1r": 126, "0-10t": 280, "1.0": 187}
TEXT_LENGTH_MAX = 160
# A line may share terms with the sentence it stands for ("session.open on a channel that"), not
# phrases.
SHARED_WORDS_MAX = 8


class Stated(NamedTuple):
    """A rule as the extract of the specifications has it."""

    where: str
    level: str
    sentence: str


def extract() -> dict[str, Stated] | None:
    if not EXTRACT.exists():
        return None
    rows = [line.split("\t") for line in EXTRACT.read_text(encoding="utf-8").splitlines()]
    assert rows[0][:6] == ["id", "spec", "where", "level", "name", "rule"]
    return {row[0]: Stated(row[2], row[3], row[5]) for row in rows[1:]}


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def longest_shared_run(ours: list[str], theirs: list[str]) -> int:
    longest = 0
    previous = [0] * (len(theirs) + 1)
    for word in ours:
        current = [0]
        for index, other in enumerate(theirs):
            current.append(previous[index] + 1 if word == other else 0)
        longest = max(longest, *current)
        previous = current
    return longest


def test_every_specification_has_its_rules_numbered_without_a_gap() -> None:
    rules = load_rules()
    assert Counter(rule.specification for rule in rules.values()) == COUNTS
    for specification in SPECIFICATIONS:
        ids = [rule.id for rule in rules.values() if rule.specification == specification]
        assert ids == [f"{specification}#{n:03}" for n in range(1, COUNTS[specification] + 1)]


def test_ids_levels_and_places_are_those_of_the_specifications() -> None:
    stated = extract()
    rules = load_rules().values()
    if stated is None:
        assert Counter(rule.specification for rule in rules) == COUNTS
        return
    ours = {rule.id: (rule.where, rule.level) for rule in rules if rule.specification != OWN_WORDS}
    assert ours == {rule_id: (rule.where, rule.level) for rule_id, rule in stated.items()}


def test_every_rule_is_one_short_line_of_english() -> None:
    for rule in load_rules().values():
        assert rule.text == rule.text.strip(), rule.id
        assert len(words(rule.text)) >= 4, rule.id
        assert len(rule.text) <= TEXT_LENGTH_MAX, rule.id
        assert rule.text.isascii(), rule.id
        assert rule.text.endswith("."), rule.id


def test_no_specification_says_the_same_line_twice() -> None:
    lines = Counter((rule.specification, rule.text) for rule in load_rules().values())
    assert [line for line, times in lines.items() if times > 1] == []


def test_no_rule_is_a_sentence_of_its_specification() -> None:
    stated = extract()
    if stated is None:
        # Without the sentences to compare with, hold the lines to what extracts look like.
        assert not [r.id for r in load_rules().values() if re.search(r"\bMUST\b|\bMAY\b", r.text)]
        return
    for rule in load_rules().values():
        if rule.specification == OWN_WORDS:
            continue
        ours, theirs = words(rule.text), words(stated[rule.id].sentence)
        assert ours != theirs, rule.id
        assert longest_shared_run(ours, theirs) < SHARED_WORDS_MAX, rule.id


def test_every_excuse_names_a_rule_and_gives_a_sentence() -> None:
    rules = load_rules()
    for rule_id, reason in load_not_applicable(rules).items():
        assert rule_id in rules, rule_id
        assert len(words(reason)) >= 8, rule_id
        assert reason.endswith("."), rule_id


def test_a_must_of_the_server_is_never_excused() -> None:
    rules = load_rules()
    reasons = load_not_applicable(rules)
    # These two bind only an exchange that refuses content, which is the MAY in the same rule, and
    # 0-8#007 binds applications.
    known = {"0-9-1r#102", "0-8#106", "0-8#007"}
    strong = {
        rule_id
        for rule_id, reason in reasons.items()
        if rules[rule_id].level == "MUST" and not reason.startswith("Departs")
    }
    assert {rule_id for rule_id in strong if not rule_id.startswith("0-10t")} == known
