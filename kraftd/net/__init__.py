"""Listeners and connections: turn bytes into frames and answers into bytes, within limits.

    connections = Connections(handler, limits, loop.call_soon)
    await loop.create_server(connections.factory(listener), host, port)   # handler.frames_received follows
    connection.answer(slot, parts)                                        # sent in the order of requests
    outbound = Outbound(...); outbound.send(tag, address, message)        # handler.answered or failed follows

Public: `listener`, `connection`, `limits`; `outbound` for requests to other nodes; `tls`; `token_source` for
OAUTHBEARER logins. `transport` is the interface of a loop's transport. The caller supplies the event loop:
nothing here creates one.
"""
