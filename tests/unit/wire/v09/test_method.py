"""What all typed methods have in common: names that follow from their classes."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods, methods_transitional
from harebell.wire.v09.method import METHODS, Method


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (methods.BasicAck, "basic.ack"),
        (methods.QueueDeclareOk, "queue.declare-ok"),
        (methods_transitional.SessionHighWaterMark, "session.high-water-mark"),
        (methods_transitional.DtxDemarcationStartOk, "dtx-demarcation.start-ok"),
        (methods_transitional.DtxCoordinationCommit, "dtx-coordination.commit"),
    ],
)
def test_a_method_is_called_what_it_is_on_paper(kind: type[Method], name: str):
    assert name == kind.NAME
    assert METHODS[name] is kind
