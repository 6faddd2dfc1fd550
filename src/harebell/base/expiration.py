"""The property `expiration`: a time to live in milliseconds, as text.

A publish with an invalid one is refused. A message may have one nevertheless: it comes from another
class or family, whose properties are not checked, or from before a check. Such a message has no
time to live of its own: what works with messages later never fails because of one.
"""

from __future__ import annotations

EXPIRATION_MAX_MS = 315_360_000_000
"""Ten years."""


def problem_with(text: str) -> str:
    """Return the reason to refuse an expiration, in RabbitMQ's words; "" if it is valid."""
    digits = _unsigned(text)
    # Erlang's `string:to_integer`, whose words these are, reads digits and returns what follows.
    count = len(digits) - len(digits.lstrip("0123456789"))
    if not digits.isascii() or count == 0:
        return "no_integer"
    if count < len(digits):
        return f'{{leftover_string,"{digits[count:]}"}}'
    significant = digits.lstrip("0")
    if text.startswith("-") and significant:
        return f"{{value_negative,-{significant}}}"
    if _number(digits, EXPIRATION_MAX_MS + 1) > EXPIRATION_MAX_MS:
        return f"{{value_too_large,{significant}}}"
    return ""


def lifetime_ms(text: str | None) -> int | None:
    """Return the time to live of an expiration; None for none, and for an invalid one."""
    if text is None or problem_with(text):
        return None
    return _number(_unsigned(text), EXPIRATION_MAX_MS)


def ttl_in(text: str, ttl_max: int) -> int | None:
    """Return an expiration as the ttl of another family, at most `ttl_max`; None if it is none."""
    digits = _unsigned(text)
    if not (digits.isascii() and digits.isdigit()):
        return None
    ttl = _number(digits, ttl_max)
    return None if ttl and text.startswith("-") else ttl


def _unsigned(text: str) -> str:
    return text[1:] if text[:1] in "+-" else text


def _number(digits: str, limit: int) -> int:
    """Return the number of some digits, at most `limit`; Python reads no 5,000 of them."""
    significant = digits.lstrip("0")
    return limit if len(significant) > len(str(limit)) else min(int(significant or 0), limit)
