"""The SASL mechanisms, and which of them are offered to a peer."""

from __future__ import annotations

from collections.abc import Sequence

from harebell.auth.sasl.amqplain import AmqPlain
from harebell.auth.sasl.anonymous import Anonymous
from harebell.auth.sasl.cram_md5 import CramMd5
from harebell.auth.sasl.exchange import Context, Exchange
from harebell.auth.sasl.external import External
from harebell.auth.sasl.mechanism import Mechanism
from harebell.auth.sasl.plain import Plain
from harebell.auth.sasl.scram import ScramSha1, ScramSha256
from harebell.auth.users import Claim, Doubt


class PasswordExchange(Exchange):
    """One response with user and password."""

    LOCAL = False
    MECHANISM: type[Mechanism]

    def step(self, response: bytes) -> bytes | None:
        """Check user and password."""
        context = self.context
        credentials = self.MECHANISM(context.decode_table).credentials(response)
        self.name = credentials.user
        if context.user is not None:
            self.user, self.name = context.user, context.user.name
            return None
        users, password = context.users, credentials.password
        self.guess, self.right = True, users.was_right(credentials.user, password)
        if users.log_in is not None:
            self.claim = Claim(credentials.user, password, context.address)
            return None
        if users.later is None:
            self.user = users.authenticate(credentials.user, password, context.address)
            self.right = self.user is not None
            return None
        authenticated = users.judge(credentials.user, password)
        if isinstance(authenticated, Doubt):
            self.doubt = authenticated
        elif authenticated is not None and users.admits(authenticated, context.address):
            self.user = authenticated
            self.right = True
        return None


class PlainExchange(PasswordExchange):
    """PLAIN: separated by zero bytes."""

    NAME = Plain.NAME
    MECHANISM = Plain


class AmqPlainExchange(PasswordExchange):
    """AMQPLAIN: in a field table."""

    NAME = AmqPlain.NAME
    MECHANISM = AmqPlain


EXCHANGES: tuple[type[Exchange], ...] = (
    External,
    ScramSha256,
    ScramSha1,
    CramMd5,
    PlainExchange,
    Anonymous,
)
"""Mechanisms of the final 0-10, in order of preference."""
SINGLE: tuple[type[Exchange], ...] = (PlainExchange, AmqPlainExchange, External, Anonymous)
"""Mechanisms of the other versions, with one response. RabbitMQ's are first, in its order."""

NAMES = (*(kind.NAME for kind in EXCHANGES), AmqPlain.NAME)
"""All mechanisms."""
USUAL = tuple(name for name in NAMES if name != CramMd5.NAME)
"""Mechanisms that are allowed by default."""


_BY_NAME = {kind.NAME: kind for kind in EXCHANGES}
_ALL = (*EXCHANGES, AmqPlainExchange)
_SINGLE_BY_NAME = {kind.NAME: kind for kind in SINGLE}


def _possible(kinds: Sequence[type[Exchange]], context: Context) -> list[str]:
    """Return the names of those that can succeed."""
    if context.user is not None:
        return [PlainExchange.NAME] if PlainExchange in kinds else []
    allowed, local = context.allowed or USUAL, context.users.local
    names: list[str] = []
    for kind in kinds:
        if kind.NAME in allowed and (local or not kind.LOCAL) and kind.possible(context):
            names.append(kind.NAME)  # noqa: PERF401 - a comprehension is a call more
    return names


def _begun(kind: type[Exchange] | None, context: Context) -> Exchange | None:
    return None if kind is None or not _possible((kind,), context) else kind(context)


def offers(context: Context) -> list[str]:
    """Return the mechanisms that can succeed."""
    return _possible(EXCHANGES, context)


def all_offers(context: Context) -> list[str]:
    """Return the mechanisms that can succeed, those with one response included."""
    return _possible(_ALL, context)


def begin_exchange(name: str, context: Context) -> Exchange | None:
    """Return an exchange of an offered mechanism; None for others."""
    return _begun(_BY_NAME.get(name), context)


def single_offers(context: Context) -> list[str]:
    """Return the mechanisms that can succeed with one response."""
    return _possible(SINGLE, context)


def begin_single(name: str, context: Context) -> Exchange | None:
    """Return an exchange of an offered mechanism with one response; None for others."""
    return _begun(_SINGLE_BY_NAME.get(name), context)
