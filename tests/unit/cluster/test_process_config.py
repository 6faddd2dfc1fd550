"""The configuration of a process that has one of several stores of a machine."""

from __future__ import annotations

import pytest

from harebell.cluster.process_config import config_of
from harebell.config import Config, load, memory_share


def stores(count: int, watermark: str) -> Config:
    url = "postgresql://localhost/harebell"
    flags = {"storage": url, "storage_stores": count, "memory_high_watermark": watermark}
    return load(flags, {})


@pytest.mark.parametrize(
    ("written", "octets"), [("0.5", 125), ("512MiB", 128 << 20), ("0", 0), ("1", 250)]
)
def test_the_memory_is_shared_evenly_whether_it_is_a_share_or_a_size(
    written: str, octets: int
) -> None:
    config = stores(4, written)
    for number in (1, 2, 4):
        own = config_of(config, number)
        assert memory_share(own, machine_bytes=1000) == octets
        assert own.memory_high_watermark == config.memory_high_watermark
