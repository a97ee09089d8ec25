"""A real API server on loopback, as benchmarks have it, too."""

from tools.harness.api_server import TOKEN, real_api_server

__all__ = ["TOKEN", "real_api_server"]
