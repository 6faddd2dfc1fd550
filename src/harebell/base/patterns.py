"""Search for regular expressions in names, in bounded time.

Administrators write patterns, and clients choose the names. Python's `re` backtracks, which takes
exponential time for a pattern such as `^([a-z]+-?)+$`; RabbitMQ's library stops at a limit. Here
such patterns are simulated as automata (Thompson, CACM 11:6, 1968): the work is at most the length
of the name times the size of the pattern, and ends at PATTERN_TESTS. What compiling costs is
bounded before it begins. Single characters and positions are still tested by `re`,
so the results are the same.

Patterns are those of Python, and of PCRE, which RabbitMQ uses, what `harebell.base.pcre` knows.
Anything else is refused.

    pattern    ^(ab?)+c
    machine    0: at ^ -> 1    1: a -> 2    2: either 3 or 4    3: b -> 4    4: either 1 or 5
               5: c -> the end
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from harebell.base.limits import (
    PATTERN_BYTES,
    PATTERN_CACHE_ENTRIES,
    PATTERN_LINEAR_STATES,
    PATTERN_LINEAR_TESTS,
    PATTERN_LINEAR_TRANSITIONS,
    PATTERN_NAMES,
    PATTERN_NESTING,
    PATTERN_RANGE_CHARACTERS,
    PATTERN_STEPS,
    PATTERN_TESTS,
    PATTERN_TESTS_TOGETHER,
)
from harebell.base.pcre import translated

_ONE = frozenset((_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN))
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)
_STARTS = [
    (_constants.AT, _constants.AT_BEGINNING),
    (_constants.AT, _constants.AT_BEGINNING_STRING),
]
_ENDS = [(_constants.AT, _constants.AT_END), (_constants.AT, _constants.AT_END_STRING)]
_FOUND = 0
_FEW_CHOICES = 4
_TWICE = 2

Search = Callable[[str], bool]
"""True if the pattern is found anywhere in the name."""


class SearchBudget:
    """What searches for several patterns in one name may take together.

    Attributes:
        left: tests of a character or position that are left; with none, no more patterns are found
            that are simulated as automata.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = PATTERN_TESTS_TOGETHER


class _Test:
    """Compares one character or position, and is compiled when it is first needed.

    Args:
        node: the part of the pattern.
        state: the state of its parser, with the flags.
    """

    __slots__ = ("_compiled", "_node", "_state")

    def __init__(self, node: Any, state: Any) -> None:
        self._node = node
        self._state = state
        self._compiled: re.Pattern[str] | None = None

    def holds(self, text: str, at: int = 0) -> bool:
        """True if it matches at a place of a text."""
        if self._compiled is None:
            alone = _parser.SubPattern(self._state, [self._node])
            self._compiled = _compiler.compile(alone, self._state.flags)
        return self._compiled.match(text, at) is not None


class _Step(NamedTuple):
    """A state of the automaton.

    Args:
        test: the pattern of one character or position; None for an unconditional choice.
        width: characters that the test takes, 0 or 1.
        after: the states after it.
    """

    test: _Test | None
    width: int
    after: tuple[int, ...]


class _NotFollowed(Exception):
    """The pattern has something that the automaton does not support."""


class PatternRefused(ValueError):
    """A pattern is invalid, or costs too much; the text completes a sentence about it."""


class PatternTooCostly(PatternRefused):
    """A pattern costs too much to compile or to search for."""


class PatternTooSlow(Exception):
    """A search was ended: it needs more tests than one search may have."""


@lru_cache(PATTERN_CACHE_ENTRIES)
def search_for(pattern: str, flags: int = 0) -> Search:
    """Return a function that searches for a pattern in a name.

    A name that takes too many tests is not found, as RabbitMQ's library finds nothing above its
    limit of matches.

    Args:
        pattern: the regular expression.
        flags: flags of `re`.

    Raises:
        PatternRefused: it is invalid, or costs too much.
    """
    pattern = _in_python(pattern)
    tree = _parsed(pattern, flags)
    if _quick(tree):
        compiled = _compiled(pattern, flags)
        return lambda name: compiled.search(name) is not None
    try:
        # First: what is too large for it takes longer to compile.
        machine = _Machine(tree)
    except _NotFollowed:
        raise PatternTooCostly(
            "is too large, or has back references, possessive or atomic parts beside repeats: "
            "write it with fewer of them"
        ) from None
    _compiled(pattern, flags)

    return _Simulated(machine)


