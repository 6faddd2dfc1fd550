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
    digits = text[1:] if text[:1] in "+-" else text
    # Erlang's `string:to_integer`, whose words these are, reads digits and returns what follows.
    count = len(digits) - len(digits.lstrip("0123456789"))
    if not digits.isascii() or count == 0:
        return "no_integer"
    if count < len(digits):
        return f'{{leftover_string,"{digits[count:]}"}}'
    value = int(text)
    if value < 0:
        return f"{{value_negative,{value}}}"
    if value > EXPIRATION_MAX_MS:
        return f"{{value_too_large,{value}}}"
    return ""


def lifetime_ms(text: str | None) -> int | None:
    """Return the time to live of an expiration; None for none, and for an invalid one."""
    return None if text is None or problem_with(text) else int(text)
