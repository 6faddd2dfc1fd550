"""Sink: micro-batches as versions of a Delta table, each batch once, without jars.

Spark writes the files; delta-rs adds them to the table's log together with the sink's name and the
number of the batch, as an application transaction. A batch whose number is in the log is not
written again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def delta() -> Any:
    """Return the module `deltalake`.

    Raises:
        PipelineError: it is not installed.
    """
    try:
        import deltalake
    except ImportError:
        raise PipelineError("Delta tables need deltalake: pip install 'harebell[spark]'") from None
    return deltalake


class DeltaSink:
    """A Delta table.

    Args:
        path: its directory.
        transaction: permanent name of this sink of this query.
        partition_by: columns that become directories.
        compact_every: number of batches after which small files are merged; 0 for never.
    """

    def __init__(
        self, path: Path, transaction: str, partition_by: tuple[str, ...], compact_every: int = 0
    ) -> None:
        self._path = path
        self._transaction = transaction
        self._key = staging.key_of(transaction)
        self._partition_by = partition_by
        self._compact_every = compact_every
        self._since = 0

    def write(self, frame: DataFrame, batch: int) -> int:
        """Write a batch, unless the log has it; return the number of rows written.

        Raises:
            PipelineError: the table has other columns, or the directory has plain Parquet files.
        """
        table = self._table()
        if table is None and any((self._path / staging.HIDDEN).glob("*.json")):
            raise PipelineError(
                f"the directory {self._path} has Parquet files, which a Delta table there would "
                "not have: write to it as parquet, or to another directory"
            )
        if table is not None:
            last = table.transaction_version(self._transaction)
            if last is not None and last >= batch:
                staging.pass_over(frame)
                return 0
        schema = delta().Schema.from_json(frame.schema.json())
        if table is not None:
            self._check(table, schema)
        files = staging.stage(frame, self._path, self._key, self._partition_by)
        if files:
            self._add(table, schema, files, batch)
        staging.clear(self._path, self._key)
        self._compact(table is not None and bool(files))
        return sum(each.rows for each in files)

    def _table(self) -> Any:
        lake = delta()
        if not lake.DeltaTable.is_deltatable(str(self._path)):
            return None
        return lake.DeltaTable(str(self._path))

    def _check(self, table: Any, schema: Any) -> None:
        """Check that rows have the table's columns.

        Raises:
            PipelineError: which columns differ.
        """
        has = {field.name: str(field.type) for field in table.schema().fields}
        gets = {field.name: str(field.type) for field in schema.fields}
        if has != gets:
            names = [name for name in {**has, **gets} if has.get(name) != gets.get(name)]
            unlike = ", ".join(
                f"{name} is {_said(has.get(name))} there and {_said(gets.get(name))} here"
                for name in names
            )
            raise PipelineError(
                f"the Delta table {self._path} has other columns: {unlike}; change the steps, or "
                "write to another table"
            )
        parts = tuple(table.metadata().partition_columns)
        if parts != self._partition_by:
            raise PipelineError(
                f"the Delta table {self._path} is partitioned by {', '.join(parts) or 'nothing'}; "
                f"partitionBy says {', '.join(self._partition_by) or 'nothing'}"
            )

    def _add(self, table: Any, schema: Any, files: list[staging.StagedFile], batch: int) -> None:
        from deltalake.transaction import (
            AddAction,
            CommitProperties,
            Transaction,
            create_table_with_add_actions,
        )

        moves = [(each.path, self._path / each.final) for each in files]
        for each in files:
            staging.sync(each.path)
        staging.move(moves)
        adds = [
            AddAction(
                each.final,
                each.size,
                each.partition,
                each.modified,
                True,
                f'{{"numRecords": {each.rows}}}',
            )
            for each in files
        ]
        properties = CommitProperties(
            app_transactions=[Transaction(self._transaction, batch)], max_commit_retries=20
        )
        parts = list(self._partition_by)
        if table is None:
            create_table_with_add_actions(
                str(self._path), schema, adds, partition_by=parts, commit_properties=properties
            )
        else:
            table.create_write_transaction(
                adds, "append", schema, partition_by=parts, commit_properties=properties
            )

    def _compact(self, grown: bool) -> None:
        self._since += grown
        if self._compact_every and self._since >= self._compact_every:
            compact(self._path)
            self._since = 0


def compact(path: Path) -> dict[str, Any]:
    """Merge the small files of a table; return the counts of delta-rs."""
    lake = delta()
    done: dict[str, Any] = lake.DeltaTable(str(path)).optimize.compact()
    return done


def _said(kind: str | None) -> str:
    return "missing" if kind is None else kind
