"""The version of Harebell."""

VERSION = "0.1.0"
