"""The sinks of pipelines, one type per file."""
