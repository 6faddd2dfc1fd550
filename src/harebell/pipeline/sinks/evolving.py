"""Compare the columns of rows with those of a table: what `mergeSchema` adds, and what is refused.

rows have one more      mergeSchema adds it to the table; without it an error
rows have one less      mergeSchema leaves it null; without it an error
a column has another type      an error
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from harebell.pipeline.errors import PipelineError


def new_columns(
    table: Mapping[str, str], rows: Mapping[str, str], what: str, *, merge: bool
) -> list[str]:
    """Return the names of columns that the table lacks.

    Args:
        table: types of the table's columns, by name.
        rows: types of the rows' columns, by name.
        what: kind and name of the table, for the error.
        merge: whether columns may be added, or missing.

    Raises:
        PipelineError: which columns differ, and how to go on.
    """
    unlike = {
        name: f"{name} is {table.get(name, 'missing')} there and {rows.get(name, 'missing')} here"
        for name in {**table, **rows}
        if table.get(name) != rows.get(name)
    }
    changed = [name for name in unlike if name in table and name in rows]
    added = [name for name in rows if name not in table]
    if unlike and not merge:
        hint = "" if changed else "set mergeSchema: true to add columns, or "
        raise PipelineError(
            f"the {what} has other columns: {', '.join(unlike.values())}; {hint}change the steps, "
            "or write to another table"
        )
    if changed:
        raise PipelineError(
            f"the {what} has other columns: {', '.join(unlike[name] for name in changed)}; "
            "mergeSchema only adds columns, so cast them in a step, or write to another table"
        )
    taken = {name.lower(): name for name in table}
    for name in added:
        if name.lower() in taken:
            raise PipelineError(
                f"the {what} has the column {taken[name.lower()]}, and rows have {name}: names "
                "must differ in more than case, so rename it in a step"
            )
    return added


def check_partitions(partition_by: Sequence[str], rows: Collection[str], what: str) -> None:
    """Check that rows have the columns that a table is partitioned by.

    Raises:
        PipelineError: which column they lack.
    """
    for column in partition_by:
        if column not in rows:
            raise PipelineError(
                f"partitionBy of the {what} names the column {column}, which the rows lack: they "
                f"have {', '.join(rows)}"
            )


def check_names(rows: Collection[str], what: str) -> None:
    """Check that the names of columns differ in more than case, as tables of a lake need.

    Raises:
        PipelineError: which two do not.
    """
    taken: dict[str, str] = {}
    for name in rows:
        if name.lower() in taken:
            raise PipelineError(
                f"the rows for the {what} have the columns {taken[name.lower()]} and {name}: names "
                "must differ in more than case, so rename one in a step"
            )
        taken[name.lower()] = name
