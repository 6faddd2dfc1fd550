"""What Spark has written in a checkpoint of how far a query is.

<checkpoint>/offsets/7     two lines, then the offsets where micro-batch 7 ends, a line for each
                           source; written before it begins
<checkpoint>/commits/7     micro-batch 7 is finished
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harebell.spark.reading.offsets import OffsetError, QueueOffset, offsets_of

# The version of Spark's log, and the metadata of the micro-batch.
_HEAD_LINES = 2


def last_batch(checkpoint: Path, log: str) -> int | None:
    """Return the number of the last micro-batch in a log; None if there is none.

    Args:
        checkpoint: the directory of the checkpoint.
        log: `commits` for what is finished, `offsets` for what was planned.
    """
    names = [each.name for each in (checkpoint / log).glob("*")]
    return max((int(name) for name in names if name.isdigit()), default=None)


def offsets_at(checkpoint: Path, batch: int) -> Iterator[tuple[str, QueueOffset]]:
    """Yield queues and where a micro-batch ends in them; "" for the only one over plain AMQP.

    Raises:
        OSError: it cannot be read.
    """
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    for line in lines[_HEAD_LINES:]:
        try:
            yield from offsets_of(json.loads(line)).items()
        except (ValueError, OffsetError):
            # The micro-batch has sources of other formats, too.
            continue
