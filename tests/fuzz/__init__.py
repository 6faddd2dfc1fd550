"""Fuzz targets, and the corpus of inputs that once mattered."""
