"""The Python process in which Spark runs tasks, one after the other.

Spark collects garbage in it after every task. That visits the objects of all imported modules,
which takes 20 ms of a core and frees none of them. So what is there when the second task begins,
right after the first of these collections, is left out of later ones.
"""

from __future__ import annotations

import gc
from itertools import count

from pyspark import TaskContext

from harebell.base.heap import keep_heap

_SECOND = 2
_TASKS = count(1)


def begin_task() -> None:
    """Prepare this process for a task; every task that reads or writes calls it once."""
    keep_heap()
    # Only once, for cycles among the objects of that task, are never freed.
    if TaskContext.get() is not None and next(_TASKS) == _SECOND:
        gc.freeze()
