import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of a share group. They accept records, and now and then release some. They print each value that they
 * get ("read"), that a broker has answered to be accepted ("accepted"), and whose acceptance had another answer, or
 * none ("doubted"). They end on SIGTERM.
 */
public final class ShareMembers {
    private static volatile boolean stopped = false;

    private ShareMembers() { }

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        String group = arguments[1];
        String topic = arguments[2];
        int members = Integer.parseInt(arguments[3]);
        long seed = Long.parseLong(arguments[4]);
        Thread[] threads = new Thread[members];
        for (int number = 0; number < members; number++) {
            Random random = new Random(seed + number);
            threads[number] = new Thread(() -> work(bootstrap, group, topic, random));
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
            say("all have ended");
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void work(String bootstrap, String group, String topic, Random random) {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", bootstrap);
        reading.put("group.id", group);
        reading.put("share.acknowledgement.mode", "explicit");
        reading.put("max.poll.records", "50");
        reading.put("metadata.max.age.ms", "5000");
        while (!stopped) {
            try (KafkaShareConsumer<String, String> consumer =
                     new KafkaShareConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic));
                while (!stopped) {
                    read(consumer, random);
                }
            } catch (KafkaException | IllegalStateException error) {
                say("begins again: " + error);
            }
        }
    }

    private static void read(KafkaShareConsumer<String, String> consumer, Random random) {
        List<ConsumerRecord<String, String>> accepted = new ArrayList<>();
        for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
            say("read " + one.partition() + " " + one.value());
            if (random.nextInt(10) == 0) {
                consumer.acknowledge(one, AcknowledgeType.RELEASE);
            } else {
                consumer.acknowledge(one, AcknowledgeType.ACCEPT);
                accepted.add(one);
            }
        }
        Map<TopicIdPartition, Optional<KafkaException>> answers = consumer.commitSync(Duration.ofSeconds(20));
        for (Map.Entry<TopicIdPartition, Optional<KafkaException>> answer : answers.entrySet()) {
            if (answer.getValue().isPresent()) {
                say("not accepted: " + answer.getValue().get());
            }
            String word = answer.getValue().isPresent() ? "doubted " : "accepted ";
            for (ConsumerRecord<String, String> one : accepted) {
                if (one.partition() == answer.getKey().partition()) {
                    say(word + one.partition() + " " + one.value());
                }
            }
        }
    }
}
