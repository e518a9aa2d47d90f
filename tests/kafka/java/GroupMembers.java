import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Consumers by lines of standard input: "open NAME GROUP INSTANCE TOPIC PROTOCOL" with "-" for no instance and "/REGEX"
 * for a pattern, "show NAME", "close NAME". Each is answered by a line.
 */
public final class GroupMembers {
    private static final Map<String, Member> MEMBERS = new HashMap<>();

    private GroupMembers() { }

    private static final class Member extends Thread {
        private final KafkaConsumer<String, String> consumer;
        private final Set<String> read = new TreeSet<>();
        private Set<String> assigned = Set.of();
        private volatile boolean isOpen = true;
        private String problem = "";

        Member(String bootstrap, String group, String instance, String subscription, String protocol) {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("group.id", group);
            settings.put("group.protocol", protocol);
            if (protocol.equals("classic")) {
                settings.put("heartbeat.interval.ms", "500");
            }
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            settings.put("metadata.max.age.ms", "1000");
            if (!instance.equals("-")) {
                settings.put("group.instance.id", instance);
            }
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            if (subscription.startsWith("/")) {
                consumer.subscribe(new SubscriptionPattern(subscription.substring(1)));
            } else {
                consumer.subscribe(List.of(subscription));
            }
        }

        @Override
        public void run() {
            try {
                while (isOpen) {
                    for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(100))) {
                        synchronized (this) {
                            read.add(one.value());
                        }
                    }
                    consumer.commitSync();
                    Set<String> now = consumer.assignment().stream().map(Object::toString).collect(Collectors.toSet());
                    synchronized (this) {
                        assigned = new TreeSet<>(now);
                    }
                }
            } catch (RuntimeException error) {
                synchronized (this) {
                    problem = " " + error;
                }
            } finally {
                consumer.close();
            }
        }

        synchronized String text() {
            return String.join(",", assigned) + "|" + String.join(",", read) + "|" + problem;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "open" -> {
                    Member member = new Member(arguments[0], words[2], words[3], words[4], words[5]);
                    MEMBERS.put(words[1], member);
                    member.start();
                    System.out.println("opened");
                }
                case "show" -> System.out.println(MEMBERS.get(words[1]).text());
                default -> {
                    Member member = MEMBERS.remove(words[1]);
                    member.isOpen = false;
                    member.join();
                    System.out.println(member.text());
                }
            }
        }
        for (Member member : MEMBERS.values()) {
            member.isOpen = false;
            member.join();
        }
    }
}
