"""Tiers: old messages of a stream in Parquet files, outside of the broker."""
