"""Remove a checkpoint that counts nothing: that of a statement which failed before its first batch.

Spark writes down what a query reads before it finds out that it cannot run it, and refuses another
query with that checkpoint.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harebell.pipeline.run.locking import CheckpointLock
from harebell.pipeline.run.logged_claims import forget_planned_claims
from harebell.pipeline.spec.description import Description


def remove_unused(pipeline: Description) -> None:
    """Empty the checkpoint of a pipeline, unless a micro-batch was committed.

    Messages that it had planned go back to their queues, for the next query to read.

    Raises:
        PipelineError: another process uses it.
    """
    checkpoint, name = pipeline.checkpoint, pipeline.name
    if not checkpoint.is_dir() or _counts(checkpoint):
        return
    with CheckpointLock(checkpoint, name) as lock:
        # Another process may have committed a micro-batch before the lock.
        if _counts(checkpoint):
            return
        # First: without the checkpoint the names of the groups are unknown.
        forget_planned_claims(pipeline)
        for each in checkpoint.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
            # The lock's file stays: if it went, another process could lock a new one beside it.
            elif each != lock.path:
                each.unlink()


def _counts(checkpoint: Path) -> bool:
    return any((checkpoint / "commits").glob("[0-9]*"))
