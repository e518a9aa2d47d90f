import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Runs Kafka's assignors of consumer and share groups. A line "ASSIGNOR HOMOGENEOUS|HETEROGENEOUS TOPICS MEMBERS ASSIGNABLE"
 * is answered by the members with their partitions, in the order of a map that was filled from the target's record. Topics are "id=count;"; members "id|instance or -|ids,|id:index.index,;";
 * what a share group may assign "id:index.index,".
 */
public class AssignorOracle {
    private record Topics(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(answer(line.split(" ", -1)));
    }

    private static String[] list(String text, String by) {
        return text.isEmpty() ? new String[0] : text.split(by);
    }

    private static Map<Uuid, Set<Integer>> partitions(String text) {
        Map<Uuid, Set<Integer>> found = new HashMap<>();
        for (String topic : list(text, ",")) {
            List<Integer> indexes = new ArrayList<>();
            for (String index : list(topic.substring(topic.indexOf(':') + 1), "\\."))
                indexes.add(Integer.parseInt(index));
            found.put(Uuid.fromString(topic.substring(0, topic.indexOf(':'))), new HashSet<>(indexes));
        }
        return found;
    }

    private static String answer(String[] words) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : list(words[2], ";")) {
            String[] fields = topic.split("=");
            counts.put(Uuid.fromString(fields[0]), Integer.parseInt(fields[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (String member : list(words[3], ";")) {
            String[] fields = member.split("\\|", -1);
            Set<Uuid> subscribed = new HashSet<>();
            for (String id : list(fields[2], ","))
                subscribed.add(Uuid.fromString(id));
            Map<Uuid, Set<Integer>> assigned = partitions(fields[3]);
            assigned.forEach((id, indexes) -> indexes.forEach(
                index -> owners.computeIfAbsent(id, __ -> new HashMap<>()).put(index, fields[0])));
            Optional<String> instance = fields[1].equals("-") ? Optional.empty() : Optional.of(fields[1]);
            members.put(fields[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, subscribed, new Assignment(assigned)));
        }
        PartitionAssignor assignor = switch (words[0]) {
            case "range" -> new RangeAssignor();
            case "uniform" -> new UniformAssignor();
            default -> new SimpleAssignor();
        };
        GroupSpecImpl spec = new GroupSpecImpl(
            Collections.unmodifiableMap(members), SubscriptionType.valueOf(words[1]), owners,
            words[0].equals("simple") ? Optional.of(partitions(words[4])) : Optional.empty());
        return text(assignor.assign(spec, new Topics(counts)));
    }

    private static String text(GroupAssignment assignment) {
        StringBuilder text = new StringBuilder();
        new TreeMap<>(assignment.members()).forEach((id, member) -> {
            Map<Uuid, String> topics = new HashMap<>();
            member.partitions().forEach((topic, indexes) -> {
                List<String> sorted = new ArrayList<>();
                new TreeSet<>(indexes).forEach(index -> sorted.add(index.toString()));
                topics.put(topic, String.join(".", sorted));
            });
            text.append(id).append(topics).append(";");
        });
        return text.toString();
    }
}
