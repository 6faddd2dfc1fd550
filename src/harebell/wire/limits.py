"""Limits of frames and values, with units and reasons."""

from __future__ import annotations

# --- frames and connections -----------------------------------------------------------------------
REPLY_TEXT_BYTES = 255
"""Longest reply text (a shortstr)."""
VOID_ARRAY_ITEMS = 1_024
"""Most values in an array of transitional 0-10 whose values take no bytes."""

# --- memory and back-pressure ---------------------------------------------------------------------
DUMP_FRAME_BYTES = 1_048_576
"""Longest frame that `harebell dump` decodes; longer bodies are only counted."""