class _Simulated:
    """Searches with an automaton, and counts its tests."""

    def __init__(self, machine: _Machine) -> None:
        # A command asks for the same name several times: for its rights, policies and row.
        self._counted = lru_cache(PATTERN_NAMES)(
            lambda name: machine.simulate(name, PATTERN_TESTS, {})
        )

    def __call__(self, name: str) -> bool:
        return self._counted(name)[0]

    def within(self, name: str, budget: SearchBudget) -> bool:
        """Search, and take its tests off the budget; find nothing if none are left."""
        if budget.left <= 0:
            return False
        matched, taken = self._counted(name)
        # Also for a name of which the answer was known: what is found must not depend on that.
        budget.left -= taken
        return matched


def found_by(pattern: str, flags: int = 0) -> Search:
    """Return a function that searches for a stored pattern; one that costs too much finds nothing.

    Args:
        pattern: the regular expression.
        flags: flags of `re`.

    Raises:
        PatternRefused: it is invalid.
    """
    try:
        return search_for(pattern, flags)
    except PatternTooCostly:
        return _finds_nothing


def found_within(search: Search, name: str, budget: SearchBudget) -> bool:
    """Search for one of several patterns in a name.

    Args:
        search: what `search_for` or `found_by` has returned for it.
        name: what is searched.
        budget: what all of them may take together.
    """
    return search.within(name, budget) if isinstance(search, _Simulated) else search(name)


def tree_of(pattern: str, flags: int = 0) -> Any:
    """Return the tree of a pattern, as the parser of `re` makes it.

    Raises:
        PatternRefused: it is invalid, or too costly to compile.
    """
    return _parsed(_in_python(pattern), flags)


def _finds_nothing(_name: str) -> bool:
    return False


def _in_python(pattern: str) -> str:
    """Return a pattern in the words of Python.

    Raises:
        PatternRefused: it is too long, or has a class of characters that is unknown.
    """
    if len(pattern.encode("utf-8", "replace")) > PATTERN_BYTES:
        raise PatternTooCostly(f"has more than {PATTERN_BYTES} bytes")
    try:
        return translated(pattern)
    except re.error as error:
        raise PatternRefused(f"is invalid: {error}") from None


def _parsed(pattern: str, flags: int = 0) -> Any:
    """Return the tree of a pattern.

    Raises:
        PatternRefused: it is invalid, or too costly to compile.
    """
    try:
        tree = _parser.parse(pattern, flags)
        characters = _ranged(tree, PATTERN_NESTING)
    except re.error as error:
        raise PatternRefused(f"is invalid: {error}") from None
    except OverflowError:
        raise PatternRefused("is invalid: a number in it is too large") from None
    except (RecursionError, _NotFollowed):
        raise PatternTooCostly(f"has more than {PATTERN_NESTING} groups in each other") from None
    if characters > PATTERN_RANGE_CHARACTERS:
        raise PatternTooCostly(
            f"has ranges with more than {PATTERN_RANGE_CHARACTERS} characters together"
        )
    return tree


def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    """Compile a pattern that was parsed.

    Raises:
        PatternRefused: it is invalid, as a look-behind of variable width is.
    """
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternRefused(f"is invalid: {error}") from None


def _ranged(tree: Any, levels: int) -> int:
    """Return how many characters the ranges of a pattern have, which is what compiling costs.

    Raises:
        _NotFollowed: it has more levels.
    """
    if levels < 0:
        raise _NotFollowed
    count = 0
    for kind, value in tree:
        if kind is _constants.IN:
            ranges = (range_ for name, range_ in value if name is _constants.RANGE)
            count += sum(last - first + 1 for first, last in ranges)
            continue
        for part in value if isinstance(value, list | tuple) else (value,):
            for each in part if isinstance(part, list) else (part,):
                if isinstance(each, _parser.SubPattern):
                    count += _ranged(each, levels - 1)
    return count


def _repeats(tree: Any) -> Iterable[tuple[Any, Any]]:
    """Yield the repeats of variable length in a pattern, with what they repeat."""
    for kind, value in tree:
        if kind in _REPEATS:
            minimum, maximum, body = value
            if minimum != maximum:
                yield kind, body
            inner = list(_repeats(body))
            # Several times the same body is as many repeats: (.*a){50}
            yield from inner * min(int(maximum), _TWICE)
            continue
        for part in value if isinstance(value, list | tuple) else (value,):
            for each in part if isinstance(part, list) else (part,):
                if isinstance(each, _parser.SubPattern):
                    yield from _repeats(each)


