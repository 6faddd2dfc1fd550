"""Queue and consumer arguments: which queue type knows which, valid values, and refusals.

An argument that only another queue type knows is refused. An unknown argument is kept, reported and
not compared on redeclaration, as in RabbitMQ. Arguments without an effect in Harebell are checked
and reported, and a redeclaration must repeat them. The error texts are those of RabbitMQ, Erlang
terms included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from harebell.base.eras import is_eras
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.limits import NAME_BYTES
from harebell.model.equivalence import check_arguments, shown, type_name
from harebell.model.limits import RETRY_DELAYS, STREAM_SEGMENT_MAX_BYTES, TIER_CHARACTERS
from harebell.model.queue.offsets import ERAS, FILTER, MATCH_UNFILTERED, OFFSET, TRACKING, span_ms
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.filter.condition import Filter

QUEUE_TYPE = "x-queue-type"
MAX_PRIORITY = "x-max-priority"
SEGMENT_SIZE = "x-stream-max-segment-size-bytes"
TIER = "x-tier"
DEAD_LETTER_EXCHANGE = "x-dead-letter-exchange"
DEAD_LETTER_KEY = "x-dead-letter-routing-key"
SINGLE_ACTIVE = "x-single-active-consumer"
CONSUMER_TIMEOUT = "x-consumer-timeout"
GROUP_KEY = "x-group-key"
LAST_VALUE_KEY = "x-last-value-key"
DEDUPLICATION = "x-message-deduplication"
SELECTOR = "x-filter-jms-selector"
"""The argument of a consumer or binding with its selector, by its name in Apache Qpid."""
STREAM_EXPIRES = "x-stream-expires"
CLASSIC, QUORUM, STREAM = "classic", "quorum", "stream"
TYPES = (CLASSIC, QUORUM, STREAM)

SHARE = "qpid.fairshare"
"""The argument of Qpid: how many messages in a row a level of a priority queue gives while others
wait; 0 for any number. With a dash and a level behind it, the share of this level only."""
OLDER_SHARE = "x-qpid-fairshare"
"""Its older name."""
SEQUENCE = "qpid.queue_msg_sequence"
"""The argument of Qpid: the header that has the number of a message in its queue."""
_LAST_VALUE_KEYS = (LAST_VALUE_KEY, "qpid.last_value_queue_key", "last-value-key")
_LAST_VALUE_FLAGS = {
    "qpid.last_value_queue": "qpid.LVQ_key",
    "qpid.last_value_queue_no_browse": "qpid.LVQ_key",
    "last-value": "_AMQ_LVQ_NAME",
}
"""Arguments of Qpid and Artemis that name no header, and the header that they mean."""
LAST_VALUE_ARGUMENTS = (*_LAST_VALUE_KEYS, *_LAST_VALUE_FLAGS)
"""The arguments of a queue of last values: Harebell's, Qpid's and Artemis's."""

COMPARED = (
    "x-expires",
    "x-message-ttl",
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_KEY,
    "x-max-length",
    "x-max-length-bytes",
    MAX_PRIORITY,
    GROUP_KEY,
    *LAST_VALUE_ARGUMENTS,
    SEQUENCE,
    DEDUPLICATION,
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    SINGLE_ACTIVE,
    QUEUE_TYPE,
    "x-queue-leader-locator",
    "x-queue-master-locator",
    "x-quorum-initial-group-size",
    "x-delivery-limit",
    "x-dead-letter-strategy",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    CONSUMER_TIMEOUT,
    "x-consumer-disconnected-timeout",
    "x-max-age",
    SEGMENT_SIZE,
    TIER,
    "x-stream-filter-size-bytes",
    "x-initial-cluster-size",
    STREAM_EXPIRES,
    "x-retry-delays",
    "x-delayed-retry-type",
    "x-delayed-retry-min",
    "x-delayed-retry-max",
)
"""Arguments that a redeclaration must repeat, if the queue's type knows them."""

_TEN_YEARS_MS = 315_360_000_000
_INT_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_PRIORITY_MAX = 255
_FILTER_SIZE_MIN, _FILTER_SIZE_MAX = 16, 255
_BOTH = (CLASSIC, QUORUM)

Problem = str | None
Check = Callable[[Any], Problem]
"""Returns what is wrong with a value, as an Erlang term; None for a valid value."""


def _integer(value: Any) -> bool:
    # A boolean of AMQP is a `bool`, which Python counts as an `int`.
    return isinstance(value, int) and not isinstance(value, bool)


