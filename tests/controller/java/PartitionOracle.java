package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Prints one line for each case: the result of Kafka's own classes. A case is a line of key=value words.
 *
 * Lists are comma-separated, a missing key is null. A directory is a number n, the uuid of which ends in n.
 * The default directory of broker b is 1000 + b.
 */
public class PartitionOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, String> words = new HashMap<>();
            String[] split = line.split(" ");
            for (int i = 1; i < split.length; i++) {
                String[] pair = split[i].split("=", 2);
                words.put(pair[0], pair[1]);
            }
            try {
                out.println(split[0].equals("place") ? place(words) : change(words));
            } catch (ApiException refused) {
                out.println("refused " + refused.getClass().getSimpleName());
            }
        }
        out.flush();
    }

    private static String change(Map<String, String> words) {
        PartitionRegistration partition = new PartitionRegistration.Builder().
            setReplicas(array(words, "replicas")).
            setDirectories(directories(words.get("directories"))).
            setIsr(array(words, "isr")).
            setRemovingReplicas(array(words, "removing")).
            setAddingReplicas(array(words, "adding")).
            setElr(array(words, "elr")).
            setLastKnownElr(array(words, "last_known_elr")).
            setLeader(number(words, "leader")).
            setLeaderRecoveryState(LeaderRecoveryState.of((byte) number(words, "recovery"))).
            setLeaderEpoch(number(words, "leader_epoch")).
            setPartitionEpoch(number(words, "partition_epoch")).
            build();
        Set<Integer> leading = Set.copyOf(list(words.get("may_lead")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition,
            new Uuid(7, 7),
            3,
            leading::contains,
            MetadataVersion.fromFeatureLevel((short) number(words, "metadata_version")),
            number(words, "min_isr"),
            number(words, "elr_enabled") == 1
        ).setDefaultDirProvider(broker -> new Uuid(0, 1000 + broker));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(words.get("election")));
        if (words.containsKey("to_isr")) builder.setTargetIsr(list(words.get("to_isr")));
        if (words.containsKey("to_recovery"))
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) number(words, "to_recovery")));
        if (words.containsKey("unclean_shutdown"))
            builder.setUncleanShutdownReplicas(list(words.get("unclean_shutdown")));
        if (words.containsKey("directory")) {
            String[] place = words.get("directory").split(":");
            builder.setDirectory(Integer.parseInt(place[0]), new Uuid(0, Long.parseLong(place[1])));
        }
        if (words.containsKey("reassign")) {
            PartitionReassignmentReplicas moves = new PartitionReassignmentReplicas(
                new PartitionAssignment(Replicas.toList(partition.replicas), partition::directory),
                new PartitionAssignment(list(words.get("reassign")), broker -> Uuid.ZERO_UUID));
            if (!moves.replicas().equals(Replicas.toList(partition.replicas)))
                builder.setTargetReplicas(moves.replicas());
            if (!moves.removing().isEmpty()) builder.setTargetRemoving(moves.removing());
            if (!moves.adding().isEmpty()) builder.setTargetAdding(moves.adding());
        }
        if (words.containsKey("cancel")) {
            PartitionReassignmentRevert revert = new PartitionReassignmentRevert(partition);
            builder.setTargetIsr(revert.isr()).setTargetReplicas(revert.replicas()).
                setTargetRemoving(List.of()).setTargetAdding(List.of());
        }
        Optional<ApiMessageAndVersion> built = builder.build();
        if (built.isEmpty()) return "nothing";
        PartitionChangeRecord record = (PartitionChangeRecord) built.get().message();
        PartitionRegistration after = partition.merge(record);
        return "version=" + built.get().version() +
            text("isr", record.isr()) +
            " leader=" + record.leader() +
            text("replicas", record.replicas()) +
            text("removing_replicas", record.removingReplicas()) +
            text("adding_replicas", record.addingReplicas()) +
            " leader_recovery_state=" + record.leaderRecoveryState() +
            uuids("directories", record.directories()) +
            text("eligible_leader_replicas", record.eligibleLeaderReplicas()) +
            text("last_known_elr", record.lastKnownElr()) +
            text("after.replicas", Replicas.toList(after.replicas)) +
            uuids("after.directories", Arrays.asList(after.directories)) +
            text("after.isr", Replicas.toList(after.isr)) +
            text("after.removing_replicas", Replicas.toList(after.removingReplicas)) +
            text("after.adding_replicas", Replicas.toList(after.addingReplicas)) +
            text("after.elr", Replicas.toList(after.elr)) +
            text("after.last_known_elr", Replicas.toList(after.lastKnownElr)) +
            " after.leader=" + after.leader +
            " after.leader_recovery_state=" + after.leaderRecoveryState.value() +
            " after.leader_epoch=" + after.leaderEpoch +
            " after.partition_epoch=" + after.partitionEpoch;
    }

    /** brokers: id:rack:fenced, comma-separated; an empty rack is none. */
    private static String place(Map<String, String> words) {
        List<UsableBroker> brokers = new ArrayList<>();
        if (!words.get("brokers").isEmpty()) {
            for (String broker : words.get("brokers").split(",")) {
                String[] parts = broker.split(":");
                Optional<String> rack = parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]);
                brokers.add(new UsableBroker(Integer.parseInt(parts[0]), rack, parts[2].equals("1")));
            }
        }
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int broker) {
                return Uuid.ZERO_UUID;
            }
        };
        Random random = new Random(Long.parseLong(words.get("seed")));
        PlacementSpec spec = new PlacementSpec(0, number(words, "partitions"), (short) number(words, "replicas"));
        return new StripedReplicaPlacer(random).place(spec, cluster).assignments().stream().
            map(assignment -> join(assignment.replicas())).collect(Collectors.joining(" "));
    }

    private static int number(Map<String, String> words, String key) {
        return Integer.parseInt(words.get(key));
    }

    private static List<Integer> list(String text) {
        if (text.isEmpty()) return List.of();
        return Arrays.stream(text.split(",")).map(Integer::valueOf).collect(Collectors.toList());
    }

    private static int[] array(Map<String, String> words, String key) {
        return Replicas.toArray(list(words.get(key)));
    }

    private static Uuid[] directories(String text) {
        return list(text).stream().map(number -> new Uuid(0, number)).toArray(Uuid[]::new);
    }

    private static String join(List<Integer> numbers) {
        return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    private static String text(String key, List<Integer> numbers) {
        return numbers == null ? "" : " " + key + "=" + join(numbers);
    }

    private static String uuids(String key, List<Uuid> uuids) {
        if (uuids == null) return "";
        return " " + key + "=" + uuids.stream().map(uuid -> String.valueOf(uuid.getLeastSignificantBits())).
            collect(Collectors.joining(","));
    }
}