def _choices(tree: Any) -> int:
    """Return how many choices a match makes; those in a repeat count once for each time."""
    count = 0
    for kind, value in tree:
        if kind in _REPEATS:
            minimum, _, body = value
            count += max(minimum, 1) * _choices(body)
            continue
        count += kind is _constants.BRANCH
        for part in value if isinstance(value, list | tuple) else (value,):
            for each in part if isinstance(part, list) else (part,):
                if isinstance(each, _parser.SubPattern):
                    count += _choices(each)
    return count


def _quick(tree: Any) -> bool:
    """True if `re` needs at most quadratic time.

    Choices multiply: `(a|aa){30}c` has 2**30 ways through a name that has no "c".
    """
    repeats = list(_repeats(tree))
    if not repeats:
        return _choices(tree) <= _FEW_CHOICES
    alone = len(repeats) == 1 and len(repeats[0][1]) == 1 and repeats[0][1][0][0] in _ONE
    return alone and _choices(tree) <= 1


class _Machine:
    """A pattern as an automaton; all its active states advance together.

    Args:
        tree: the parsed pattern.
        maximum: how many states it may have.
        linear: whether of positions only the start and the end of the text are allowed, which are
            not tested at each character.

    Raises:
        _NotFollowed: it has more than characters, choices, repeats and positions.
    """

    def __init__(self, tree: Any, maximum: int = PATTERN_STEPS, *, linear: bool = False) -> None:
        if linear and tree.state.flags & re.MULTILINE:
            raise _NotFollowed
        self._state = tree.state
        self._maximum = maximum
        self._linear = linear
        # The final state; every other state is made before those that follow it.
        self._steps: list[_Step] = [_Step(None, 0, ())]
        self._tests: dict[str, _Test] = {}
        self._first = self._before(tree, _FOUND)
        # Found at the start or not at all: then a search mostly ends after a few characters.
        starts = tree and tree[0] in _STARTS and not tree.state.flags & re.MULTILINE
        self._anchored = bool(starts)

    def _add(self, test: Any, width: int, *after: int) -> int:
        if len(self._steps) >= self._maximum:
            raise _NotFollowed
        self._steps.append(_Step(None if test is None else self._test(test), width, after))
        return len(self._steps) - 1

    def _test(self, node: Any) -> _Test:
        """Return what compares this character or position; equal ones share it."""
        name = str(node)
        if name not in self._tests:
            self._tests[name] = _Test(node, self._state)
        return self._tests[name]

    def _before(self, tree: Any, after: int) -> int:
        """Make the states of a part of the pattern; return the first one.

        Args:
            tree: the part.
            after: the state after it.
        """
        for node in reversed(list(tree)):
            kind, value = node
            if kind in _ONE:
                after = self._add(node, 1, after)
            elif kind is _constants.AT or kind in _LOOKS:
                quick = kind is _constants.AT or _quick(value[1])
                if not (node in _STARTS + _ENDS if self._linear else quick):
                    raise _NotFollowed
                after = self._add(node, 0, after)
            elif kind is _constants.BRANCH:
                after = self._add(None, 0, *(self._before(each, after) for each in value[1]))
            elif kind is _constants.SUBPATTERN and not value[1] and not value[2]:
                after = self._before(value[3], after)
            elif kind in _REPEATS:
                minimum, maximum, body = value
                after = self._repeated(minimum, maximum, body, after)
            else:
                raise _NotFollowed
        return after

    def _repeated(self, minimum: int, maximum: Any, body: Any, after: int) -> int:
        if maximum is _constants.MAXREPEAT:
            again = self._add(None, 0, after)
            begin = self._before(body, again)
            self._steps[again] = _Step(None, 0, (begin, after))
            after = again
        else:
            over = after
            for _ in range(maximum - minimum):
                after = self._add(None, 0, self._before(body, after), over)
        for _ in range(minimum):
            after = self._before(body, after)
        return after

    @cached_property
    def _closures(self) -> list[int]:
        """The states that test something and are reached from each state without one, as bits."""
        closures = [0] * len(self._steps)
        # Both ways: a choice of a repeat leads to states that were made after it.
        order = (*range(len(closures)), *reversed(range(len(closures))))
        before: list[int] = []
        while before != closures:
            before = list(closures)
            for state in order:
                step, reached = self._steps[state], 0
                if step.test is not None or state == _FOUND:
                    closures[state] = 1 << state
                    continue
                for each in step.after:
                    reached |= closures[each]
                closures[state] = reached
        return closures

    @cached_property
    def _alike(self) -> dict[_Test, int]:
        """The states with each test, as bits."""
        alike: dict[_Test, int] = {}
        for state, step in enumerate(self._steps):
            if step.test is not None:
                alike[step.test] = alike.get(step.test, 0) | 1 << state
        return alike

    def _positions(self, nodes: list[Any] | None) -> int:
        """Return the states that test one of these positions, or any without them, as bits."""
        tests = None if nodes is None else {self._tests.get(str(node)) for node in nodes}
        return sum(
            1 << state
            for state, step in enumerate(self._steps)
            if step.test is not None and not step.width and (tests is None or step.test in tests)
        )

    @cached_property
    def _places(self) -> tuple[int, int, int]:
        """The states that test positions; those that hold at the start, and at the end, alone."""
        many_lines = self._state.flags & re.MULTILINE
        starts, ends = ([], []) if many_lines else (_STARTS, _ENDS)
        return self._positions(None), self._positions(starts), self._positions(ends)

    def simulate(
        self, text: str, tests: int, known: dict[tuple[int, str], int]
    ) -> tuple[bool, int]:
        """Return whether the pattern is found anywhere in a text, and how many tests that took.

        Args:
            text: what is searched.
            tests: it is not found if that takes more.
            known: what sets of states and characters lead to, which is found out once.
        """
        begin, found = self._closures[self._first], self._closures[_FOUND]
        again = 0 if self._anchored else begin
        positions, starts, ends = self._places
        states, left, last = begin, tests, len(text) - 1
        for at, character in enumerate(text):
            if positions & states:
                places = positions & ~starts if at else positions
                # "$" holds before a line end that is the last character, too.
                states, left = self._placed(
                    states, places if at == last else places & ~ends, text, at, left
                )
                states &= ~positions
            if states & found:
                return True, tests - left
            if not states and not again:
                return False, tests - left
            following = known.get((states, character))
            if following is None:
                following, left = self._follow(states, text, at, left)
                if left <= 0:
                    return False, tests
                known[states, character] = following
            states = following | again
        places = positions & ~starts if text else positions
        states, left = self._placed(states, places, text, last + 1, left)
        return bool(states & found) and left > 0, tests - max(left, 0)

    def _placed(self, states: int, places: int, text: str, at: int, left: int) -> tuple[int, int]:
        """Add what follows the states that test a position and hold; return tests that are left."""
        tested = 0
        while (waiting := states & places & ~tested) and left > 0:
            state = waiting.bit_length() - 1
            tested |= 1 << state
            left -= 1
            step = self._steps[state]
            if step.test is not None and step.test.holds(text, at):
                states |= self._closures[step.after[0]]
        return states, left

    def _follow(self, states: int, text: str, at: int, left: int) -> tuple[int, int]:
        """Return the states after a character, and the tests that are left."""
        following = 0
        while states and left > 0:
            step = self._steps[states.bit_length() - 1]
            left -= 1
            assert step.test is not None, "as states of choices are left out"
            same = self._alike[step.test] & states
            states &= ~same
            if step.test.holds(text, at):
                while same:
                    state = same.bit_length() - 1
                    same &= ~(1 << state)
                    left -= 1
                    following |= self._closures[self._steps[state].after[0]]
        return following, left


