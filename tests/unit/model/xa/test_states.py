"""Every call in every state of a branch: what X/Open XA and AMQP 0-10 say, written down by hand.

    A active  I idle  P prepared  O read-only  f failing  F failed  e expiring  E expired
    C committed heuristically  R rolled back heuristically  - unknown

An entry is the state that follows and the answer: nothing for xa-ok, or one of rb, to, ro, hc, hr;
or a fault: known, nota (not known), bad (not allowed in that state).
"""

from __future__ import annotations

import pytest

from harebell.model.xa.states import Call, Fault, State, Status, Step, step

STATES = {
    "-": State.UNKNOWN,
    "A": State.ACTIVE,
    "I": State.IDLE,
    "P": State.PREPARED,
    "O": State.READ_ONLY,
    "f": State.FAILING,
    "F": State.FAILED,
    "e": State.EXPIRING,
    "E": State.EXPIRED,
    "C": State.DECIDED_COMMIT,
    "R": State.DECIDED_ROLLBACK,
}
STATUSES = {
    "": Status.OK,
    "rb": Status.ROLLED_BACK,
    "to": Status.TIMED_OUT,
    "ro": Status.READ_ONLY,
    "hc": Status.HEURISTIC_COMMIT,
    "hr": Status.HEURISTIC_ROLLBACK,
}
FAULTS = {
    "known": Fault.ALREADY_KNOWN,
    "nota": Fault.UNKNOWN_XID,
    "bad": Fault.ILLEGAL_STATE,
}
GRID = """
call              -     A      I      P      O     f      F      e      E      C      R
START             A     known  known  known  A     known  known  known  known  known  known
JOIN              nota  A      A      bad    nota  f/rb   F/rb   e/to   E/to   bad    bad
RESUME            nota  A      bad    bad    bad   f/rb   bad    e/to   bad    bad    bad
SUSPEND           nota  A      bad    bad    bad   f/rb   bad    e/to   bad    bad    bad
END               nota  A      bad    bad    bad   f/rb   bad    e/to   bad    bad    bad
LAST_END          nota  I      bad    bad    bad   F/rb   bad    E/to   bad    bad    bad
FAIL              nota  f/rb   bad    bad    bad   f/rb   bad    e/to   bad    bad    bad
LAST_FAIL         nota  F/rb   bad    bad    bad   F/rb   bad    E/to   bad    bad    bad
LOST              nota  f      bad    bad    bad   f/rb   bad    e/to   bad    bad    bad
LAST_LOST         nota  F      bad    bad    bad   F/rb   bad    E/to   bad    bad    bad
PREPARE           nota  bad    P      bad    bad   bad    F/rb   bad    E/to   bad    bad
PREPARE_NOTHING   nota  bad    O/ro   bad    bad   bad    F/rb   bad    E/to   bad    bad
PREPARE_CROWDED   nota  bad    F/rb   bad    bad   bad    F/rb   bad    E/to   bad    bad
COMMIT            nota  bad    bad    -      -     bad    -/rb   bad    -/to   C/hc   R/hr
COMMIT_ONE_PHASE  nota  bad    -      bad    bad   bad    -/rb   bad    -/to   C/hc   R/hr
COMMIT_CROWDED    nota  bad    -/rb   bad    bad   bad    -/rb   bad    -/to   C/hc   R/hr
ROLLBACK          nota  bad    -      -      -     bad    -      bad    -/to   C/hc   R/hr
FORGET            nota  bad    bad    bad    bad   bad    bad    bad    bad    -      -
TIMEOUT           nota  e      E      P      -     f/rb   -      e/to   -      bad    bad
GET_TIMEOUT       nota  A      I      P      nota  f      F      e      E      C      R
SET_TIMEOUT       nota  A      I      P      nota  f      F      e      E      C      R
DECIDE_COMMIT     nota  bad    bad    C      bad   bad    bad    bad    bad    bad    bad
DECIDE_ROLLBACK   nota  bad    bad    R      bad   bad    bad    bad    bad    bad    bad
"""


def _expected(cell: str) -> Step | Fault:
    if cell in FAULTS:
        return FAULTS[cell]
    state, _, status = cell.partition("/")
    return Step(STATES[state], STATUSES[status])


def _cells() -> list[tuple[State, Call, str]]:
    head, *rows = [line.split() for line in GRID.strip().splitlines()]
    return [
        (STATES[state], Call[row[0]], cell)
        for row in rows
        for state, cell in zip(head[1:], row[1:], strict=True)
    ]


def test_the_grid_has_every_call_in_every_state_once() -> None:
    pairs = [(state, call) for state, call, _ in _cells()]
    assert len(pairs) == len(set(pairs)) == len(State) * len(Call)


@pytest.mark.parametrize(
    ("state", "call", "cell"), _cells(), ids=lambda part: getattr(part, "name", part)
)
def test_a_call_in_a_state_does_what_the_grid_says(state: State, call: Call, cell: str) -> None:
    assert step(state, call) == _expected(cell)


def test_the_numbers_of_the_answers_are_those_of_amqp() -> None:
    assert [(status.name, int(status)) for status in Status] == [
        ("OK", 0),
        ("ROLLED_BACK", 1),
        ("TIMED_OUT", 2),
        ("HEURISTIC_HAZARD", 3),
        ("HEURISTIC_COMMIT", 4),
        ("HEURISTIC_ROLLBACK", 5),
        ("HEURISTIC_MIX", 6),
        ("READ_ONLY", 7),
    ]
