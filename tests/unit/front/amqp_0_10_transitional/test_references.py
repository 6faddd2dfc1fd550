"""References: bodies in pieces, whose names are valid from open or resume to close."""

from __future__ import annotations

import pytest

from harebell.base.errors import ProtocolError
from harebell.base.gauge import Gauge
from harebell.base.work import Work
from harebell.front.amqp_0_10_transitional.references import References
from harebell.front.common.checkpoints import Checkpoints, Key
from harebell.front.limits import REFERENCE_NAME_BYTES, REFERENCES_PER_SESSION

MAX = 10_000


def key(identifier: str) -> Key:
    """Where the session keeps a checkpoint."""
    return ("/", "guest", identifier)


@pytest.fixture
def gauge() -> Gauge:
    """The memory."""
    return Gauge()


@pytest.fixture
def checkpoints(gauge: Gauge) -> Checkpoints:
    """What outlives a session."""
    return Checkpoints(gauge, lambda: 0)


@pytest.fixture
def session(gauge: Gauge, checkpoints: Checkpoints) -> References:
    """The references of a session."""
    return References(gauge, checkpoints, key, MAX)


def later(gauge: Gauge, checkpoints: Checkpoints) -> References:
    """The references of a session after that one."""
    return References(gauge, checkpoints, key, MAX)


def code_of(call: object, *arguments: object) -> tuple[int, bool]:
    """The reply code that a call ends with, and whether it is the connection's end."""
    with pytest.raises(ProtocolError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.code, caught.value.hard


def test_pieces_become_a_body_in_their_order(session: References) -> None:
    session.open(b"r")
    for piece in (b"abc", b"", bytes(5000), b"d", b"ef"):
        session.append(b"r", piece)
    assert session.close(b"r").body() == b"abc" + bytes(5000) + b"def"


def test_a_reference_without_pieces_is_an_empty_body(session: References) -> None:
    session.open(b"r")
    assert session.close(b"r").body() == b""


def test_references_do_not_mix(session: References) -> None:
    session.open(b"r")
    session.open(b"s")
    session.append(b"r", b"1")
    session.append(b"s", b"2")
    session.append(b"r", b"3")
    assert session.close(b"s").body() == b"2"
    assert session.close(b"r").body() == b"13"


def test_a_name_is_free_again_after_close(session: References) -> None:
    session.open(b"r")
    session.append(b"r", b"first")
    session.close(b"r")
    session.open(b"r")
    assert session.close(b"r").body() == b""


def test_a_name_cannot_be_opened_twice(session: References) -> None:
    session.open(b"r")
    assert code_of(session.open, b"r") == (503, True)
    assert code_of(session.resume, b"r", "mark") == (503, True)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [("append", (b"x",)), ("close", ()), ("checkpoint", ("mark",))],
)
def test_a_name_that_is_not_open_is_an_error(
    session: References, call: str, arguments: tuple[object, ...]
) -> None:
    assert code_of(getattr(session, call), b"r", *arguments) == (503, True)
    session.open(b"r")
    session.close(b"r")
    assert code_of(getattr(session, call), b"r", *arguments) == (503, True)


def test_a_body_over_the_limit_is_refused_before_it_is_kept(
    session: References, gauge: Gauge
) -> None:
    session.open(b"r")
    session.append(b"r", bytes(MAX))
    assert code_of(session.append, b"r", b"x") == (311, False)
    assert gauge.used == MAX


def test_too_many_references_and_too_long_names_are_refused(session: References) -> None:
    assert code_of(session.open, bytes(REFERENCE_NAME_BYTES + 1)) == (506, True)
    for number in range(REFERENCES_PER_SESSION):
        session.open(str(number).encode())
    assert code_of(session.open, b"one more") == (506, True)


def test_incomplete_references_count_as_memory_and_as_unread(
    session: References, gauge: Gauge
) -> None:
    session.open(b"r")
    session.append(b"r", b"12345")
    session.open(b"s")
    session.append(b"s", b"123")
    assert (gauge.used, gauge.unread) == (8, 8)
    session.close(b"r")
    assert (gauge.used, gauge.unread) == (3, 3)
    session.release(Work())
    assert (gauge.used, gauge.unread, len(session)) == (0, 0, 0)


