"""Authentication and authorization of peers: principals, SASL mechanisms, and Kafka's StandardAuthorizer. No
IO.

    session = SaslServerSession(mechanisms, now_ms)       # one a connection
    session.begin("SCRAM-SHA-512"); session.respond(token)  # until session.principal is known
    authorizer.decide(principal, host, Operation.ALTER, ResourceType.TOPIC, "orders")  # → Decision

`sasl` has the mechanisms of logins, `acls` the search in ACLs. Time, randomness and files come from outside;
TLS is in ``net/``, the authorization of calls in ``requests/``.
"""
