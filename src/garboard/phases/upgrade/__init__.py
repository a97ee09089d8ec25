"""`upgrade`: the version of a cluster that runs, and of its nodes one after the other, raised."""
