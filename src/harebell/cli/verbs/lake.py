"""`harebell lake`: look after the tables that pipelines write."""

from __future__ import annotations

import time
from pathlib import Path

import click

from harebell.base.limits import LAKE_SMALL_FILE_BYTES, TIER_CHARACTERS
from harebell.cli.link import url_flag
from harebell.cli.nouns import NounGroup
from harebell.cli.piping import sentences
from harebell.cli.progress import Progress
from harebell.cli.shipped import address_of
from harebell.cli.verb import WrongUsage, echo


@click.group(cls=NounGroup)
def lake() -> None:
    """Look after the Delta and Iceberg tables that pipelines write."""


@lake.command()
@click.argument("table")
@click.option(
    "--catalog",
    metavar="CATALOG",
    help="TABLE is NAMESPACE.TABLE of this Iceberg catalog.  [default: TABLE is a Delta directory]",
)
@click.option("--warehouse", default="", metavar="PLACE", help="Warehouse of the catalog.")
def compact(table: str, catalog: str | None, warehouse: str) -> None:
    """Merge the small files of a table; its rows stay as they are."""
    if catalog is None:
        if warehouse:
            raise WrongUsage("--warehouse belongs to --catalog")
        with sentences(), Progress(f"merging small files of {table}"):
            removed, added = _delta(Path(table))
    else:
        with sentences(), Progress(f"merging small files of {table}"):
            removed, added = _iceberg(table, catalog, warehouse)
    echo(f"{removed} small files of {table} merged into {added}")


@lake.command()
@click.argument("stream")
@click.option("--to", "place", required=True, metavar="PLACE", help="Path, or s3://BUCKET/PATH.")
@click.option(
    "--name", default="tier", metavar="NAME", help="Argument x-tier of the stream.  [default: tier]"
)
@click.option(
    "--every", metavar="TIME", help="Go on for ever, that often, such as 1m.  [default: once]"
)
@click.option(
    "--file-bytes",
    type=click.IntRange(min=1),
    default=LAKE_SMALL_FILE_BYTES,
    metavar="NUMBER",
    help=f"Bytes of messages after which a file ends.  [default: {LAKE_SMALL_FILE_BYTES}]",
)
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
    from harebell.pipeline.spec.values import seconds_of

    seconds = None if every is None else seconds_of(every)
    if every is not None and seconds is None:
        raise WrongUsage(f"--every wants a time such as 5s or 2m, not {every!r}")
    if not 0 < len(name) <= TIER_CHARACTERS:
        raise WrongUsage(f"--name wants 1 to {TIER_CHARACTERS} characters")
    with sentences():
        _check_arrow()
        from harebell.pipeline.tier.tier_files import TierFiles
        from harebell.pipeline.tier.tiering import TierJob

        files = TierFiles(place)
        job = TierJob(address_of(url), stream, name, files, file_bytes, accept_gap)
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


def _delta(path: Path) -> tuple[int, int]:
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.sinks import delta

    if not delta.delta().DeltaTable.is_deltatable(str(path)):
        raise PipelineError(
            f"there is no Delta table at {path}; an Iceberg table needs --catalog too"
        )
    with delta.delta_errors(path):
        done = delta.compact(path)
    return int(done["numFilesRemoved"]), int(done["numFilesAdded"])


def _iceberg(name: str, catalog: str, warehouse: str) -> tuple[int, int]:
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.sinks import iceberg_catalog, iceberg_compaction

    if wrong := iceberg_catalog.wrong_catalog(catalog):
        raise WrongUsage(f"--{wrong}")
    if wrong := iceberg_catalog.wrong_table(name, catalog):
        raise WrongUsage(wrong.replace("iceberg", "TABLE", 1))
    place = iceberg_catalog.CatalogPlace(*iceberg_catalog.placed(catalog, warehouse, Path.cwd()))
    iceberg_catalog.check_file(place)
    table = iceberg_catalog.loaded(iceberg_catalog.opened(place), name)
    if table is None:
        raise PipelineError(f"there is no table {name} in the Iceberg catalog {place.shown}")
    with iceberg_catalog.catalog_errors(place, f"the Iceberg table {name} cannot be compacted"):
        return iceberg_compaction.compact(table)
