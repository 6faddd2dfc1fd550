"""SASL mechanisms, one per file, in order of preference."""

from __future__ import annotations

from harebell.auth.sasl.amqplain import AmqPlain
from harebell.auth.sasl.mechanism import Credentials, Mechanism, SaslError
from harebell.auth.sasl.plain import Plain

MECHANISMS: dict[str, type[Mechanism]] = {m.NAME: m for m in (Plain, AmqPlain)}

__all__ = ["MECHANISMS", "Credentials", "Mechanism", "SaslError"]
