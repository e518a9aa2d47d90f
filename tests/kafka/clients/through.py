"""Values through a topic and back, by each of Python's clients: a producer, then a consumer in a group."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

VALUES = [f"value-{number}" for number in range(50)]


def through_kafka_python(bootstrap: str, topic: str) -> list[str]:
    """Write with kafka-python; return what it reads back."""
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","))
    for value in VALUES:
        producer.send(topic, value.encode())
    producer.flush(30)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap.split(","),
        group_id=f"{topic}-group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    seen = [next(consumer).value.decode() for _ in VALUES]
    consumer.commit()
    consumer.close()
    return seen


def through_aiokafka(bootstrap: str, topic: str) -> list[str]:
    """Write with aiokafka in a transaction; return what it reads back."""

    async def through() -> list[str]:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-writer")
        await producer.start()
        async with producer.transaction():
            for value in VALUES:
                await producer.send(topic, value.encode())
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"{topic}-group",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        seen = [(await asyncio.wait_for(consumer.getone(), 30)).value.decode() for _ in VALUES]
        await consumer.commit()
        await consumer.stop()
        return seen

    return asyncio.run(through())
