"""What both ends send and buffer: packets, connections that share a stream, bounded queues, plain sockets.

It carries bytes and credit. When a connection is opened or closed is decided by `frontend` and `dialer`.
"""
