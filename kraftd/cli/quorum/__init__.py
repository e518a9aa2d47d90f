"""`kraftd quorum`: describe the quorum, change its voters, and go on after a loss.

`leader` finds the leader; `former_voters` and `voter_probe` tell `recover` what the other voters hold.
"""
