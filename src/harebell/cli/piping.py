"""Shared by the actions of `harebell pipeline`: the group, error handling and the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from harebell.base.errors import HarebellError
from harebell.cli.nouns import NounGroup
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, NotConnected, WrongUsage, echo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harebell.pipeline.spec.description import Description


@click.group(cls=NounGroup)
def pipeline() -> None:
    """Run pipelines: queues through SQL into exchanges, tables and files."""


@contextmanager
def sentences() -> Iterator[None]:
    """Convert errors of pipelines to sentences and exit codes."""
    from harebell.pipeline.errors import DescriptionError
    from harebell.pipeline.run.failures import reason_of, spark_errors, unreached

    try:
        yield
    except spark_errors() as error:
        raise _failed(reason_of(error), unreached=unreached(error)) from None
    except DescriptionError as error:
        raise WrongUsage(str(error)) from None
    except HarebellError as error:
        raise _failed(str(error), unreached=unreached(error)) from None


def _failed(sentence: str, *, unreached: bool) -> click.ClickException:
    return NotConnected(sentence) if unreached else Failure(sentence)


@contextmanager
def short_session(name: str, master: str | None) -> Iterator[SparkSession]:
    """Yield a Spark session for some statements."""
    from harebell.pipeline.hosting import session

    chosen = {"spark.master": master} if master else {}
    with ExitStack() as held:
        with Progress("starting Spark"):
            spark = held.enter_context(session(name, chosen, short_lived=True))
        yield spark


metrics_flag = click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Where Prometheus can ask for /metrics while they run.  [default: nowhere]",
)


def run_all(pipelines: list[Description], master: str | None, metrics: str | None = None) -> None:
    """Run pipelines and show their progress."""
    from harebell.pipeline.hosting import host
    from harebell.pipeline.registry import default_directory
    from harebell.pipeline.run.serving import address_of
    from harebell.pipeline.views import View, end_of

    names = [each.name for each in pipelines]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WrongUsage(f"two of these pipelines are named {twice[0]}")
    address = None if metrics is None else address_of(metrics)
    if metrics is not None and address is None:
        raise WrongUsage(f"--metrics wants PORT or HOST:PORT, not {metrics!r}")
    chosen = {"spark.master": master} if master else {}
    with sentences():
        states = host(pipelines, default_directory(), View(click.echo), chosen, metrics=address)
    for state in states:
        if state.state != "failed":
            echo(end_of(state))
    failed = [state for state in states if state.state == "failed"]
    if failed:
        sentence = "\n".join(end_of(state) for state in failed)
        raise _failed(sentence, unreached=all(state.unreached for state in failed))
