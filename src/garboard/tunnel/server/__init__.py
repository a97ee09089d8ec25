"""The proxy server: frontends of API servers (gRPC or HTTP-CONNECT) on one side, the streams of agents on the other.

`routing` chooses the agent for a connection, `reverse` decides what agents may have dialled, the rest owns sockets.
What happens to a connection is decided in `frontend` and `dialer`.
"""
