"""`harebell lake`: look after the tables that pipelines write."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harebell.cli.limits import LAKE_EXPIRE_AGE, LAKE_EXPIRE_SECONDS_MIN
from harebell.cli.link import url_flag
from harebell.cli.nouns import NounGroup
from harebell.cli.number_flag import number_flag
from harebell.cli.piping import (
    check_warehouse,
    place_of_table,
    seconds_given,
    sentences,
    warehouse_flag,
)
from harebell.cli.progress import Progress
from harebell.cli.verb import WrongUsage, echo
from harebell.cli.which_broker import amqp_url
from harebell.model.limits import TIER_CHARACTERS
from harebell.pipeline.limits import LAKE_SMALL_FILE_BYTES

if TYPE_CHECKING:
    from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace


@click.group(cls=NounGroup)
def lake() -> None:
    """Look after the Delta and Iceberg tables that pipelines write."""


_CATALOG = click.option(
    "--catalog",
    metavar="CATALOG",
    help="TABLE is NAMESPACE.TABLE of this Iceberg catalog.  [default: TABLE is a Delta directory]",
)


@lake.command()
@click.argument("table")
@_CATALOG
@warehouse_flag
def compact(table: str, catalog: str | None, warehouse: str) -> None:
    """Merge the small files of a table; its rows stay as they are."""
    check_warehouse(catalog, warehouse)
    with sentences(), Progress(f"merging small files of {table}"):
        if catalog is None:
            removed, added = _compact_delta(_delta_at(table))
        else:
            removed, added = _compact_iceberg(table, catalog, warehouse)
    echo(f"{removed} small files of {table} merged into {added}")


@lake.command()
@click.argument("table")
@_CATALOG
@warehouse_flag
@click.option(
    "--older-than",
    default=LAKE_EXPIRE_AGE,
    metavar="TIME",
    help=f"Age of what is removed, such as 12h or 30d.  [default: {LAKE_EXPIRE_AGE}]",
)
@number_flag("--keep", "Newest snapshots that stay however old they are, of Iceberg.", 1)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def expire(
    table: str, catalog: str | None, warehouse: str, older_than: str, keep: int, dry_run: bool
) -> None:
    """Remove old versions of a table and the files that only they have; its rows stay."""
    from harebell.pipeline.spec.values import seconds_of

    check_warehouse(catalog, warehouse)
    seconds = seconds_of(older_than)
    if seconds is None or seconds < LAKE_EXPIRE_SECONDS_MIN:
        raise WrongUsage(
            f"--older-than wants a time of at least an hour such as 12h or 30d, not {older_than!r}"
        )
    if catalog is None and keep > 1:
        raise WrongUsage("--keep belongs to --catalog: files of a Delta table expire by their age")
    verb = "would be removed" if dry_run else "removed"
    with sentences(), Progress(f"expiring old versions of {table}"):
        if catalog is None:
            what = _expire_delta(_delta_at(table), seconds, dry_run=dry_run)
        else:
            what = _expire_iceberg(table, catalog, warehouse, seconds, keep, dry_run=dry_run)
    echo(f"{what} of {table} {verb}")


@lake.command()
@click.argument("stream")
@click.option("--to", "place", required=True, metavar="PLACE", help="Path, or s3://BUCKET/PATH.")
@click.option(
    "--name", default="tier", metavar="NAME", help="Argument x-tier of the stream.  [default: tier]"
)
@click.option(
    "--every", metavar="TIME", help="Go on for ever, that often, such as 1m.  [default: once]"
)
@number_flag("--file-bytes", "Bytes of messages after which a file ends.", LAKE_SMALL_FILE_BYTES)
@click.option("--accept-gap", is_flag=True, help="Go on although messages went too early.")
@url_flag
def tier(
    stream: str,
    place: str,
    name: str,
    every: str | None,
    file_bytes: int,
    accept_gap: bool,
    url: str | None,
) -> None:
    """Copy the messages of a stream to Parquet files, after which retention may remove them."""
    seconds = None if every is None else seconds_given("--every", every)
    if not 0 < len(name) <= TIER_CHARACTERS:
        raise WrongUsage(f"--name wants 1 to {TIER_CHARACTERS} characters")
    with sentences():
        _check_arrow()
        from harebell.pipeline.tier.tier_files import TierFiles
        from harebell.pipeline.tier.tiering import TierJob

        files = TierFiles(place)
        job = TierJob(amqp_url(url), stream, name, files, file_bytes, accept_gap)
        with job.alone() as check:
            while True:
                count = job.run(check, echo)
                if seconds is None:
                    break
                time.sleep(seconds)
        echo(f"{count} messages of stream {stream!r} copied; the tier has {job.rows()}")


def _check_arrow() -> None:
    from harebell.pipeline.errors import PipelineError

    try:
        import pyspark
    except ImportError:
        raise PipelineError(
            "tiers need pyarrow and pyspark: pip install 'harebell[spark]'"
        ) from None
    assert pyspark.__version__


def _delta_at(table: str) -> Path:
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.sinks import delta

    if not delta.delta().DeltaTable.is_deltatable(table):
        raise PipelineError(
            f"there is no Delta table at {table}; an Iceberg table needs --catalog too"
        )
    return Path(table)


def _compact_delta(path: Path) -> tuple[int, int]:
    from harebell.pipeline.sinks import delta

    with delta.delta_errors(path):
        done = delta.compact(path)
    return int(done["numFilesRemoved"]), int(done["numFilesAdded"])


def _expire_delta(path: Path, seconds: float, *, dry_run: bool) -> str:
    from harebell.pipeline.sinks import delta

    with delta.delta_errors(path):
        return _counted(len(delta.expire(path, seconds, dry_run=dry_run)), "data file")


def _compact_iceberg(name: str, catalog: str, warehouse: str) -> tuple[int, int]:
    from harebell.pipeline.sinks import iceberg_catalog, iceberg_compaction

    table, place = _iceberg(name, catalog, warehouse)
    with iceberg_catalog.catalog_errors(place, f"the Iceberg table {name} cannot be compacted"):
        return iceberg_compaction.compact(table)


def _expire_iceberg(
    name: str, catalog: str, warehouse: str, seconds: float, keep: int, *, dry_run: bool
) -> str:
    from harebell.pipeline.sinks import iceberg_catalog, iceberg_expiry

    table, place = _iceberg(name, catalog, warehouse)
    with iceberg_catalog.catalog_errors(place, f"the Iceberg table {name} cannot be expired"):
        expired = iceberg_expiry.expire(table, seconds, keep, dry_run=dry_run)
    return (
        f"{_counted(expired.snapshots, 'snapshot')}, {_counted(expired.data, 'data file')} and "
        f"{_counted(expired.metadata, 'file')} of metadata"
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _iceberg(name: str, catalog: str, warehouse: str) -> tuple[Any, CatalogPlace]:
    """Return an Iceberg table, and its catalog."""
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.sinks import iceberg_catalog

    place = place_of_table(name, catalog, warehouse)
    iceberg_catalog.check_file(place)
    table = iceberg_catalog.loaded(iceberg_catalog.opened(place), name)
    if table is None:
        raise PipelineError(f"there is no table {name} in the Iceberg catalog {place.shown}")
    return table, place
