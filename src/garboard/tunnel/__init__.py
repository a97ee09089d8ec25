"""Konnectivity: a proxy server and an agent that carry connections into networks whose hosts can only dial out.

`frontend` is the end that asks for a connection, `dialer` the end that opens it, `wire` what they send each other; each
end decides in a protocol without I/O. The programs `server` and `agent` hold both ends, since connections are asked for
on either side. HTTP/2 and gRPC are left to `garboard.rpc`, files and the API server's client to the command line.
"""
