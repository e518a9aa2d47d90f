"""A small asyncio client of Kafka clusters, for kraftd's own commands.

    async with Connection.open("127.0.0.1", 9093, deadline) as controller:   # one node
        answer = await controller.ask(request, DescribeQuorumResponse)
    async with Cluster(["127.0.0.1:9092"]) as cluster:                       # brokers, by their metadata
        async for batch in PartitionReader(cluster, "orders", 0).batches(): ...
    async for batch in QuorumLog(addresses, timeout_s).batches(0): ...       # the metadata log of a quorum

`MetadataCache` and `Position` hold the rules of KIP-232, `FetchSession` those of KIP-227; they do no IO.
"""
