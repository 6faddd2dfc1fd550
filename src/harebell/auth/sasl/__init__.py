"""SASL mechanisms, one per file; `exchanges` says which of them there are for whom."""

from __future__ import annotations

from harebell.auth.sasl.mechanism import Credentials, Mechanism, SaslError

__all__ = ["Credentials", "Mechanism", "SaslError"]
