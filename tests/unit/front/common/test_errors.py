"""Every kind of refusal has a reply code and a scope."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.front.common.errors import hard, reply_for, soft
from harebell.wire.v09.reply_codes import OWN


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_kind_of_refusal_can_be_told(kind: ErrorKind) -> None:
    error = reply_for(Refusal(kind, "why"), 50, 10)
    assert 300 < error.code < 600
    assert (error.text, error.class_id, error.method_id) == ("why", 50, 10)
    # AMQP 0-9-1 1.2: these are the constants of class soft-error. Ours are all soft.
    soft_errors = (311, 313, 403, 404, 405, 406, *OWN)
    assert error.hard is (error.code not in soft_errors)


def test_both_scopes_can_be_chosen() -> None:
    assert hard(540, "x", 1, 2).hard
    assert not soft(406, "x", 1, 2).hard
