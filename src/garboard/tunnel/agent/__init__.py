"""The agent: keeps a stream to every proxy server, dials what they ask for, and listens for the node's own connections.

`servers` chooses the server for a connection of the node, the rest owns sockets. What happens to a connection is
decided in `dialer` and `frontend`.
"""
