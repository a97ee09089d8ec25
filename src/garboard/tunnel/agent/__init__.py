"""The agent: keeps a stream to every proxy server and dials what they ask for.

`connections` and `exchange` are the protocol without I/O; the rest owns sockets.
"""
