"""Measurements beside peers, in the same run; never part of the tests."""
