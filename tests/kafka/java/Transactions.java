import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Copies records of a topic to another one in transactions, every third of which it aborts and does again. */
public final class Transactions {
    private Transactions() { }

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        int count = Integer.parseInt(arguments[1]);
        Properties reading = new Properties();
        reading.put("bootstrap.servers", bootstrap);
        reading.put("group.id", "copier");
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", bootstrap);
        writing.put("transactional.id", "copier");
        TopicPartition source = new TopicPartition("in", 0);
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            consumer.subscribe(List.of("in"));
            producer.initTransactions();
            long done = 0;
            for (int turn = 1; done < count; turn++) {
                List<ConsumerRecord<String, String>> records = consumer.poll(Duration.ofMillis(500)).records(source);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                for (ConsumerRecord<String, String> one : records) {
                    producer.send(new ProducerRecord<>("out", (int) (one.offset() % 2), null, one.value()));
                }
                long next = records.get(records.size() - 1).offset() + 1;
                producer.sendOffsetsToTransaction(
                    Map.of(source, new OffsetAndMetadata(next)), consumer.groupMetadata());
                if (turn % 3 == 0) {
                    producer.flush();
                    producer.abortTransaction();
                    OffsetAndMetadata committed = consumer.committed(java.util.Set.of(source)).get(source);
                    consumer.seek(source, committed == null ? 0 : committed.offset());
                } else {
                    producer.commitTransaction();
                    done += records.size();
                }
            }
            System.out.println("copied " + done);
        }
    }
}
