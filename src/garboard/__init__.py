"""garboard: a Kubernetes cluster lifecycle toolkit."""

__version__ = "0.1.0"
