"""What errors of the sink advise: options, which statements of `harebell sql` do not have."""

from __future__ import annotations

NO_ROUTE_MEND = "Bind a queue, or set deadLetter, or mandatory=false"
BAD_ROW_MEND = (
    "set deadLetter to an exchange, which gets such rows with the reason, or badRows=drop"
)
