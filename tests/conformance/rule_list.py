"""The project's own list of normative rules, read and checked.

Conformance is counted per rule, so the rules live in the repository: one table per specification
under ``rules/``, columns ``id where level rule``, one rule a line. The id is what a test cites:
``0-9-1#037`` is rule 37 of the specification 0-9-1. ``not_applicable.toml`` names the few rules
that cannot bind a broker and client library, each with its reason.

    0-8     AMQP 0-8                       0-9-1r   the 0-9-1 reference with RabbitMQ's extensions
    0-9-1   AMQP 0-9-1, the specification  0-10t    transitional 0-10 (0-9 framing, 0-10 classes)
    1.0     AMQP 1.0, with the extensions that brokers share
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
RULES_DIRECTORY = HERE / "rules"
NOT_APPLICABLE_FILE = HERE / "not_applicable.toml"

SPECIFICATIONS = ("0-8", "0-9-1", "0-9-1r", "0-10t", "1.0")
COLUMNS = ("id", "where", "level", "rule")
LEVELS = frozenset({"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "-"})


class RuleListError(ValueError):
    """A rule table or the not-applicable file is malformed; the text names file and line."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One normative rule: its id, where the specification states it, how strongly, and what."""

    id: str
    where: str
    level: str
    text: str

    @property
    def specification(self) -> str:
        """The specification that the id belongs to."""
        return self.id.partition("#")[0]


def load_rules(directory: Path = RULES_DIRECTORY) -> dict[str, Rule]:
    """Every rule by id, in the order of ``SPECIFICATIONS`` and of the tables."""
    rules: dict[str, Rule] = {}
    for specification in SPECIFICATIONS:
        path = directory / f"{specification}.tsv"
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or tuple(lines[0].split("\t")) != COLUMNS:
            raise RuleListError(f"{path.name}:1: the first line must name the columns {COLUMNS}")
        for number, line in enumerate(lines[1:], start=2):
            rule = _parse(line, f"{path.name}:{number}")
            if rule.specification != specification:
                raise RuleListError(f"{path.name}:{number}: {rule.id} is not of {specification}")
            if rule.id in rules:
                raise RuleListError(f"{path.name}:{number}: {rule.id} is listed twice")
            rules[rule.id] = rule
    return rules


def _parse(line: str, place: str) -> Rule:
    fields = line.split("\t")
    if len(fields) != len(COLUMNS):
        raise RuleListError(f"{place}: {len(fields)} fields, need {len(COLUMNS)} split by tabs")
    rule = Rule(*fields)
    if not (rule.where and rule.text):
        raise RuleListError(f"{place}: {rule.id} lacks its place or its text")
    if rule.level not in LEVELS:
        raise RuleListError(f"{place}: level {rule.level!r} is none of {sorted(LEVELS)}")
    return rule


def load_not_applicable(
    rules: Mapping[str, Rule], path: Path = NOT_APPLICABLE_FILE
) -> dict[str, str]:
    """The reason for each rule that cannot bind us, by rule id."""
    try:
        reasons = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise RuleListError(f"{path.name}: not TOML: {error}") from error
    for rule_id, reason in reasons.items():
        if rule_id not in rules:
            raise RuleListError(f"{path.name}: {rule_id!r} is no rule; {nearest(rule_id, rules)}")
        if not isinstance(reason, str) or not reason.strip():
            raise RuleListError(
                f"{path.name}: {rule_id} needs its reason, one sentence as a string"
            )
    return reasons


def nearest(rule_id: str, rules: Mapping[str, Rule]) -> str:
    """What ids there are, for the reader of an error about one that is not."""
    specification = rule_id.partition("#")[0]
    ids = [rule.id for rule in rules.values() if rule.specification == specification]
    if not ids:
        return f"an id starts with one of {', '.join(SPECIFICATIONS)} and '#'"
    return f"{specification} has {ids[0]} to {ids[-1]}"
