"""What a tunnel needs around it: certificates, and the files that make a node or a control plane run and use it.

Everything here is rendered from values; writing it down is left to the command line.
"""
