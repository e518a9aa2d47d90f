"""The arithmetic below the roles: voters, majorities, progress, and voter sets by offset. No effects.

voters = VoterSet.of(node, ...)              # a value; every change makes another
progress = Progress(own_key, voters)         # a leader's view: progress.fetched(...), progress.committable()
votes = Votes(keys, own_id)                  # a candidate's: votes.record(...), votes.won, votes.lost
history = ControlRecordHistory(static)       # history.read(batches); history.voters_at(offset)
"""
