import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Members of a group that copy a topic in transactions: into `out` each record, into `last` each under its key.
 * They abort some transactions, whose records say so. They end with their transaction, on SIGTERM.
 */
public final class Etl {
    private static volatile boolean stopped = false;
    private static int keys;

    private Etl() { }

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        String group = arguments[1];
        String protocol = arguments[2];
        List<String> topics = List.of(arguments[3].split(","));
        int workers = Integer.parseInt(arguments[4]);
        long seed = Long.parseLong(arguments[5]);
        keys = Integer.parseInt(arguments[6]);
        Thread[] threads = new Thread[workers];
        for (int number = 0; number < workers; number++) {
            String id = group + "-" + number;
            Random random = new Random(seed + number);
            threads[number] = new Thread(() -> work(bootstrap, group, protocol, topics, id, random));
            threads[number].start();
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(threads)));
    }

    private static void end(Thread[] threads) {
        stopped = true;
        try {
            for (Thread thread : threads) {
                thread.join();
            }
            System.err.println("all have ended");
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void work(
            String bootstrap, String group, String protocol, List<String> topics, String id, Random random) {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", bootstrap);
        reading.put("group.id", group);
        reading.put("group.protocol", protocol);
        if (protocol.equals("classic")) {
            reading.put("session.timeout.ms", "6000");
        }
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("max.poll.records", "50");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", bootstrap);
        writing.put("transactional.id", id);
        writing.put("transaction.timeout.ms", "20000");
        writing.put("max.block.ms", "20000");
        while (!stopped) {
            try (KafkaConsumer<String, String> consumer =
                     new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
                 KafkaProducer<String, String> producer =
                     new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
                producer.initTransactions();
                consumer.subscribe(topics.subList(0, 1));
                while (!stopped) {
                    copy(consumer, producer, topics, random);
                }
            } catch (KafkaException | IllegalStateException error) {
                System.err.println(id + " begins again: " + error);
            }
        }
    }

    /** One transaction. After any error both clients are made anew: then the broker knows what is committed. */
    private static void copy(
            KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer, List<String> topics,
            Random random) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
        if (records.isEmpty()) {
            return;
        }
        boolean aborts = random.nextInt(6) == 0;
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<String, String> one : records) {
            String value = aborts ? "aborted" : one.value();
            String key = String.valueOf(Integer.parseInt(one.value()) % keys);
            producer.send(new ProducerRecord<>(topics.get(1), one.partition(), null, value));
            producer.send(new ProducerRecord<>(topics.get(2), one.partition(), key, value));
            next.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
        }
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        if (aborts) {
            producer.flush();
            producer.abortTransaction();
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(next.keySet());
            for (TopicPartition one : next.keySet()) {
                OffsetAndMetadata at = committed.get(one);
                consumer.seek(one, at == null ? 0 : at.offset());
            }
            return;
        }
        while (true) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException error) {
                System.err.println("commits again: " + error);
            }
        }
    }
}
