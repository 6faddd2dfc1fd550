"""`harebell lake`: look after the tables that pipelines write."""

from __future__ import annotations

from pathlib import Path

import click

from harebell.cli.nouns import NounGroup
from harebell.cli.piping import sentences
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
        with sentences():
            removed, added = _delta(Path(table))
    else:
        with sentences():
            removed, added = _iceberg(table, catalog, warehouse)
    echo(f"{removed} small files of {table} merged into {added}")


def _delta(path: Path) -> tuple[int, int]:
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.sinks import delta

    if not delta.delta().DeltaTable.is_deltatable(str(path)):
        raise PipelineError(
            f"there is no Delta table at {path}; an Iceberg table needs --catalog too"
        )
    with delta.one_sentence(path):
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
    table = iceberg_catalog.loaded(iceberg_catalog.opened(place), name)
    if table is None:
        raise PipelineError(f"there is no table {name} in the Iceberg catalog {place.shown}")
    with iceberg_catalog.one_sentence(place, f"the Iceberg table {name} cannot be compacted"):
        return iceberg_compaction.compact(table)
