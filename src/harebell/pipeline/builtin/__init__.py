"""Built-in pipelines: archive, replay and reports."""
