"""What every pure package speaks: bases of effects and events, refusals, the pace of slices, destinations."""
