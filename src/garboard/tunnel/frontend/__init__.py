"""The end that asks: it takes the connections of clients and has the peer of a Connect stream dial for them.

A frontend is one client's connection, a backend one Connect stream (both Konnectivity's words), a tunnel joins the two.
Listening for clients is left to `server` and `agent`, opening the connection to the peer's `dialer`.
"""