def _number(minimum: int, maximum: int, over: str = "value_too_large") -> Check:
    def check(value: Any) -> Problem:
        if not _integer(value):
            return f'"expected integer, got {type_name(value)}"'
        if value < 0 and minimum >= 0:
            return f"{{value_negative,{value}}}"
        if value < minimum:
            return f"{{value_zero,{value}}}"
        if value > maximum:
            return f"{{{over},{value}}}"
        return None

    return check


def _boolean(value: Any) -> Problem:
    return None if isinstance(value, bool) else f"{{unacceptable_type,{type_name(value)}}}"


def _text(value: Any) -> Problem:
    return None if isinstance(value, str) else f"{{unacceptable_type,{type_name(value)}}}"


def routing_key_fits(key: str) -> bool:
    """True if AMQP can carry a routing key."""
    return len(key.encode(errors="surrogateescape")) <= NAME_BYTES


def _routing_key(value: Any) -> Problem:
    problem = f'"a routing key has at most {NAME_BYTES} bytes: shorten it"'
    return _text(value) or (None if routing_key_fits(value) else problem)


def _one_of(words: tuple[str, ...], problem: str) -> Check:
    def check(value: Any) -> Problem:
        return _text(value) or (None if value in words else problem)

    return check


def _age(value: Any) -> Problem:
    return _text(value) or (None if span_ms(value) else "invalid_max_age")


def _tier(value: Any) -> Problem:
    return _text(value) or (None if 0 < len(value) <= TIER_CHARACTERS else "invalid_tier")


def _eras(value: Any) -> Problem:
    return _text(value) or (None if is_eras(value) else "invalid_eras")


def _version(value: Any) -> Problem:
    if not _integer(value):
        return f'"expected integer, got {type_name(value)}"'
    return None if value in (1, 2) else f"\"unsupported queue version '{value}'\""


def _mode(value: Any) -> Problem:
    valid = value in ("default", "lazy")
    return _text(value) or (None if valid else f"\"unsupported queue mode '{value}'\"")


def delays_of(value: Any) -> tuple[int, ...]:
    """Return the delays of an argument value in milliseconds; none if it is invalid.

    Some clients cannot send lists as arguments, so `"100,200"` and 100 are equal to
    `[100, 200]` and `[100]`.
    """
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
        # 20 digits exceed any valid delay, and `int` of very many digits is slow.
        digits = all(word.isascii() and word.isdigit() and len(word) < 20 for word in words)
        value = [int(word) for word in words] if digits else ()
    elif _integer(value):
        value = (value,)
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= RETRY_DELAYS:
        return ()
    fit = all(_integer(each) and 0 <= each <= _TEN_YEARS_MS for each in value)
    return tuple(value) if fit else ()


def retry_delays(value: Any) -> bool:
    """True if a value is a valid list of delays."""
    return bool(delays_of(value))


def _delays(value: Any) -> Problem:
    if retry_delays(value):
        return None
    expected = f"1 to {RETRY_DELAYS} delays in milliseconds"
    return f'"expected {expected}: a list, a text such as 100,200 or a number; got {shown(value)}"'


def _name(value: Any) -> Problem:
    return _text(value) or (None if value else "empty_name")


def _anything(value: Any) -> Problem:
    return None