# --- patterns over contents of messages -----------------------------------------------------------


def linear_search_for(pattern: str, tests: int = PATTERN_LINEAR_TESTS) -> Search:
    r"""Return a function that searches for a pattern in texts of any length, in linear time.

    The automaton of the pattern becomes deterministic while it is used: what a set of active states
    and a character lead to is remembered. A search raises `PatternTooSlow` if it meets so many new
    sets that it would take long.

    Args:
        pattern: the regular expression.
        tests: what one search may take.

    Raises:
        PatternRefused: it is invalid, too large, or has more than characters, choices, repeats and
            the positions `^`, `$`, `\A` and `\Z`.
    """
    pattern = _in_python(pattern)
    tree = _parsed(pattern)
    _compiled(pattern, 0)
    try:
        machine = _Machine(tree, PATTERN_LINEAR_STATES, linear=True)
    except (_NotFollowed, RecursionError):
        raise PatternRefused(
            "is too large, or has look-around, word boundaries or back references, which are not "
            "supported"
        ) from None
    known: dict[tuple[int, str], int] = {}

    def search(text: str) -> bool:
        if len(known) >= PATTERN_LINEAR_TRANSITIONS:
            known.clear()
        found, taken = machine.simulate(text, tests, known)
        if taken >= tests:
            raise PatternTooSlow
        return found

    return search
