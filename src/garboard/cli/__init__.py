"""The command line: one module per command, each of which parses, calls the library and prints.

Running a workflow on the machine is left to `node`; the other commands are wired to the machine here.
"""
