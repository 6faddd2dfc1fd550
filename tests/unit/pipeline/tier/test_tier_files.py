"""A tier in an object store that refuses its user, and on a disk that refuses one operation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.tier.tier_files import TierFiles
from tests.refusing_store import refusing_store


def test_an_object_store_without_rights_is_one_sentence_without_its_password() -> None:
    with refusing_store() as port:
        at = f"bucket/events?scheme=http&endpoint_override=127.0.0.1:{port}&region=eu"
        tier = TierFiles(f"s3://clerk:hunter2@{at}")
        rows = pa.table({"offset": [0, 1]})
        for act in (
            lambda: tier.take_up("/", "events", "g", "", 0),
            tier.parts,
            lambda: tier.add(rows, 0, 2),
        ):
            with pytest.raises(PipelineError, match=r"the tier s3://.* cannot be used: ") as caught:
                act()
            said = str(caught.value)
            assert "ACCESS_DENIED" in said or "AccessDenied" in said or "403" in said
            assert "the stream keeps what the tier does not have" in said
            assert "hunter2" not in said
            assert "\n" not in said


class Disk:
    """Counts the operations of a tier on a disk, and refuses one of them.

    Args:
        tier: its files.
        patch: replaces fsync.
    """

    CHANGES = ("create_dir", "open_output_stream", "open_input_stream", "move")

    def __init__(self, tier: TierFiles, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.refused = 0
        self.synced: list[str] = []
        self._files = tier._files
        tier._files = self
        sync = os.fsync

        def fsync(descriptor: int) -> None:
            self._step()
            self.synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            sync(descriptor)

        patch.setattr(os, "fsync", fsync)

    def _step(self) -> None:
        self.count += 1
        if self.count == self.refused:
            raise OSError(28, "No space left on device")

    def __getattr__(self, name: str) -> Any:
        act: Callable[..., Any] = getattr(self._files, name)

        def counted(*given: Any, **more: Any) -> Any:
            if name in self.CHANGES:
                self._step()
            return act(*given, **more)

        return counted


def test_a_file_is_in_the_tier_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"offset": [0, 1]})

    def copied(tier: TierFiles) -> None:
        """Do what a job does before it acknowledges."""
        parts = tier.take_up("/", "events", "g", "", 2)
        if parts:
            tier.verify(parts[-1])
        else:
            tier.add(rows, 0, 2)

    refused, ended, said = 0, False, ""
    while not ended:
        refused += 1
        place = tmp_path / str(refused)
        tier = TierFiles(str(place))
        disk = Disk(tier, monkeypatch)
        disk.refused = refused
        try:
            copied(tier)
            ended = True
        except PipelineError as error:
            said = str(error)
        assert ended or "No space left on device" in said
        disk.refused = 0
        for part in tier.parts():
            tier.verify(part)
        disk.synced.clear()
        if not ended:
            copied(tier)
            assert str(place) in disk.synced, refused
        assert [(part.first, part.end) for part in tier.parts()] == [(0, 2)]
    assert refused > 8
