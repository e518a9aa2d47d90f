"""Commands of scenario scripts that change the voters.

add 4 to 1 [early] | remove 3 from 1       AddRaftVoter and RemoveRaftVoter, asked of 1
upgrade 1                                  kraft.version 0 to 1, asked of the leader 1
"""

from __future__ import annotations

from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftd.messages.add_raft_voter_request import Listener as AddListener
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.raft.events import KRaftVersionUpgradeRequested
from tests.raft.world import directory_id
from tests.scripts.stage import Stage


class MembershipCommands(Stage):
    def do_add(self, words: list[str], options: dict[str, str]) -> None:
        new, _, leader = words[:3]
        config = self.world.nodes[int(new)].config
        listeners = [AddListener(one.listener, one.host, one.port) for one in config.listeners]
        request = AddRaftVoterRequest(
            "cluster", 5000, int(new), config.directory_id, listeners, ack_when_committed="early" not in words
        )
        self.ask("admin", int(leader), request)

    def do_remove(self, words: list[str], options: dict[str, str]) -> None:
        old, _, leader = words
        voter = self.world.core(int(leader)).voters.get(int(old))
        directory = voter.key.directory_id if voter is not None else directory_id(int(old))
        request = RemoveRaftVoterRequest("cluster", int(old), directory or bytes(16))
        self.ask("admin", int(leader), request)

    def do_upgrade(self, words: list[str], options: dict[str, str]) -> None:
        node_id = int(words[0])
        event = KRaftVersionUpgradeRequested("kraft.version=1", 1, self.world.core(node_id).epoch)
        self.world.step(node_id, event)
