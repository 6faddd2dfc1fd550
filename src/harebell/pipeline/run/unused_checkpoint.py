"""Remove a checkpoint that counts nothing: that of a statement which failed before its first batch.

Spark writes down what a query reads before it finds out that it cannot run it, and refuses another
query with that checkpoint.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harebell.pipeline.run.locking import CheckpointLock


def remove_unused(checkpoint: Path, name: str) -> None:
    """Empty a checkpoint, unless a micro-batch was committed.

    Args:
        checkpoint: its directory; it may be missing.
        name: of the pipeline, for the error of another process.

    Raises:
        PipelineError: another process uses it.
    """
    if not checkpoint.is_dir() or _counts(checkpoint):
        return
    with CheckpointLock(checkpoint, name) as lock:
        if _counts(checkpoint):
            return
        for each in checkpoint.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
            elif each != lock.path:
                each.unlink()


def _counts(checkpoint: Path) -> bool:
    return any((checkpoint / "commits").glob("[0-9]*"))
