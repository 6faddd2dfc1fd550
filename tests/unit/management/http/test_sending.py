"""A body that many clients get is compressed once, a piece in each turn."""

from __future__ import annotations

import asyncio
import gzip

from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.management.http.sending import PackedBodies
from harebell.management.limits import HTTP_PACKED_BODIES

BODY = bytes(range(256)) * (HTTP_CHUNK_BYTES // 256 * 5)


class Turns:
    """Counts the turns that are waited for."""

    def __init__(self) -> None:
        self.count = 0

    async def turn(self) -> None:
        """Wait for a turn."""
        self.count += 1
        await asyncio.sleep(0)


def test_a_body_is_compressed_once_in_many_turns_for_all_who_ask() -> None:
    turns, packed = Turns(), PackedBodies()

    async def ask() -> list[list[bytes]]:
        asked = [packed.of(bytes(BODY), turns.turn) for _ in range(20)]
        return [*await asyncio.gather(*asked), await packed.of(BODY, turns.turn)]

    found = asyncio.run(ask())
    assert turns.count == len(BODY) // HTTP_CHUNK_BYTES + 1
    assert all(each is found[0] for each in found)
    assert gzip.decompress(b"".join(found[0])) == BODY


def test_a_client_that_goes_does_not_end_the_work_for_others() -> None:
    turns, packed = Turns(), PackedBodies()

    async def ask() -> bytes:
        first = asyncio.ensure_future(packed.of(BODY, turns.turn))
        await asyncio.sleep(0)
        first.cancel()
        return b"".join(await packed.of(BODY, turns.turn))

    assert gzip.decompress(asyncio.run(ask())) == BODY
    assert turns.count == len(BODY) // HTTP_CHUNK_BYTES + 1


def test_few_bodies_are_kept() -> None:
    turns, packed = Turns(), PackedBodies()

    async def ask() -> None:
        for number in range(3 * HTTP_PACKED_BODIES):
            await packed.of(b"%d" % number, turns.turn)

    asyncio.run(ask())
    assert len(packed._packings) <= HTTP_PACKED_BODIES
