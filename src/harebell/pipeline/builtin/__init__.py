"""Pipelines that are commands: archive, replay and reports."""
