"""The options of the format `harebell`, for reading and for writing."""
