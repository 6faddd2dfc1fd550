"""What clients do wrong on the wire is answered alike: at the same scope, with the same code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.differential.forgiven import DIFFERENCES, Difference
from tests.interop.differential.mistakes import Mistake, mistakes
from tests.interop.differential.reactions import reactions
from tests.interop.rabbitmq import RabbitNode
from tests.running import running_broker

_TRIES = 5
_HANDSHAKE_SECONDS = 300


@pytest.mark.timeout(900)
def test_both_brokers_answer_every_mistake_alike() -> None:
    every = list(mistakes())
    # Some mistakes are made before the login, which is made many times first.
    node = RabbitNode(settings=[f"handshake_timeout = {_HANDSHAKE_SECONDS * 1_000}"])
    try:
        with ThreadPoolExecutor(1) as beside:
            # RabbitMQ takes seconds to start, and pauses before it closes some connections.
            begun = beside.submit(_reactions_of, node, every)
            with running_broker("--handshake-timeout-seconds", str(_HANDSHAKE_SECONDS)) as broker:
                ours = reactions(broker.port, every)
        theirs = begun.result()
        needed = _needed(ours, theirs)
        for _ in range(_TRIES):
            # Where RabbitMQ's processes race, an answer of one run is not that of the next.
            differing = _differing(every, ours, theirs)
            theirs |= reactions(node.port, differing)
    finally:
        node.stop()
    assert len(ours) == len(theirs) == len(every) > 700
    differing = _differing(every, ours, theirs)
    assert [(each.name, ours[each.name], theirs[each.name]) for each in differing] == []
    assert [each for each in DIFFERENCES if each not in needed] == []


def _reactions_of(node: RabbitNode, every: list[Mistake]) -> dict[str, list[str]]:
    node.start()
    return reactions(node.port, every)


def _covering(name: str, ours: list[str], theirs: list[str]) -> list[Difference]:
    mine, other = "; ".join(ours), "; ".join(theirs)
    return [each for each in DIFFERENCES if each.covers(name, mine, other)]


def _differing(
    every: list[Mistake], ours: dict[str, list[str]], theirs: dict[str, list[str]]
) -> list[Mistake]:
    """The mistakes that are answered differently without a reason."""
    return [
        each
        for each in every
        if ours[each.name] != theirs[each.name]
        and not _covering(each.name, ours[each.name], theirs[each.name])
    ]


def _needed(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> set[Difference]:
    """The reviewed differences that were seen."""
    differing = (name for name in ours if ours[name] != theirs[name])
    covering = (_covering(name, ours[name], theirs[name]) for name in differing)
    return {found[0] for found in covering if found}
