"""Sink: micro-batches as versions of a Delta table, each batch once, without jars.

Spark writes the files; delta-rs adds them to the table's log together with the sink's name and the
number of the batch, as an application transaction. A batch whose number is in the log is not
written again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import staging
from harebell.pipeline.sinks.evolving import check_names, check_partitions, new_columns
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.table_form import TableForm
from harebell.pipeline.sinks.uncommitted import UncommittedFiles

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
        raise PipelineError("Delta tables need deltalake: pip install 'harebell[delta]'") from None
    return deltalake


class DeltaSink:
    """A Delta table.

    Args:
        path: its directory.
        transaction: permanent name of this sink of this query.
        known: which table the query has written to; None if it has no checkpoint.
        form: partitions, mode, schema evolution and compaction.
    """

    def __init__(
        self, path: Path, transaction: str, known: KnownTable | None, form: TableForm
    ) -> None:
        self._path = path
        self._transaction = transaction
        self._key = staging.key_of(transaction)
        self._known = known
        self._form = form
        self._since = 0

    def write(self, frame: DataFrame, batch: int) -> int:
        """Write a batch, unless the log has it; return the number of rows written.

        Raises:
            PipelineError: the table has other columns, it is gone, it cannot be written, or the
                directory has plain Parquet files.
        """
        with delta_errors(self._path):
            return self._write(frame, batch)

    def _write(self, frame: DataFrame, batch: int) -> int:
        table = self._table()
        if table is None and any((self._path / staging.HIDDEN).glob("*.json")):
            raise PipelineError(
                f"the directory {self._path} has Parquet files, which a Delta table there would "
                "not have: write to it as parquet, or to another directory"
            )
        last = None if table is None else table.transaction_version(self._transaction)
        if self._known is not None:
            identity = None if table is None else str(table.metadata().id)
            # What is overwritten may be of any date.
            age = batch if self._form.overwrite else last
            self._known.check(identity, f"Delta table {self._path}", age)
        moved = UncommittedFiles(
            self._path / staging.HIDDEN / f"{self._key}.moved",
            lambda name: (self._path / name).unlink(missing_ok=True),
        )
        # Before the batch is looked for: a crash may have left files of it, or of another one.
        moved.settle(last)
        if staging.has_batch(last, batch, f"Delta table {self._path}"):
            staging.clear(self._path, self._key)
            staging.pass_over(frame)
            return 0
        check_names(frame.columns, f"Delta table {self._path}")
        check_partitions(self._form.partition_by, frame.columns, f"Delta table {self._path}")
        try:
            schema = delta().Schema.from_json(frame.schema.json())
        except ValueError as error:
            raise PipelineError(
                f"the Delta table {self._path} cannot have the columns of the rows: {error}; "
                "change them in a step"
            ) from error
        if table is not None:
            self._evolve(table, schema)
        staging.prepare(self._path)
        try:
            files = staging.stage(frame, self._path, self._key, self._form.partition_by)
            if files or (self._form.overwrite and table is not None):
                self._add(table, schema, files, batch, moved)
        finally:
            staging.clear(self._path, self._key)
        # After the commit: the checkpoint never counts more than the table has.
        if files and self._known is not None:
            delta_table = delta().DeltaTable(str(self._path))
            self._known.store(str(delta_table.metadata().id), f"Delta table {self._path}", batch)
        self._compact(table is not None and bool(files))
        return sum(each.rows for each in files)

    def _table(self) -> Any:
        lake = delta()
        if self._path.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not lake.DeltaTable.is_deltatable(str(self._path)):
            return None
        return lake.DeltaTable(str(self._path))

    def _evolve(self, table: Any, schema: Any) -> None:
        """Check that rows have the table's columns, and add those that it lacks.

        Raises:
            PipelineError: which columns differ.
        """
        has = {field.name: _typed(field.type) for field in table.schema().fields}
        gets = {field.name: _typed(field.type) for field in schema.fields}
        what = f"Delta table {self._path}"
        added = new_columns(has, gets, what, merge=self._form.merge_schema)
        parts = tuple(table.metadata().partition_columns)
        if parts != self._form.partition_by:
            raise PipelineError(
                f"the {what} is partitioned by {', '.join(parts) or 'nothing'}; "
                f"partitionBy says {', '.join(self._form.partition_by) or 'nothing'}"
            )
        if added:
            # A version of its own: a batch that is repeated after it finds the columns there.
            new = delta().Field
            kinds = {field.name: field.type for field in schema.fields}
            table.alter.add_columns([new(name, kinds[name], nullable=True) for name in added])
            table.update_incremental()

    def _add(
        self,
        table: Any,
        schema: Any,
        files: list[staging.StagedFile],
        batch: int,
        moved: UncommittedFiles,
    ) -> None:
        from deltalake.transaction import CommitProperties, Transaction

        # On disk before the first rename: a file in the table's directory is in the log or the
        # note.
        moved.begin(batch, [each.final for each in files])
        for each in files:
            staging.sync(each.path)
        properties = CommitProperties(
            app_transactions=[Transaction(self._transaction, batch)], max_commit_retries=20
        )
        try:
            staging.move([(each.path, self._path / each.final) for each in files])
            self._commit(table, schema, files, properties)
        except BaseException:
            # The commit may have succeeded without an answer: the log says whether it has.
            table = self._table()
            moved.settle(None if table is None else table.transaction_version(self._transaction))
            raise
        moved.end()

    def _commit(
        self, table: Any, schema: Any, files: list[staging.StagedFile], properties: Any
    ) -> None:
        from deltalake.transaction import AddAction, create_table_with_add_actions

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
        parts = list(self._form.partition_by)
        if table is None:
            create_table_with_add_actions(
                str(self._path), schema, adds, partition_by=parts, commit_properties=properties
            )
        else:
            mode: Any = "overwrite" if self._form.overwrite else "append"
            table.create_write_transaction(
                adds, mode, table.schema(), partition_by=parts, commit_properties=properties
            )

    def _compact(self, grown: bool) -> None:
        self._since += grown
        if self._form.compact_every and self._since >= self._form.compact_every:
            from deltalake.exceptions import CommitFailedError

            # Another writer changed the same files: the next compaction takes them.
            with suppress(CommitFailedError):
                compact(self._path)
            self._since = 0


@contextmanager
def delta_errors(path: Path) -> Iterator[None]:
    """Convert errors of the file system and of delta-rs."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (OSError, DeltaError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise PipelineError(
            f"the Delta table {path} cannot be written: {reason}; a micro-batch is not lost by "
            "this, and is written when the pipeline runs again"
        ) from error


def compact(path: Path) -> dict[str, Any]:
    """Merge the small files of a table; return the counts of delta-rs."""
    lake = delta()
    done: dict[str, Any] = lake.DeltaTable(str(path)).optimize.compact()
    return done


def expire(path: Path, older_seconds: float, *, dry_run: bool) -> list[str]:
    """Remove files that the table has no more; return their names.

    The log keeps the application transactions: a batch of a sink is still known.

    Args:
        path: directory of the table.
        older_seconds: files that were deleted from the table later stay; at least the time that
            a micro-batch may take, whose files are not in the log yet.
        dry_run: only name them.
    """
    table = delta().DeltaTable(str(path))
    hours = int(older_seconds // 3600)
    # In full: a checkpoint of the log forgets files that were deleted a week before it.
    lines: list[str] = table.vacuum(
        hours, dry_run=dry_run, enforce_retention_duration=False, full=True
    )
    if not dry_run:
        table.create_checkpoint()
        table.cleanup_metadata()
    return lines


def _typed(kind: Any) -> str:
    """Return a type as text: `double`, or the JSON of a nested one."""
    return str(kind.to_json()).strip('"')