_COUNT = _number(0, _INT_MAX)
_KNOWN: dict[str, tuple[tuple[str, ...], Check]] = {
    "x-message-ttl": (_BOTH, _number(0, _TEN_YEARS_MS)),
    "x-expires": (_BOTH, _number(1, _TEN_YEARS_MS)),
    "x-max-length": (_BOTH, _COUNT),
    "x-max-length-bytes": (TYPES, _COUNT),
    "x-overflow": (
        _BOTH,
        _one_of(("drop-head", "reject-publish", "reject-publish-dlx"), "invalid_overflow"),
    ),
    DEAD_LETTER_EXCHANGE: (_BOTH, _anything),
    DEAD_LETTER_KEY: (_BOTH, _routing_key),
    "x-dead-letter-strategy": (
        (QUORUM,),
        _one_of(("at-most-once", "at-least-once"), "invalid_dlx_strategy"),
    ),
    MAX_PRIORITY: ((CLASSIC,), _number(0, _PRIORITY_MAX, "max_value_exceeded")),
    GROUP_KEY: (_BOTH, _name),
    **dict.fromkeys(_LAST_VALUE_KEYS, (_BOTH, _name)),
    **dict.fromkeys(_LAST_VALUE_FLAGS, (_BOTH, _anything)),
    SEQUENCE: (_BOTH, _text),
    DEDUPLICATION: (_BOTH, _boolean),
    SINGLE_ACTIVE: (_BOTH, _boolean),
    "x-delivery-limit": ((QUORUM,), _number(-_INT_MAX, _INT_MAX)),
    CONSUMER_TIMEOUT: (_BOTH, _COUNT),
    "x-consumer-disconnected-timeout": ((QUORUM,), _COUNT),
    "x-retry-delays": (_BOTH, _delays),
    "x-delayed-retry-type": (
        (QUORUM,),
        _one_of(("disabled", "all", "failed", "returned"), "invalid_delayed_retry_type"),
    ),
    "x-delayed-retry-min": ((QUORUM,), _number(0, _TEN_YEARS_MS)),
    "x-delayed-retry-max": ((QUORUM,), _number(0, _TEN_YEARS_MS)),
    "x-queue-mode": ((CLASSIC,), _mode),
    "x-queue-version": ((CLASSIC,), _version),
    "x-queue-leader-locator": (
        TYPES,
        _one_of(
            ("client-local", "balanced", "random", "least-leaders"), "invalid_queue_locator_arg"
        ),
    ),
    "x-queue-master-locator": ((CLASSIC,), _text),
    "x-quorum-initial-group-size": ((QUORUM,), _number(1, _INT_MAX)),
    "x-initial-cluster-size": ((STREAM,), _number(1, _INT_MAX)),
    "x-max-in-memory-length": ((QUORUM,), _COUNT),
    "x-max-in-memory-bytes": ((QUORUM,), _COUNT),
    "x-max-age": ((STREAM,), _age),
    STREAM_EXPIRES: ((STREAM,), _number(1, _TEN_YEARS_MS)),
    SEGMENT_SIZE: ((STREAM,), _COUNT),
    TIER: ((STREAM,), _tier),
    "x-stream-filter-size-bytes": ((STREAM,), _COUNT),
}
"""Arguments, the types that know them, and what values they take."""

_CONSUMER: dict[str, tuple[tuple[str, ...], Check]] = {
    "x-priority": (_BOTH, _anything),
    CONSUMER_TIMEOUT: (_BOTH, _COUNT),
    SELECTOR: (TYPES, _text),
    OFFSET: ((STREAM,), _anything),
    ERAS: ((STREAM,), _eras),
    FILTER: ((STREAM,), _anything),
    MATCH_UNFILTERED: ((STREAM,), _boolean),
    TRACKING: ((STREAM,), _boolean),
}
"""The arguments of consumers. Values under `_anything` are checked where they are used."""


def queue_type(arguments: Mapping[str, Any]) -> str:
    """Return the queue type of checked arguments."""
    kind: str = arguments.get(QUEUE_TYPE, CLASSIC)
    return kind


def last_value_key(arguments: Mapping[str, Any]) -> str:
    """Return the name of the key of a queue of last values; "" for any other queue."""
    for name in _LAST_VALUE_KEYS:
        key = arguments.get(name)
        if isinstance(key, str) and key:
            return key
    for name, header in _LAST_VALUE_FLAGS.items():
        # Qpid's tools send 1, "1" or true.
        if arguments.get(name) not in (None, False, 0, "0", "false"):
            return header
    return ""


def selector_of(arguments: Mapping[str, Any], owner: str) -> Filter | None:
    """Return the selector among arguments; None without one, or if it is blank.

    Args:
        arguments: of a consumer or binding.
        owner: which of both, for the error text.

    Raises:
        Refusal: INVALID_ARGUMENT, the selector is wrong; the text says at which character.
    """
    text = arguments.get(SELECTOR, "")
    problem = f"the selector is no text, but of type {type_name(text)}"
    if isinstance(text, str):
        if not text.strip():
            return None
        from harebell.model.filter.condition import compile_selector
        from harebell.model.filter.errors import FilterError

        try:
            return compile_selector(text)
        except FilterError as error:
            problem = str(error)
    raise Refusal(ErrorKind.INVALID_ARGUMENT, f"invalid arg '{SELECTOR}' of {owner}: {problem}")


