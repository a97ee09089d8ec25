"""Runs that are killed at every point, and what resume and undo make of them."""
