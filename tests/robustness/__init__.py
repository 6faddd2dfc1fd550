"""Hostile and unlucky peers against a real broker process."""
