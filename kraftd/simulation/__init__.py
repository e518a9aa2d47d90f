"""The same rooms as the daemon's in a world of simulated time, network and disks (L4); `kraftd sim` runs it."""
