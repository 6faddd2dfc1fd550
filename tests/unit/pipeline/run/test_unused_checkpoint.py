"""A checkpoint that counts nothing is emptied for another query; any other one stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.locking import CheckpointLock
from harebell.pipeline.run.unused_checkpoint import remove_unused
from harebell.pipeline.spec.description import Description, Sink, Source, Trigger


def pipeline(checkpoint: Path) -> Description:
    return Description(
        name="orders",
        file=None,
        directory=checkpoint.parent,
        sources=(Source("orders", {"queue": "orders"}),),
        steps=(),
        sinks=(Sink("lake", "delta", "orders", "lake"),),
        trigger=Trigger(),
        checkpoint=checkpoint,
    )


def begun(checkpoint: Path) -> Path:
    """A checkpoint whose first micro-batch was planned."""
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text("v1")
    (checkpoint / "metadata").write_text("{}")
    return checkpoint


def test_a_checkpoint_without_a_committed_batch_is_emptied(tmp_path: Path) -> None:
    remove_unused(pipeline(tmp_path / "none"))
    checkpoint = begun(tmp_path / "one")
    (checkpoint / "commits").mkdir()
    remove_unused(pipeline(checkpoint))
    assert [each.name for each in checkpoint.iterdir()] == ["harebell.lock"]


def test_a_committed_batch_keeps_it(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path / "one")
    (checkpoint / "commits").mkdir()
    (checkpoint / "commits" / "0").write_text("v1")
    remove_unused(pipeline(checkpoint))
    assert (checkpoint / "offsets" / "0").exists()


def test_a_checkpoint_in_use_is_left_alone(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path / "one")
    with (
        CheckpointLock(checkpoint, "first"),
        pytest.raises(PipelineError, match="is in use by pipeline first"),
    ):
        remove_unused(pipeline(checkpoint))
    assert (checkpoint / "offsets" / "0").exists()
