"""kubeadm's configuration: bytes to typed values, defaulted, converted and validated as kubeadm of the minor does.

What the machine knows (host name, addresses, sockets) arrives through `HostFacts`; acting on a configuration is left
to the phases.
"""
