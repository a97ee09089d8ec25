"""The proxy server: front ends (gRPC or HTTP-CONNECT) on one side, the streams of agents on the other.

`tunnels` and `switchboard` are the protocol without I/O, `routing` chooses agents; the rest owns sockets.
"""
