"""What Spark says about a wrong name becomes a sentence with the nearest right one."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from harebell.pipeline.sql.explained_errors import explained

NO_SESSION: Any = None
NOT_FOUND = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view {} cannot be found. Verify the spelling and "
    "correctness of the schema and catalog. SQLSTATE: 42P01; line 1 pos 14"
)
NOT_A_NAME = (
    "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got "
    "identifier {}. SQLSTATE: 42K05"
)


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (
            NOT_A_NAME,
            "`harbell`.`default`.`orders`",
            "there is no catalog harbell: did you mean harebell?",
        ),
        (
            NOT_FOUND,
            "`harbell`.`default`.`orders`",
            "there is no catalog harbell: did you mean harebell?",
        ),
        (
            NOT_A_NAME,
            "`kafka`.`default`.`orders`",
            "there is no catalog kafka: queues are tables of harebell.default",
        ),
        (
            NOT_FOUND,
            "`orders`",
            "there is no table orders: the messages of a queue are queue('orders')",
        ),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(text: str, name: str, sentence: str) -> None:
    error = AnalysisException(text.format(name))
    assert str(explained(error, f"SELECT * FROM {name}", NO_SESSION)) == sentence
