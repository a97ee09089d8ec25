"""Konnectivity: a proxy server and an agent that carry connections to networks which can only be left, not entered.

`packets` is the wire, `server` and `agent` are the two ends: in each, a protocol without I/O decides and the modules
around it own the sockets. HTTP/2 and gRPC are left to `garboard.rpc`, certificates to whoever starts the ends.
"""
