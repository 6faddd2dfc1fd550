"""What clients do wrong on the wire is answered alike: at the same scope, with the same code."""

from __future__ import annotations

import pytest

from tests.interop.differential.forgiven import DIFFERENCES
from tests.interop.differential.mistakes import mistakes
from tests.interop.differential.reactions import reactions
from tests.interop.rabbitmq import RabbitNode
from tests.running import running_broker


@pytest.mark.timeout(900)
def test_both_brokers_answer_every_mistake_alike() -> None:
    every = list(mistakes())
    with running_broker() as broker:
        ours = reactions(broker.port, every)
    node = RabbitNode()
    node.start()
    try:
        theirs = reactions(node.port, every)
    finally:
        node.stop()
    assert len(ours) == len(theirs) == len(every) > 700
    unexplained = []
    needed = set()
    for name, said in ours.items():
        mine, other = "; ".join(said), "; ".join(theirs[name])
        covering = [each for each in DIFFERENCES if each.covers(name, mine, other)]
        if mine != other and not covering:
            unexplained.append(f"{name}: Harebell {mine!r}, RabbitMQ {other!r}")
        elif mine != other:
            needed.add(covering[0])
    assert unexplained == []
    assert [each for each in DIFFERENCES if each not in needed] == []
