"""Transitional 0-10 on the wire: one file per class of the document, with a small client."""
