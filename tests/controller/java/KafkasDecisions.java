package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsResponseData.CreatePartitionsTopicResult;
import org.apache.kafka.common.message.ListPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.ListPartitionReassignmentsRequestData.ListPartitionReassignmentsTopics;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.errors.EventHandlerExceptionInfo;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.DefaultDirProvider;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import kraftd.Suite;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeSet;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;

import static kraftd.Suite.field;
import static kraftd.Suite.line;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;

/**
 * Runs Kafka's own tests of its controller, and writes each decision that they ask for to the output.
 *
 * "replay WORLD RECORD TAKEN": one more record is in force, or not. "call WORLD NAME MILLISECONDS SESSION LEVEL ELR
 * CLUSTER ARGUMENT...", then "done ANSWER RECORDS" or "refused ERROR", is a decision, with a "draw BOUND VALUE" for each
 * random number. "build ... RECORD" is a change of a partition. The managers that share a snapshot registry are a world.
 */
public class KafkasDecisions {
    private static final Map<Object, Integer> WORLDS = new IdentityHashMap<>();
    private static final Set<String> MANAGERS =
        Set.of("ReplicationControlManager", "ClusterControlManager", "ConfigurationControlManager", "FeatureControlManager");
    private static int depth = 0;  // of decisions that ask for others

