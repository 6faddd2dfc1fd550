"""The command line: `harebell <verb>`, one file per verb."""
