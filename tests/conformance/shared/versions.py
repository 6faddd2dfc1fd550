"""The versions that share rules, and what tests of all of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.raw import Peer
from tests.conformance.v010t.peer import Peer as PeerT
from tests.conformance.v08.peer import Peer8, Peer9

Connect = Callable[[], Any]
VERSIONS: dict[str, type[Peer]] = {"0-8": Peer8, "0-9": Peer9, "0-9-1": Peer, "0-10t": PeerT}
WITHOUT_0_9_1 = pytest.mark.parametrize("connect", ["0-8", "0-9", "0-10t"], indirect=True)
IN_EACH_VERSION = pytest.mark.parametrize("kind", VERSIONS.values(), ids=VERSIONS)


def do(peer: Any, *methods: m.Method) -> None:
    """Send methods one by one; each has its reply, or in transitional 0-10 is complete."""
    for method in methods:
        if peer.SPEC.spec_of(method).responses:
            peer.ask(method)
        else:
            peer.run(method)
