"""What tests and benchmarks share: labs and scratch machines to run garboard on, points to kill it at, trees of files.

Neither of the two imports the other. What only tests need is in `tests/support`; this package knows no test.
"""
