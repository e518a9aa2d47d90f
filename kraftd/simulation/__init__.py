"""The daemon's rooms in a world of simulated time, network and disks (L4); `kraftd sim` runs it."""
