"""Files of staged batches: every piece says what it is, and damage ends what is found."""

from __future__ import annotations

import pytest

from harebell.base.ports import File
from harebell.kernels.records import crc32c
from harebell.model.publishing.publishers import STAGED, Key
from harebell.model.publishing.stage_files import Piece, StoredPiece, pieces_of, write_piece
from tests.sim.disk import SimDisk

KEY = Key(STAGED, "/", "guest", "p\u00e4ge")
DATA = (b"one", b"", b"three")


def _written() -> tuple[File, list[StoredPiece]]:
    """A file with some pieces, and what is to be found in it."""
    file = SimDisk().open("f", create=True)
    at, expected = 0, []
    for number, data in enumerate(DATA):
        piece = Piece("value,headers", 0, 0, len(data), number, crc32c(data))
        start = write_piece(file, at, KEY, 2**63, (7, 2**40), number, piece, data)
        expected.append(StoredPiece(KEY, 2**63, (7, 2**40), number, piece._replace(start=start)))
        at = start + len(data)
    return file, expected


def test_pieces_are_found_as_they_were_written() -> None:
    file, expected = _written()
    found = list(pieces_of(file))
    assert found == expected
    pieces = [each.piece for each in found]
    assert [file.read_at(piece.size, piece.start) for piece in pieces] == list(DATA)


def test_a_file_that_is_cut_anywhere_has_the_pieces_before() -> None:
    file, expected = _written()
    ends = [each.piece.start + each.piece.size for each in expected]
    for size in range(file.size(), -1, -1):
        file.truncate(size)
        assert list(pieces_of(file)) == expected[: sum(end <= size for end in ends)]


@pytest.mark.parametrize("number", range(len(DATA)))
def test_no_piece_is_found_from_a_damaged_header_on(number: int) -> None:
    whole, expected = _written()
    begin = expected[number - 1].piece.start + expected[number - 1].piece.size if number else 0
    for at in range(begin, expected[number].piece.start):
        octet = whole.read_at(1, at)
        whole.write_at(bytes([octet[0] ^ 0x55]), at)
        assert list(pieces_of(whole)) == expected[:number]
        whole.write_at(octet, at)
    assert list(pieces_of(whole)) == expected
