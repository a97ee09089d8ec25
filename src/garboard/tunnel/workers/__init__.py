"""A server on every core: a supervisor, and workers that are proxy servers of their own behind the same ports.

The supervisor owns the sockets for API servers, the file of tenants and the pages, and replaces workers that end; the
workers carry all connections (`server`). How processes are started is left to the command line.
"""
