"""Limits of logins and permissions, with units and reasons."""

from __future__ import annotations

SCRAM_MESSAGE_BYTES = 2_048
"""Longest message of a SCRAM exchange: its parts are kept until the next one."""
PERMISSION_CACHE_ENTRIES = 1_024
"""Names whose permission is cached, per user and vhost."""
