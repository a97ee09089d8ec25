"""The command line: one module per command, each of which parses, calls the library and prints.

This is the only package that wires the pure core to the machine; what is worth testing lives below it.
"""
