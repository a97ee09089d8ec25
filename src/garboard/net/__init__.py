"""How a connection to another machine is made: which proxy it takes, and which certificates it trusts.

`proxies` decides as Go programs do, `connect` opens the connection, `tls` makes every TLS context. What is said over
the connection is left to the callers.
"""