def shares_of(arguments: Mapping[str, Any], levels: int) -> list[int] | None:
    """Return the share of each level; None if there is no fair share.

    Args:
        arguments: of the queue; a share that is no valid number counts as none.
        levels: the number of levels.
    """
    shares = [0] * levels
    for name in (OLDER_SHARE, SHARE):
        default = arguments.get(name)
        if is_share(default):
            shares = [default] * levels
    for name in (OLDER_SHARE, SHARE):
        for level in range(levels):
            share = arguments.get(f"{name}-{level}")
            if is_share(share):
                shares[level] = share
    return shares if any(shares) else None


def is_share(value: Any) -> TypeGuard[int]:
    """True if a value can be a share: an integer of 32 bits that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT32_MAX


def _check_shares(resource: str, arguments: Mapping[str, Any]) -> None:
    """Refuse shares without priorities, of levels that there are not, and that are no numbers."""
    levels = arguments.get(MAX_PRIORITY, -1) + 1
    for name, value in arguments.items():
        if not name.startswith((SHARE, OLDER_SHARE)):
            continue
        level = name.removeprefix(SHARE).removeprefix(OLDER_SHARE).removeprefix("-")
        if not levels:
            problem = f"it needs priorities ({MAX_PRIORITY})"
        elif level and not (level.isascii() and level.isdigit() and int(level[:9]) < levels):
            problem = f"there are the levels 0 to {levels - 1}"
        elif not is_share(value):
            problem = f"a share is a number from 0 to {_INT32_MAX}, not {shown(value)}"
        else:
            continue
        raise precondition(f"invalid arg '{shown(name)}' for {resource}: {problem}")


def check_repeated(resource: str, received: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Refuse a redeclaration with different values of arguments that the queue type knows.

    Args:
        resource: the queue as it is named in error texts.
        received: the arguments of the redeclaration.
        current: the arguments of the queue.
    """
    kind = queue_type(current)
    # No type means classic.
    both_classic = kind == received.get(QUEUE_TYPE, CLASSIC) == CLASSIC
    keys = [
        key
        for key in COMPARED
        if (not both_classic if key == QUEUE_TYPE else kind in _KNOWN[key][0])
    ]
    check_arguments(resource, received, current, keys)


def with_queue_type(
    arguments: Mapping[str, Any], default: str, *, lasting: bool
) -> Mapping[str, Any]:
    """Add the default type to arguments without a type, if the queue can be of that type.

    Quorum queues and streams are durable, not exclusive and not auto-delete. Any other declaration
    makes a classic queue, as in RabbitMQ.

    Args:
        arguments: as given by the client.
        default: the type; "" if there is no default.
        lasting: whether the queue is durable, not exclusive and not auto-delete.
    """
    if not default or QUEUE_TYPE in arguments:
        return arguments
    if default != CLASSIC and not lasting:
        return arguments
    return {**arguments, QUEUE_TYPE: default}


def _check_type(resource: str, arguments: Mapping[str, Any]) -> str:
    if QUEUE_TYPE not in arguments:
        return CLASSIC
    kind = arguments[QUEUE_TYPE]
    if not isinstance(kind, str):
        raise precondition(
            f"invalid arg '{QUEUE_TYPE}' for {resource}: {{unacceptable_type,{type_name(kind)}}}"
        )
    if kind not in TYPES:
        raise precondition(
            f"invalid arg '{QUEUE_TYPE}' for {resource}: \"unsupported queue type '{shown(kind)}'\""
        )
    return kind


def _check_values(
    resource: str,
    kind: str,
    arguments: Mapping[str, Any],
    checks: Mapping[str, tuple[tuple[str, ...], Check]],
) -> None:
    for name, value in arguments.items():
        if name not in checks:
            continue
        types, check = checks[name]
        if kind not in types:
            raise precondition(
                f"invalid arg '{name}' for {resource} of queue type rabbit_{kind}_queue"
            )
        problem = check(value)
        if problem is not None:
            raise precondition(f"invalid arg '{name}' for {resource}: {problem}")


