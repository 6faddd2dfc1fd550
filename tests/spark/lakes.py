"""Delta and Iceberg tables that tests write through the sinks, and read by their own libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from harebell.pipeline.sinks.delta import DeltaSink
from harebell.pipeline.sinks.iceberg import IcebergSink
from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.staging import key_of
from harebell.pipeline.sinks.table_form import TableForm

NAME = "shop.orders"
KINDS = ("delta", "iceberg")


class Lake:
    """A directory with one table of a kind.

    Args:
        kind: one of `KINDS`.
        directory: for the table, its catalog and the checkpoint.
    """

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.checkpoint = directory / "checkpoint"
        self.place = CatalogPlace(f"sqlite:///{directory}/catalog.db", str(directory / "tables"))

    @property
    def path(self) -> Path:
        """The table's directory."""
        if self.kind == "delta":
            return self.directory / "table"
        return self.directory / "tables" / "shop" / "orders"

    def sink(self, transaction: str = "query/sink", **form: Any) -> DeltaSink | IcebergSink:
        """A sink, as a driver makes it that has just started."""
        if self.kind == "delta":
            known = KnownTable(self.checkpoint, key_of(transaction))
            return DeltaSink(self.path, transaction, known, TableForm(**form))
        return IcebergSink(NAME, self.place, transaction, self.checkpoint, TableForm(**form))

    def iceberg(self) -> Any:
        """The table, for pyiceberg alone."""
        uri, warehouse = self.place.catalog, self.place.warehouse
        return load_catalog("default", type="sql", uri=uri, warehouse=warehouse).load_table(NAME)

    def rows(self) -> list[dict[str, Any]]:
        """What readers of the table see."""
        if self.kind == "delta":
            found = DeltaTable(str(self.path)).to_pyarrow_table().to_pylist()
        else:
            found = self.iceberg().scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])

    def there(self) -> bool:
        """Whether there is a table."""
        if self.kind == "delta":
            return DeltaTable.is_deltatable(str(self.path))
        if not (self.directory / "catalog.db").exists():
            return False
        try:
            self.iceberg()
        except NoSuchTableError:
            return False
        return True

    def files(self) -> set[str]:
        """The data files that the table has."""
        if self.kind == "delta":
            return {Path(uri).name for uri in DeltaTable(str(self.path)).file_uris()}
        paths = self.iceberg().inspect.files()["file_path"].to_pylist()
        return {Path(path).name for path in paths}

    def on_disk(self) -> set[str]:
        """The data files that are on disk, staged ones too."""
        return {path.name for path in self.path.rglob("*.parquet")}
