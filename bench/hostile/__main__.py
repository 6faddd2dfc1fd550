"""One load in a process of its own.

    python -m bench.hostile '{...}'     prepares, says "ready", waits for a line, goes on, reports

The report is one line of JSON: how often it has written or asked.
"""

from __future__ import annotations

import os
import sys

import msgspec

from bench.hostile.loads import LOADS
from bench.hostile.side import Side, Task
from bench.peer import BenchError
from harebell.base.errors import HarebellError

_NICE = 5


def main(raw: str) -> int:
    """Play a load; 1 when it could not be played."""
    # What is measured is the broker's share of its attention, not the system's.
    os.nice(_NICE)
    side = Side(msgspec.json.decode(raw, type=Task))
    steps = LOADS[side.task.load].play(side)
    answer: dict[str, object]
    try:
        next(steps)
        print("ready", flush=True)
        sys.stdin.readline()
        side.begin()
        next(steps, None)
        side.idle()
        answer = {"done": side.done}
    except (BenchError, HarebellError, OSError) as error:
        answer = {"error": f"{side.task.load}: {error}"}
    print(msgspec.json.encode(answer).decode(), flush=True)
    # Connections end with the process: a load that says goodbye would have to read everything.
    os._exit("error" in answer)


if __name__ == "__main__":
    main(sys.argv[1])
