"""Commands made of a workflow's tree: options from its flags, sub-commands from its phases."""
