"""Shared by the actions of `harebell pipeline`: the group, error handling and the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harebell.base.errors import HarebellError
from harebell.cli.nouns import NounGroup
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, NotConnected, WrongUsage, echo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace
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


master_flag = click.option(
    "--master", metavar="URL", help="Where Spark runs.  [default: this machine]"
)
warehouse_flag = click.option(
    "--warehouse", default="", metavar="PLACE", help="Warehouse of the catalog."
)
metrics_flag = click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Where Prometheus can ask for /metrics while they run.  [default: nowhere]",
)


def seconds_given(option: str, text: str, examples: str = "5s or 2m") -> float:
    """Return the seconds of a time on the command line.

    Raises:
        WrongUsage: it is no time.
    """
    from harebell.pipeline.spec.values import seconds_of

    seconds = seconds_of(text)
    if seconds is None:
        raise WrongUsage(f"{option} wants a time such as {examples}, not {text!r}")
    return seconds


def check_warehouse(catalog: str | None, warehouse: str) -> None:
    """Refuse a warehouse without its catalog.

    Raises:
        WrongUsage: there is none.
    """
    if catalog is None and warehouse:
        raise WrongUsage("--warehouse belongs to --catalog")


def place_of_table(name: str, catalog: str, warehouse: str) -> CatalogPlace:
    """Return where the Iceberg catalog of a table is.

    Raises:
        WrongUsage: the name of the table or the catalog cannot be one.
    """
    from harebell.pipeline.sinks.iceberg_catalog import (
        CatalogPlace,
        placed,
        wrong_catalog,
        wrong_table,
    )

    if wrong := wrong_catalog(catalog):
        raise WrongUsage(f"--{wrong}")
    if wrong := wrong_table(name, catalog):
        raise WrongUsage(wrong.replace("iceberg", "TABLE", 1))
    return CatalogPlace(*placed(catalog, warehouse, Path.cwd()))


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
