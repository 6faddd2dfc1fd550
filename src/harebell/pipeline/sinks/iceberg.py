"""Sink: micro-batches as snapshots of an Iceberg table, each batch once, without jars.

Spark computes the rows; pyiceberg writes the files where the catalog has the table, and commits
them together with the number of the batch:

    snapshot summary   harebell.query, harebell.batch           for other readers
    table property     harebell.batch.<key of the sink>         survives expired snapshots

A batch whose number is in the table's properties is not written again. One micro-batch passes
through the memory of the driver.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.evolving import check_names, check_partitions, new_columns
from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace, catalog_errors, loaded, opened
from harebell.pipeline.sinks.iceberg_compaction import compact
from harebell.pipeline.sinks.iceberg_expiry import PROPERTIES, expire_some, missing_properties
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.staging import has_batch, key_of, pass_over
from harebell.pipeline.sinks.table_form import TableForm
from harebell.pipeline.sinks.uncommitted import UncommittedFiles
from harebell.pipeline.sinks.written_files import WrittenFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH = "harebell.batch"
_QUERY = "harebell.query"
_MADE = "harebell.made"


class IcebergSink:
    """An Iceberg table.

    Args:
        name: of the table, with its namespace.
        place: its catalog.
        transaction: permanent name of this sink of this query.
        checkpoint: directory of the query's checkpoint.
        form: partitions, mode, schema evolution and compaction.
    """

    def __init__(
        self,
        name: str,
        place: CatalogPlace,
        transaction: str,
        checkpoint: Path,
        form: TableForm,
    ) -> None:
        self._name = name
        self._what = f"Iceberg table {name} of {place.shown}"
        self._place = place
        self._transaction = transaction
        self._property = f"{_BATCH}.{key_of(transaction)}"
        key = key_of(transaction)
        self._known = KnownTable(checkpoint, key)
        self._note = checkpoint / "tables" / f"{key}.uncommitted"
        self._form = form
        self._catalog: Any = None
        self._since = 0

    def write(self, frame: DataFrame, batch: int) -> int:
        """Write a batch, unless the table has it; return the number of rows written.

        Raises:
            PipelineError: the table has other columns, it is gone, or it or its catalog cannot be
                used.
        """
        if self._catalog is None:
            self._catalog = opened(self._place)
        with catalog_errors(self._place, f"the {self._what} cannot be read"):
            table = loaded(self._catalog, self._name)
        last = -1 if table is None else self._last(table)
        # What is overwritten may be of any date.
        age = batch if self._form.overwrite else last
        self._known.check(None if table is None else _identity(table), self._what, age)
        if table is not None:
            with catalog_errors(self._place, f"the {self._what} cannot be written"):
                self._uncommitted(table).settle(last)
            if has_batch(last, batch, self._what):
                pass_over(frame)
                return 0
        check_names(frame.columns, self._what)
        check_partitions(self._form.partition_by, frame.columns, self._what)
        rows = _utc(frame.toArrow())
        if not rows.num_rows and not (self._form.overwrite and table is not None):
            return 0
        with catalog_errors(self._place, f"the {self._what} cannot be written"):
            if table is None:
                table = self._created(rows.schema)
            self._commit(table, rows, batch)
        # After the commit: the checkpoint never counts more than the table has.
        self._known.store(_identity(table), self._what, batch)
        self._compact(table)
        self._expire(table)
        return int(rows.num_rows)

    def _created(self, schema: Any) -> Any:
        """Create the table, and its namespace if that is missing."""
        import pyarrow as pa

        self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        # A required column could never be missing in later rows, as mergeSchema allows.
        optional = pa.schema([field.with_nullable(True) for field in schema])
        with self._catalog.create_table_transaction(
            self._name, schema=optional, properties=PROPERTIES | {_MADE: "true"}
        ) as creating:
            if self._form.partition_by:
                with creating.update_spec() as spec:
                    for column in self._form.partition_by:
                        spec.add_identity(column)
        return self._catalog.load_table(self._name)

    def _commit(self, table: Any, rows: Any, batch: int) -> None:
        """Write the files of a batch, and commit them with its number."""
        schema = self._evolved(table, rows.schema)
        about = {_QUERY: self._transaction, _BATCH: str(batch)}
        changes = table.transaction()
        written = self._uncommitted(table)
        # pyiceberg says which files it writes only when all of them are written.
        table.io = files = WrittenFiles(table.io)
        try:
            if schema is not None:
                with changes.update_schema() as evolving:
                    evolving.union_by_name(schema)
            if self._form.overwrite:
                changes.overwrite(rows, snapshot_properties=about)
            else:
                changes.append(rows, snapshot_properties=about)
            bounds = missing_properties(table.properties)
            changes.set_properties(bounds | {self._property: str(batch)})
            # Before the commit: a crash after it leaves a note of files that the table has.
            written.begin(batch, _files_of(changes, table))
        except BaseException:
            # The catalog was not asked yet: no snapshot can have them.
            files.remove()
            written.end()
            raise
        try:
            changes.commit_transaction()
        except BaseException:
            # Without an answer of the catalog the next call settles it.
            with contextlib.suppress(Exception):
                table.refresh()
                written.settle(self._last(table))
            raise
        written.end()

    def _evolved(self, table: Any, schema: Any) -> Any:
        """Return the columns to add; None if there are none.

        Raises:
            PipelineError: which columns differ.
        """
        import pyarrow as pa
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        columns = schema_to_pyarrow(table.schema(), include_field_ids=False)
        has = {field.name: _typed(field.type) for field in columns}
        gets = {field.name: _typed(field.type) for field in schema}
        added = new_columns(has, gets, self._what, merge=self._form.merge_schema)
        partitions = tuple(
            table.schema().find_column_name(field.source_id) for field in table.spec().fields
        )
        for name, field in zip(partitions, table.spec().fields, strict=True):
            if str(field.transform) != "identity":
                raise PipelineError(
                    f"the {self._what} is partitioned by {field.transform}({name}), and rows are "
                    "written to partitions of whole columns only: write to another table, or "
                    "remove that partition field with an engine of Iceberg"
                )
        if partitions != self._form.partition_by:
            raise PipelineError(
                f"the {self._what} is partitioned by {', '.join(partitions) or 'nothing'}; "
                f"partitionBy says {', '.join(self._form.partition_by) or 'nothing'}"
            )
        if not added:
            return None
        return pa.schema([schema.field(name).with_nullable(True) for name in added])

    def _last(self, table: Any) -> int:
        """Return the last batch that the table has; -1 for none."""
        return int(table.properties.get(self._property, "-1"))

    def _uncommitted(self, table: Any) -> UncommittedFiles:
        def remove(path: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                table.io.delete(path)

        return UncommittedFiles(self._note, remove)

    def _compact(self, table: Any) -> None:
        self._since += 1
        if self._form.compact_every and self._since >= self._form.compact_every:
            from pyiceberg.exceptions import CommitFailedException, ValidationException

            # Another writer changed the table meanwhile: the next compaction takes the files.
            with (
                catalog_errors(self._place, f"the {self._what} cannot be compacted"),
                contextlib.suppress(CommitFailedException, ValidationException),
            ):
                compact(table)
            self._since = 0

    def _expire(self, table: Any) -> None:
        """Expire old snapshots: each is in every metadata file, and each batch makes one."""
        from pyiceberg.exceptions import CommitFailedException

        # Another writer changed the table meanwhile: the next batch expires them.
        with (
            catalog_errors(self._place, f"snapshots of the {self._what} cannot be expired"),
            contextlib.suppress(CommitFailedException),
        ):
            expire_some(table)


def _identity(table: Any) -> str:
    return str(table.metadata.table_uuid)


def _utc(rows: Any) -> Any:
    """Return rows with their times in UTC, the only zone of Iceberg's times."""
    import pyarrow as pa

    kinds = [
        field.with_type(pa.timestamp("us", tz="UTC"))
        if pa.types.is_timestamp(field.type) and field.type.tz is not None
        else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(kinds))


def _typed(kind: Any) -> str:
    """Return a type of Arrow as text, without what Iceberg does not store."""
    text = re.sub(r" not null|large_|\n| ", "", str(kind))
    return re.sub(r"\bint(?:8|16)\b", "int32", text)


def _files_of(changes: Any, table: Any) -> list[str]:
    """Return the files that a transaction has written: of data, and of the snapshot."""
    snapshot = changes.table_metadata.current_snapshot()
    if snapshot is None:
        return []
    own = [
        manifest
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
    ]
    data = [
        entry.data_file.file_path
        for manifest in own
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.snapshot_id == snapshot.snapshot_id
    ]
    return [*data, *(manifest.manifest_path for manifest in own), snapshot.manifest_list]
