"""What an operator does after or against a loss: backups, restores, a quorum of one, discarded records."""
