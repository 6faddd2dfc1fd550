"""AMQPLAIN: a table without its length."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.sasl import Credentials, SaslError
from harebell.auth.sasl.amqplain import AmqPlain
from harebell.wire.v09.fields import decode_table, encode_table


def decoded(data: bytes) -> dict[str, Any]:
    return decode_table(len(data).to_bytes(4) + data)[0]


def amqplain(response: bytes) -> Credentials:
    return AmqPlain(decoded).credentials(response)


def test_login_and_password_come_from_the_table() -> None:
    table = {"LOGIN": "user", "PASSWORD": "pass", "OTHER": 1}
    assert amqplain(encode_table(table)[4:]) == Credentials("user", "pass")


@pytest.mark.parametrize(
    "table", [{}, {"LOGIN": "user"}, {"PASSWORD": "x"}, {"LOGIN": 5, "PASSWORD": "x"}]
)
def test_a_table_without_both_texts_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(SaslError, match="LOGIN and PASSWORD as long strings"):
        amqplain(encode_table(table)[4:])


def test_a_response_that_is_no_table_is_refused() -> None:
    with pytest.raises(SaslError, match="an AMQPLAIN response is a field table"):
        amqplain(b"\x05LOGI")
