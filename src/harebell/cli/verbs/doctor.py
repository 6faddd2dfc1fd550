"""`harebell doctor`: what is wrong with this machine, and how to correct it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import click

from harebell.base.finding import BAD, NOTE, Finding
from harebell.cli.broker_options import takes_data_dir
from harebell.cli.findings import print_findings
from harebell.cli.formats import takes_json
from harebell.cli.verb import Verb
from harebell.config import Config, ConfigError, load
from harebell.server.doctor import examine

_ONLY_SPARK = ("loopback", "memory", "cache")
"""Findings for Spark that are left out: they say nothing new, or nothing without Spark."""


@click.command(cls=Verb)
@takes_data_dir
@takes_json("One line of JSON instead of text.")
def doctor(data_dir: str | None, config_file: str | None, as_json: bool) -> None:
    """Say what is wrong with this machine, and how to correct it.

    It looks at the installation, the limits of the machine, the data directory and its disk, the
    ports, and what Spark needs. The exit code is 1 if something does not work. It changes nothing.
    """
    print_findings(_found(data_dir, config_file), as_json=as_json)


def _found(data_dir: str | None, config_file: str | None) -> Iterator[Finding]:
    try:
        config = load({"data_dir": data_dir}, config_file=config_file)
    except ConfigError as error:
        yield Finding("config", BAD, str(error))
        config = Config()
    yield from examine(config)
    yield from _spark()


def _spark() -> Iterator[Finding]:
    """What `harebell spark doctor` says; notes only where pyspark is not installed."""
    from harebell.spark.runtime.doctor import examine as examine_spark

    wanted = find_spec("pyspark") is not None
    for finding in examine_spark(None, start=False):
        if finding.name in _ONLY_SPARK or (not wanted and finding.name == "archive"):
            continue
        if finding.state == BAD and not wanted:
            text = f"only pipelines need it: {finding.text}"
            yield replace(finding, state=NOTE, text=text)
        else:
            yield finding