def test_a_checkpoint_outlives_its_session(
    session: References, gauge: Gauge, checkpoints: Checkpoints
) -> None:
    session.open(b"r")
    session.append(b"r", b"abcdefgh")
    session.append(b"r", b"ijkl")
    session.checkpoint(b"r", "mark")
    session.append(b"r", b"not saved")
    session.release(Work())
    again = later(gauge, checkpoints)
    assert again.resume(b"other", "mark") == 12
    again.append(b"other", b"mnop")
    assert again.close(b"other").body() == b"abcdefghijklmnop"


def test_the_last_checkpoint_counts(
    session: References, gauge: Gauge, checkpoints: Checkpoints
) -> None:
    session.open(b"r")
    session.append(b"r", b"abc")
    session.checkpoint(b"r", "mark")
    session.checkpoint(b"r", "mark")
    session.append(b"r", b"def")
    session.checkpoint(b"r", "mark")
    session.release(Work())
    assert later(gauge, checkpoints).resume(b"r", "mark") == 6


def test_a_resumed_body_can_be_marked_and_broken_again(
    session: References, gauge: Gauge, checkpoints: Checkpoints
) -> None:
    session.open(b"r")
    session.append(b"r", b"abc")
    session.checkpoint(b"r", "mark")
    session.release(Work())
    second = later(gauge, checkpoints)
    assert second.resume(b"r", "mark") == 3
    second.append(b"r", b"def")
    second.checkpoint(b"r", "mark")
    second.release(Work())
    third = later(gauge, checkpoints)
    assert third.resume(b"r", "mark") == 6
    assert third.close(b"r").body() == b"abcdef"
    assert gauge.used == 0


def test_another_identifier_moves_the_checkpoint(
    session: References, gauge: Gauge, checkpoints: Checkpoints
) -> None:
    session.open(b"r")
    session.append(b"r", b"abc")
    session.checkpoint(b"r", "one")
    session.append(b"r", b"def")
    session.checkpoint(b"r", "two")
    session.release(Work())
    again = later(gauge, checkpoints)
    assert again.resume(b"r", "one") == 0
    assert again.resume(b"s", "two") == 6


def test_a_reference_without_a_mark_begins_anew(session: References) -> None:
    assert session.resume(b"r", "mark") == 0
    session.append(b"r", b"abc")
    assert session.close(b"r").body() == b"abc"


def test_a_closed_body_has_no_checkpoint_any_more(
    session: References, checkpoints: Checkpoints, gauge: Gauge
) -> None:
    session.open(b"r")
    session.append(b"r", b"abc")
    session.checkpoint(b"r", "mark")
    assert session.close(b"r").body() == b"abc"
    assert (len(checkpoints), gauge.used) == (0, 0)


def test_a_checkpoint_after_every_octet_keeps_the_body(
    session: References, gauge: Gauge, checkpoints: Checkpoints
) -> None:
    session.open(b"r")
    for at in range(MAX):
        session.append(b"r", bytes((at % 251,)))
        session.checkpoint(b"r", "mark")
    session.release(Work())
    again = later(gauge, checkpoints)
    assert again.resume(b"r", "mark") == MAX
    assert again.close(b"r").body() == bytes(at % 251 for at in range(MAX))


def test_memory_of_dropped_references_is_freed_in_slices(gauge: Gauge, session: References) -> None:
    for name in (b"a", b"b"):
        session.open(name)
        for _ in range(2):
            session.append(name, bytes(5_000))
    work, steps = Work(), []
    work.later = steps.append
    session.release(work)
    assert (gauge.used, gauge.unread, len(session)) == (0, 0, 0)
    (step,) = steps
    slices = 0
    while True:
        work.begin(1)
        if step():
            break
        slices += 1
    assert slices >= 4
