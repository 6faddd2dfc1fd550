"""What a method waits for, as values, so that it is written once for both APIs.

A method that waits is a generator. It yields what it waits for, and gets the answer or the error:

    yield USABLE                        the connection can be used
    result = yield call                 the answer of a `Call`
    in_time = yield Until(call, 3.0)    the call is done; its error is not raised

`aio/driver.py` awaits each in a task while another task reads; `blocking/driver.py` reads the
socket itself. A class of an API derives from the shared class and from a `Shell`, which makes its
methods from those that are marked here.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from harebell.client.message import Item
from harebell.client.protocol.call import Call
from harebell.client.protocol.shown import adapted, describe

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound="Awaiting")
B = TypeVar("B", bound="Blocking")
F = TypeVar("F", bound=Callable[..., Any])


class Wait:
    """A wait without an argument.

    Args:
        name: what it waits for.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        """Return the name, for people."""
        return self._name


USABLE = Wait("the connection can be used, a lost one has recovered")
RECOVERED = Wait("a lost connection has recovered, or the channel says that it is closed")
FLUSH = Wait("the output is written")
WRITE = Wait("the output is passed to a socket that may be full")
ROOM = Wait("the socket has room")
NOW = Wait("nothing; the answer is the time of a clock that only goes forward, in seconds")
TURN = Wait("the output is written, and confirms that have arrived are read")
DIAL = Wait("a socket is open and the handshake is done; the answer is the `BrokerLink`")
BLOCK = Wait("the block of a `with` statement has run; its error is raised (`Scope`)")


class Ending(NamedTuple):
    """Wait for the answer to a cancel, a close or a rollback.

    The answer is False if the broker blocks publishers and has not answered: it does not read, so
    its answer may never come.
    """

    call: Call[Any]


class Until(NamedTuple):
    """Wait until a call is done; the answer is False if it is not done in time.

    What arrived while the process was suspended is in time.

    Args:
        seconds: the limit; None for none.
    """

    call: Call[Any]
    seconds: float | None = None


class Sleep(NamedTuple):
    """Wait before the next attempt to connect.

    Args:
        seconds: how long.
    """

    seconds: float


class Restored(NamedTuple):
    """Wait until a call is done on a link that no channel uses yet; its error is not raised."""

    link: BrokerLink
    call: Call[Any]


class Following(NamedTuple):
    """Take items from an asynchronous iterator until one waits for room.

    The answer is a tuple of this item, empty at the end.

    Args:
        items: the iterator.
        offer: takes an item, unless it returns True.
    """

    items: AsyncIterator[Item]
    offer: Callable[[Item], bool]


class BrokerLink(Protocol):
    """The interface of a socket to its connection."""

    core: Any

    def flush(self) -> object:
        """Write the output."""

    def abort(self) -> None:
        """Close the socket at once."""


Steps = Generator[Wait | Call[Any] | Ending | Until | Sleep | Restored | Following, Any, T]


class Marked(Generic[P, T]):
    """A method of a shared class that waits.

    Args:
        kind: the maker of a `Shell`: steps, scope, publishing or written.
        function: takes the object and the arguments of the method.
    """

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        self.kind = kind
        self.function = function

    @overload
    def __get__(
        self, shell: None, owner: type[Awaiting]
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, shell: None, owner: type[Blocking]) -> Callable[Concatenate[Any, P], T]: ...
    @overload
    def __get__(self, shell: None, owner: Any = ...) -> Self: ...
    @overload
    def __get__(self, shell: Awaiting, owner: Any = ...) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, shell: Blocking, owner: Any = ...) -> Callable[P, T]: ...
    def __get__(self, shell: Any, owner: Any = None) -> Any:
        """Return itself: each `Shell` has a method in its place."""
        return self


class Scope(Generic[P]):
    """A method whose result is entered with `with`, and gives the object of the method."""

    def __init__(self, function: Callable[Concatenate[Any, P], Steps[None]]) -> None:
        self.kind = "scope"
        self.function = function

    @overload
    def __get__(
        self, shell: A, owner: Any = ...
    ) -> Callable[P, AbstractAsyncContextManager[A]]: ...
    @overload
    def __get__(self, shell: B, owner: Any = ...) -> Callable[P, AbstractContextManager[B]]: ...
    def __get__(self, shell: Any, owner: Any = None) -> Any:
        """Return itself, as `Marked`."""
        return self


def steps(function: Callable[Concatenate[Any, P], Steps[T]]) -> Marked[P, T]:
    """Mark a generator of waits."""
    return Marked("steps", function)


def verb(function: Callable[Concatenate[Any, P], Call[T]]) -> Marked[P, T]:
    """Make a method of a channel of a function of its core; it waits for the answer."""

    @functools.wraps(function)
    def asked(channel: Any, /, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        yield USABLE
        answer: T = yield function(channel.core, *args, **kwargs)
        return answer

    return steps(asked)


def publishing(function: Callable[Concatenate[Any, P], Call[T]]) -> Marked[P, T]:
    """Mark a function of a channel that publishes, and whose confirm is waited for."""
    return Marked("publishing", function)


Written = object
"""The type of what a function that is marked with `written` returns to its driver."""


def written(function: Callable[Concatenate[Any, P], Written]) -> Marked[P, None]:
    """Mark a function that ends with `written()` of its connection, which writes the output.

    Under asyncio that returns the connection if the method has to wait for room, and else None.
    """
    return Marked("written", function)


def own(method: F) -> F:
    """Mark a method that does not wait, and whose result is of a class of the API."""
    method.is_own = True  # type: ignore[attr-defined]
    return method


class Shell:
    """The part of the classes of one API that waits.

    For each kind of marked function it has a maker, which returns the method of the API.
    """

    __slots__ = ()

    _block: ClassVar = "Iterator"
    """The type of a `Scope` in help."""
    _words: ClassVar[dict[str, str]] = {}
    """Words of descriptions and types, and their replacements (`shown.adapted`)."""

    def __init_subclass__(cls) -> None:
        """Make the methods of the class from the marked ones."""
        super().__init_subclass__()
        members: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            members |= vars(base)
        for name, member in members.items():
            if isinstance(member, Marked | Scope):
                method = getattr(cls, f"_{member.kind}")(member.function)
                block = {"Steps[None]": f"{cls._block}[{cls.__name__}]"}
                words = cls._words | block if isinstance(member, Scope) else cls._words
                describe(method, member.function, words)
            elif getattr(member, "is_own", False):
                method = adapted(member, cls._words)
            else:
                continue
            method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)


class Awaiting(Shell):
    """A shell whose methods are coroutines."""

    __slots__ = ()


class Blocking(Shell):
    """A shell whose methods return when they are done."""

    __slots__ = ()
