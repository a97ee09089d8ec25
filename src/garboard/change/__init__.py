"""Changing a cluster of kubeadm (KEP-28): what a change would touch, and what is dangerous in it.

Pure: a snapshot of the cluster and a request come in, a plan goes out. Reading the cluster and carrying a plan out are
left to `node`.
"""
