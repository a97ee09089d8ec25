"""The command line: one module per command, each of which parses, calls the library and prints.

This is the only package that wires the pure core to the machine; what is worth testing lives below it.
"""

import gc

# Imports and documents make many small objects that live on; by default the collector would walk them over and over.
# A join makes 70,000 of them before it is done.
gc.set_threshold(200_000, 20, 20)
