"""What a suite came to, read from what its runner says: each test by name, passed or not."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

Outcomes = dict[str, bool]
"""Whether each test that was run passed; tests that a suite skips itself are not in it."""


def from_junit(text: str) -> Outcomes:
    """Read pytest's report in JUnit's format."""
    found: Outcomes = {}
    for case in ET.fromstring(text).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        name = f"{case.get('classname')}.{case.get('name')}"
        failed = case.find("failure") is not None or case.find("error") is not None
        # An error of the clean-up comes as a second entry for the same test.
        found[name] = found.get(name, True) and not failed
    return found


def from_node(text: str) -> Outcomes:
    """Read the lines of `tests/interop/node/report.mjs`: one JSON object for each test."""
    found: Outcomes = {}
    for line in text.splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            if str(result["name"]).endswith(".js"):
                # A file, which fails when one of its tests does.
                continue
            _put(found, str(result["name"]), bool(result["passed"]))
    return found


def from_vows(text: str) -> Outcomes:
    """Read the lines of vows' reporter for JSON: events as objects with the keys "0" and "1"."""
    found: Outcomes = {}
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if event.get("0") == "vow":
            vow = event["1"]
            _put(found, f"{vow['context']} {vow['title']}", vow["status"] == "honored")
    return found


def from_go(text: str) -> Outcomes:
    """Read the lines of `go test -json`: events; those without a test are of a whole package."""
    found: Outcomes = {}
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if event["Action"] in ("pass", "fail") and "Test" in event:
            found[event["Test"]] = event["Action"] == "pass"
    return found


def from_lines(text: str) -> Outcomes:
    """Read lines of a word and a test's name; a test that began and did not end has failed."""
    found: Outcomes = {}
    for line in text.splitlines():
        word, _, name = line.partition(" ")
        if word in ("began", "passed", "failed"):
            found[name] = word == "passed"
        elif word == "skipped":
            found.pop(name, None)
    return found


def from_qpid(text: str) -> Outcomes:
    """Read the last line of `tests/interop/qpid/inside.py`: by test, what became of it."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    told: dict[str, str] = json.loads(lines[-1]) if lines else {}
    return {name: how == "passed" for name, how in told.items() if how != "skipped"}


def _put(found: Outcomes, name: str, passed: bool) -> None:
    """Note a test under its name, or under a numbered one where a suite uses a name again."""
    unique, number = name, 1
    while unique in found:
        number += 1
        unique = f"{name} ({number})"
    found[unique] = passed
