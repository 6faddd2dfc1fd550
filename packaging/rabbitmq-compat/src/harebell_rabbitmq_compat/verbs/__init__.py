"""The verbs of the tools, by subject."""
