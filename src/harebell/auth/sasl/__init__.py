"""SASL mechanisms, one per file; `exchanges` has the list."""

from __future__ import annotations

from harebell.auth.sasl.mechanism import Credentials, Mechanism, SaslError

__all__ = ["Credentials", "Mechanism", "SaslError"]