    public static void main(String[] classes) {
        String here = KafkasDecisions.class.getPackageName() + ".";
        new AgentBuilder.Default().
            type(namedOneOf(MANAGERS.stream().map(name -> here + name).toArray(String[]::new))).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(Replay.class).on(named("replay"))).
                visit(Advice.to(Made.class).on(isConstructor())).
                visit(Advice.to(Decision.class).on(namedOneOf(
                    "createTopics", "deleteTopics", "createPartitions", "alterPartition", "electLeaders",
                    "alterPartitionReassignments", "listPartitionReassignments", "handleAssignReplicasToDirs",
                    "processBrokerHeartbeat", "unregisterBroker", "maybeFenceOneStaleBroker",
                    "maybeBalancePartitionLeaders", "maybeElectUncleanLeaders", "handleBrokerFenced",
                    "handleBrokerUnregistered", "handleBrokerUnfenced", "handleBrokerInControlledShutdown",
                    "handleBrokerShutdown", "handleDirectoriesOffline", "registerBroker", "registerController",
                    "trackBrokerHeartbeat", "activate")))).
            type(named(here + "PartitionChangeBuilder")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Build.class).on(named("build")))).
            type(named("org.apache.kafka.metadata.placement.StripedReplicaPlacer")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Placer.class).on(isConstructor()))).
            installOn(ByteBuddyAgent.install());
        Suite.run(Arrays.stream(classes).map(name -> here + name).toArray(String[]::new));
    }

    public static class Replay {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.This Object manager, @Advice.AllArguments Object[] arguments, @Advice.Thrown Throwable thrown) {
            replayed(manager, (ApiMessage) arguments[0], thrown == null);
        }
    }

    public static class Made {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager) {
            made(manager);
        }
    }

    public static class Placer {
        @Advice.OnMethodExit
        public static void exit(@Advice.FieldValue(value = "random", readOnly = false) Random random) {
            random = new Shown(random);
        }
    }

    public static class Decision {
        @Advice.OnMethodEnter
        public static int enter(@Advice.This Object manager, @Advice.Origin("#m") String name, @Advice.AllArguments Object[] arguments) {
            return called(manager, name, arguments);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.Enter int before,
            @Advice.AllArguments Object[] arguments,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            ended(before, arguments, result, thrown);
        }
    }

    public static class Build {
        @Advice.OnMethodEnter
        public static String enter(@Advice.This Object builder) {
            return state(builder);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.Enter String before,
            @Advice.Return Optional<ApiMessageAndVersion> record,
            @Advice.Thrown Throwable thrown
        ) {
            if (before != null && thrown == null) written(before, record.isPresent() ? record.get() : null);
        }
    }

    /** Random numbers that are written down. */
    public static final class Shown extends Random {
        private final Random random;

        public Shown(Random random) {
            this.random = random;
        }

        @Override
        public int nextInt(int bound) {
            int value = random.nextInt(bound);
            line("draw", bound, value);
            return value;
        }
    }

    public static void written(String before, ApiMessageAndVersion record) {
        line("build", before, record == null ? "none" : hex(record));
    }

    private static int world(Object manager) {
        Object registry = field(manager, "snapshotRegistry");
        for (String table : List.of("brokerRegistrations", "finalizedVersions"))
            if (registry == null && field(manager, table) != null) registry = field(field(manager, table), "snapshotRegistry");
        return WORLDS.computeIfAbsent((SnapshotRegistry) registry, none -> WORLDS.size());
    }

    public static void replayed(Object manager, ApiMessage record, boolean taken) {
        short version = MetadataRecordType.fromId(record.apiKey()).highestSupportedVersion();
        line("replay", world(manager), hex(new ApiMessageAndVersion(record, version)), taken);
    }

    public static void made(Object manager) {
        if (manager instanceof ConfigurationControlManager)
            line("static", world(manager), field(manager, "staticConfig"), field(field(manager, "currentController"), "name"));
    }

    public static int called(Object manager, String name, Object[] arguments) {
        depth++;
        if (depth > 1) return 0;
        Object cluster = manager instanceof ClusterControlManager ? manager : field(manager, "clusterControl");
        FeatureControlManager features = (FeatureControlManager) field(cluster, "featureControl");
        StringJoiner shown = new StringJoiner("\t");
        for (Object argument : arguments) shown.add(argument(argument, arguments));
        long now = ((Time) field(cluster, "time")).milliseconds();
        long session = (Long) field(cluster, "sessionTimeoutNs") / 1_000_000;
        short level = features.metadataVersion().map(MetadataVersion::featureLevel).orElse((short) 0);
        boolean elr = features.isElrFeatureEnabled();
        line("call", world(manager), name, now, session, level, elr, field(cluster, "clusterId"), shown);
        return arguments.length > 0 && arguments[arguments.length - 1] instanceof List<?> records ? records.size() : 0;
    }

    public static void ended(int before, Object[] arguments, Object result, Throwable thrown) {
        depth--;
        if (depth > 0) return;
        if (thrown != null) {
            Throwable shown = EventHandlerExceptionInfo.fromInternal(thrown, OptionalInt::empty).effectiveExternalException();
            line("refused", Errors.forException(shown).name());
        } else if (result instanceof ControllerResult<?> decided) {
            line("done", answer(decided.response(), arguments), records(decided.records()));
        } else if (result instanceof ApiMessage message) {
            line("done", answer(message, arguments), "");
        } else if (arguments.length > 0 && arguments[arguments.length - 1] instanceof List<?> list) {
            @SuppressWarnings("unchecked")
            List<ApiMessageAndVersion> added = (List<ApiMessageAndVersion>) list;
            line("done", "null", records(added.subList(before, added.size())));
        } else {
            line("done", "null", "");
        }
    }

    private static String records(List<ApiMessageAndVersion> records) {
        return records.stream().map(KafkasDecisions::hex).collect(Collectors.joining(" "));
    }

    /** The version in which a request and its answer are written: the caller's, else the newest. */
    private static short version(ApiMessage message, Object[] arguments) {
        boolean callers = message instanceof AlterPartitionRequestData || message instanceof AlterPartitionResponseData;
        return callers ? ((ControllerRequestContext) arguments[0]).requestHeader().requestApiVersion() : message.highestSupportedVersion();
    }

    private static String argument(Object argument, Object[] arguments) {
        if (argument instanceof ControllerRequestContext context) return String.valueOf(context.requestHeader().requestApiVersion());
        if (argument instanceof FinalizedControllerFeatures features) return features.featureMap().toString();
        if (argument instanceof AlterPartitionRequestData request) {
            AlterPartitionRequestData copy = request.duplicate();
            short version = version(request, arguments);
            // Kafka itself adds this field to requests that are older than it.
            if (version < 3) copy.topics().forEach(topic -> topic.partitions().forEach(one -> one.setNewIsrWithEpochs(List.of())));
            return hex(copy, version);
        }
        if (argument instanceof ApiMessage message) return hex(message, version(message, arguments));
        if (argument instanceof Collection<?> collection) {
            if (collection.stream().allMatch(CreatePartitionsTopic.class::isInstance) && !collection.isEmpty()) {
                CreatePartitionsRequestData request = new CreatePartitionsRequestData();
                collection.forEach(topic -> request.topics().add(((CreatePartitionsTopic) topic).duplicate()));
                return hex(request, request.highestSupportedVersion());
            }
            if (collection.stream().allMatch(ListPartitionReassignmentsTopics.class::isInstance) && !collection.isEmpty()) {
                ListPartitionReassignmentsRequestData request = new ListPartitionReassignmentsRequestData().setTopics(new ArrayList<>());
                collection.forEach(topic -> request.topics().add((ListPartitionReassignmentsTopics) topic));
                return hex(request, request.highestSupportedVersion());
            }
            return collection.stream().map(String::valueOf).collect(Collectors.joining(","));
        }
        return String.valueOf(argument);
    }

    private static String answer(Object answer, Object[] arguments) {
        if (answer instanceof ApiMessage message) return hex(message, version(message, arguments));
        if (answer instanceof BrokerHeartbeatReply reply) return reply.isCaughtUp() + " " + reply.isFenced() + " " + reply.shouldShutDown();
        if (answer instanceof BrokerRegistrationReply reply) return String.valueOf(reply.epoch());
        if (answer instanceof Map<?, ?> errors) return errors.entrySet().stream().
            map(entry -> entry.getKey() + "=" + ((ApiError) entry.getValue()).error()).collect(Collectors.joining(" "));
        if (answer instanceof List<?> results) return results.stream().map(CreatePartitionsTopicResult.class::cast).
            map(result -> result.name() + "=" + Errors.forCode(result.errorCode())).collect(Collectors.joining(" "));
        return String.valueOf(answer);
    }

    private static String hex(ApiMessage message, short version) {
        try {
            return "x" + Hex.hex(message, version);
        } catch (RuntimeException e) {
            return "unwritable";  // a test may make a message that has no form
        }
    }

    private static String hex(ApiMessageAndVersion record) {
        try {
            return Hex.hex(record);
        } catch (RuntimeException e) {
            return "unwritable";
        }
    }

    /** A change's partition, and what is asked for, in columns; null if it is not to be compared. */
    public static String state(Object builder) {
        if (!(Boolean) field(builder, "useLastKnownLeaderInBalancedRecovery")) return null;  // nothing but tests turns it off
        PartitionRegistration partition = (PartitionRegistration) field(builder, "partition");
        IntPredicate acceptable = (IntPredicate) field(builder, "isAcceptableLeader");
        DefaultDirProvider directories = (DefaultDirProvider) field(builder, "defaultDirProvider");
        Collection<?> replicas = (Collection<?>) field(builder, "targetReplicas");
        TreeSet<Integer> all = new TreeSet<>(replicas.stream().map(Integer.class::cast).collect(Collectors.toSet()));
        for (int[] some : List.of(partition.replicas, partition.elr, partition.lastKnownElr)) Arrays.stream(some).forEach(all::add);
        StringJoiner leaders = new StringJoiner(","), places = new StringJoiner(",");
        for (int replica : all) {
            try {
                if (acceptable.test(replica)) leaders.add(String.valueOf(replica));
            } catch (RuntimeException e) {
                continue;  // it has no replica here
            } finally {
                try {
                    Uuid place = directories.defaultDir(replica);
                    if (place != null) places.add(replica + "=" + place);
                } catch (RuntimeException e) {
                    places.add("");  // the test needs none
                }
            }
        }
        StringJoiner columns = new StringJoiner("\t");
        List<int[]> lists = List.of(
            partition.replicas, partition.isr, partition.removingReplicas, partition.addingReplicas, partition.elr, partition.lastKnownElr);
        for (int[] some : lists)
            columns.add(Arrays.stream(some).mapToObj(String::valueOf).collect(Collectors.joining(",")));
        columns.add(Arrays.stream(partition.directories).map(Uuid::toString).collect(Collectors.joining(",")));
        columns.add(partition.leader + "," + partition.leaderRecoveryState.value());
        for (String name : List.of("targetIsr", "targetReplicas", "targetRemoving", "targetAdding", "uncleanShutdownReplicas"))
            columns.add(field(builder, name) == null ? "" : argument(field(builder, name), null));
        for (String name : List.of("election", "minISR", "eligibleLeaderReplicasEnabled"))
            columns.add(String.valueOf(field(builder, name)));
        columns.add(String.valueOf(((LeaderRecoveryState) field(builder, "targetLeaderRecoveryState")).value()));
        columns.add(String.valueOf(((MetadataVersion) field(builder, "metadataVersion")).featureLevel()));
        Map<?, ?> moves = (Map<?, ?>) field(builder, "targetDirectories");
        columns.add(moves.entrySet().stream().map(String::valueOf).collect(Collectors.joining(",")));
        columns.add(leaders.toString()).add(places.toString());
        columns.add(field(builder, "topicId") + "," + field(builder, "partitionId"));
        return columns.toString();
    }
}
