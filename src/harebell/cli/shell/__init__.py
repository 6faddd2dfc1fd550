"""The prompt of `harebell shell` and `harebell sql`: lines, their history, and what Tab offers."""
