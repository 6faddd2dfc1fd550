"""Settings by operators: policies, parameters, limits and metadata."""
