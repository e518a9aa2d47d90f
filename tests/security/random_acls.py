"""Random ACLs and questions, with so few names that most questions concern several ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.metadata.state import AclState
from kraftd.security.principals import Principal

PRINCIPALS = ("User:alice", "User:bob", "User:CN=carol,O=a:b", "Group:alice", "User:*")
HOSTS = ("127.0.0.1", "10.0.0.7", "0:0:0:0:0:0:0:1")
TYPES = [type for type in AclResourceType if type >= AclResourceType.TOPIC]
OPERATIONS = [operation for operation in AclOperation if operation >= AclOperation.ALL]
# No name begins with a character that sorts before "*": Kafka's search does not end with some of them.
ALPHABET = "ab*-é𝄞"

Question = tuple[Principal, str, int, int, str]


class Case:
    """One set of ACLs and the questions about it."""

    def __init__(self, seed: int, acl_count: int, question_count: int) -> None:
        random = Random(seed)
        self.super_users = random.choice(("", "User:bob", "User:alice; Group:alice"))
        self.allow_if_no_acl = random.random() < 0.5
        acls = dict.fromkeys(_acl(random) for _ in range(random.randrange(acl_count + 1)))
        self.acls = list(acls)
        self.removed = sorted(random.sample(range(len(self.acls)), random.randrange(len(self.acls) // 3 + 1)))
        self.questions = [_question(random) for _ in range(question_count)]

    def lines(self) -> Iterator[str]:
        """The lines of the case that the oracle reads."""
        yield f"new\t{self.super_users}\t{str(self.allow_if_no_acl).lower()}"
        yield "loaded"
        for acl in self.acls:
            yield f"acl\t{acl_line(acl)}"
        yield from (f"remove\t{at}" for at in self.removed)
        for principal, host, operation, type, name in self.questions:
            yield f"ask\t{principal}\t{host}\t{operation}\t{type}\t{name}"
            if operation > AclOperation.ALL:
                yield f"any\t{principal}\t{host}\t{operation}\t{type}"


def acl_line(acl: AclState) -> str:
    fields = (
        *(acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal, acl.host),
        *(acl.operation, acl.permission_type),
    )
    return "\t".join(str(int(field) if isinstance(field, int) else field) for field in fields)


def _name(random: Random) -> str:
    return "".join(random.choices(ALPHABET, (6, 6, 1, 2, 1, 1), k=random.randrange(1, 6)))


def _acl(random: Random) -> AclState:
    pattern = random.choice((AclPatternType.LITERAL, AclPatternType.PREFIXED))
    name = "*" if random.random() < 0.1 else _name(random)
    return AclState(
        _type(random),
        name,
        pattern,
        random.choice(PRINCIPALS),
        random.choice((*HOSTS, "*", "*")),
        random.choice(OPERATIONS),
        random.choices((AclPermission.ALLOW, AclPermission.DENY), (3, 1))[0],
    )


def _type(random: Random) -> AclResourceType:
    return random.choices(TYPES, [8, 2, *(1 for _ in TYPES[2:])])[0]


def _question(random: Random) -> Question:
    type, _, name = random.choice(PRINCIPALS[:-1]).partition(":")
    operation = random.choice(OPERATIONS[1:])
    return Principal(type, name), random.choice(HOSTS), operation, _type(random), _name(random)
