"""The end that dials: it opens the connections that the peer of a Connect stream asks for, and owns their sockets.

What it connects to is an endpoint (Konnectivity's word, as in its agent's metrics). Which addresses may be dialled is
left to `server`, counting to `server` and `agent`, the client at the other end to the peer's `frontend`.
"""
