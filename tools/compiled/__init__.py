"""The modules that every packet of the tunnel goes through, compiled by mypyc: the same sources, as C extensions.

`hatch_hook` puts them into a wheel, `python -m tools.compiled` into build/compiled, for tests and benchmarks.
"""
