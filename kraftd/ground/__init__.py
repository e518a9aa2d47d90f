"""What every pure package speaks: bases of effects and events, refusals, the pace of slices, destinations.

And what nodes and clients agree on by themselves: Java's hashes.
"""
