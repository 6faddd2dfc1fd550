"""Print what an examination of the machine found."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from harebell.base.finding import BAD, Finding
from harebell.cli.verb import echo

_MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}
_WIDTH = 10


def print_findings(findings: Iterable[Finding], *, as_json: bool) -> None:
    """Print findings as they come, and end with exit code 1 if something does not work."""
    lines = []
    for finding in findings:
        lines.append({"name": finding.name, "state": finding.state, "text": finding.text})
        if not as_json:
            echo(f"{_MARKS[finding.state]}  {finding.name:<{_WIDTH}} {finding.text}")
    if as_json:
        echo(json.dumps({"findings": lines}))
    if any(each["state"] == BAD for each in lines):
        click.get_current_context().exit(1)
