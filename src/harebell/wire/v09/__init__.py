"""The wire of 0-8, 0-9 and 0-9-1, which share frames, field tables and content headers.

One compact table per version says which methods there are; everything else is common to them.
"""