def check_queue_arguments(resource: str, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the queue type does not know, and invalid values.

    Args:
        resource: the queue, rendered for the error text.
        arguments: as given by the client.
    """
    kind = _check_type(resource, arguments)
    # Checked first, as in RabbitMQ, for every queue type.
    exchange = arguments.get(DEAD_LETTER_EXCHANGE)
    if DEAD_LETTER_EXCHANGE in arguments and not isinstance(exchange, str):
        raise precondition(
            f"invalid type '{type_name(exchange)}' for arg '{DEAD_LETTER_EXCHANGE}' in {resource}"
        )
    _check_values(resource, kind, arguments, _KNOWN)
    if GROUP_KEY in arguments and MAX_PRIORITY in arguments:
        raise precondition(
            f"invalid arg '{GROUP_KEY}' for {resource}: {MAX_PRIORITY} asks for another order"
        )
    _check_shares(resource, arguments)
    if arguments.get(SEQUENCE) and MAX_PRIORITY in arguments:
        raise precondition(
            f"invalid arg '{SEQUENCE}' for {resource}: {MAX_PRIORITY} has an order for each level"
        )
    if last_value_key(arguments):
        for other in (MAX_PRIORITY, GROUP_KEY):
            if other in arguments:
                name = next(each for each in LAST_VALUE_ARGUMENTS if each in arguments)
                raise precondition(
                    f"invalid arg '{name}' for {resource}: {other} asks for another order"
                )
    if DEAD_LETTER_KEY in arguments and DEAD_LETTER_EXCHANGE not in arguments:
        raise precondition(
            f"invalid arg '{DEAD_LETTER_KEY}' for {resource}: routing_key_but_no_dlx_defined"
        )
    # RabbitMQ words these two differently from the checks of values above.
    if arguments.get(SEGMENT_SIZE, 0) > STREAM_SEGMENT_MAX_BYTES:
        raise precondition(f"Exceeded max value for {SEGMENT_SIZE}")
    filter_size = arguments.get("x-stream-filter-size-bytes", _FILTER_SIZE_MIN)
    if not _FILTER_SIZE_MIN <= filter_size <= _FILTER_SIZE_MAX:
        raise precondition("Invalid value for x-stream-filter-size-bytes")


def check_queue_properties(
    resource: str,
    arguments: Mapping[str, Any],
    *,
    durable: bool,
    exclusive: bool,
    auto_delete: bool,
    generated: bool,
) -> None:
    """Refuse quorum queues and streams that are transient, exclusive, auto-delete or unnamed.

    Args:
        resource: the queue, rendered for the error text.
        arguments: as given by the client, checked.
        durable: whether it survives a restart.
        exclusive: whether it belongs to one connection.
        auto_delete: whether it is deleted with its last consumer.
        generated: whether the broker chose its name.
    """
    kind = queue_type(arguments)
    if kind == CLASSIC:
        return
    if generated:
        raise precondition(f"Cannot declare a server-named queue for type rabbit_{kind}_queue")
    # Replicated queues and streams of RabbitMQ outlive connections, consumers and nodes.
    for wrong, name in (
        (auto_delete, "auto-delete"),
        (exclusive, "exclusive-owner"),
        (not durable, "non-durable"),
    ):
        if wrong:
            raise precondition(f"invalid property '{name}' for {resource}")


def check_consumer_arguments(
    resource: str, queue_arguments: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    """Refuse consumer arguments that only other queue types know.

    Args:
        resource: the queue, rendered for the error text.
        queue_arguments: those that the queue was declared with.
        arguments: the arguments of the consumer.
    """
    _check_values(resource, queue_type(queue_arguments), arguments, _CONSUMER)


_LENGTHS = ("x-max-length", "x-max-length-bytes", "x-overflow")
_TIMES = ("x-message-ttl", "x-expires", "x-retry-delays")
_RETRY = ("x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max")
_ACTED_ON = {
    CLASSIC: (
        QUEUE_TYPE,
        GROUP_KEY,
        LAST_VALUE_KEY,
        DEDUPLICATION,
        MAX_PRIORITY,
        *_TIMES,
        DEAD_LETTER_EXCHANGE,
        DEAD_LETTER_KEY,
        SINGLE_ACTIVE,
        CONSUMER_TIMEOUT,
        *_LENGTHS,
    ),
    QUORUM: (
        QUEUE_TYPE,
        GROUP_KEY,
        LAST_VALUE_KEY,
        DEDUPLICATION,
        *_TIMES,
        DEAD_LETTER_EXCHANGE,
        DEAD_LETTER_KEY,
        "x-dead-letter-strategy",
        "x-delivery-limit",
        *_RETRY,
        SINGLE_ACTIVE,
        CONSUMER_TIMEOUT,
        *_LENGTHS,
    ),
    STREAM: (QUEUE_TYPE, "x-max-length-bytes", "x-max-age", SEGMENT_SIZE, TIER),
}


def ignored_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """Return the accepted `x-` arguments that have no effect yet."""
    acted_on = _ACTED_ON[queue_type(arguments)]
    return [name for name in arguments if name.startswith("x-") and name not in acted_on]
