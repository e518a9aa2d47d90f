"""What every pure package speaks: the bases of effects and events, refusals, the pace of slices, destinations."""
