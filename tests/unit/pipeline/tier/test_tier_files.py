"""A tier in an object store that refuses its user."""

from __future__ import annotations

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
            lambda: tier.belongs_to("/", "events", "g"),
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
