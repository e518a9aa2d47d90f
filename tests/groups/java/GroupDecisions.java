package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorTimer;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.ShareGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;

import kraftd.Suite;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

import static kraftd.Suite.field;
import static kraftd.Suite.line;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;

/**
 * Runs Kafka's own tests of its group coordinator, and writes each decision that they ask for to the output.
 *
 * "world WORLD CONFIG" is a new manager and "image WORLD ..." its topics; "replay WORLD KEY VALUE" is a record that is in
 * force. "call WORLD NUMBER NAME MILLISECONDS ARGUMENT..." begins a decision, after "timers WORLD KEY=TIME..." which are
 * scheduled by then; "uuid ..." and "assigned ..." are what it is given meanwhile. "done NUMBER ANSWER RECORDS WAITS" or
 * "refused NUMBER ERROR MESSAGE" ends it. "answered NUMBER ANSWER" is a request that waited, "appended NUMBER ERROR" what
 * the test says of its records. "touch WORLD GROUP NAME MILLISECONDS ..." is what a test does to a group itself.
 * "offset", "marker" and "offsets" are records, ends of transactions and configs of a manager of offsets.
 */
public class GroupDecisions {
    private static final Map<Object, Integer> WORLDS = new IdentityHashMap<>();
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();
    private static GroupMetadataManager last = null;
    private static int depth = 0;  // of decisions that ask for others
    private static int number = 0;

    public static void main(String[] classes) {
        install();
        Suite.run(classes);
    }

    static void install() {
        String here = "org.apache.kafka.coordinator.group.", common = "org.apache.kafka.coordinator.common.runtime.";
        new AgentBuilder.Default().
            type(named(here + "GroupMetadataManager")).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(Replay.class).on(named("replay"))).
                visit(Advice.to(Made.class).on(isConstructor())).
                visit(Advice.to(Image.class).on(named("onMetadataUpdate"))).
                visit(Advice.to(Created.class).on(namedOneOf("getOrMaybeCreateClassicGroup", "getOrMaybeCreatePersistedConsumerGroup",
                    "getOrMaybeCreatePersistedStreamsGroup"))).
                visit(Advice.to(Heard.class).on(named("rescheduleClassicGroupMemberHeartbeat"))).
                visit(Advice.to(Decision.class).on(namedOneOf(
                    "consumerGroupHeartbeat", "shareGroupHeartbeat", "classicGroupJoin", "classicGroupSync",
                    "classicGroupHeartbeat", "classicGroupLeave", "describeGroups", "consumerGroupDescribe",
                    "shareGroupDescribe", "listGroups", "onLoaded", "onUnloaded", "streamsGroupHeartbeat",
                    "initializeShareGroupState", "uninitializeShareGroupState", "maybeCleanupShareGroupState",
                    "maybeDeleteGroup", "createGroupTombstoneRecordsAndCancelTimers", "prepareRebalance")))).
            type(namedOneOf(common + "MockCoordinatorTimer", common + "MockCoordinatorExecutor")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Decision.class).on(named("poll")))).
            type(named(here + "GroupMetadataManagerTestContext")).
            transform((builder, type, loader, module, domain) -> builder.visit(
                Advice.to(Settled.class).on(namedOneOf("commit", "rollback")))).
            type(named(here + "OffsetMetadataManager")).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(OffsetReplay.class).on(named("replay"))).
                visit(Advice.to(OffsetsMade.class).on(isConstructor())).
                visit(Advice.to(Marker.class).on(named("replayEndTransactionMarker"))).
                visit(Advice.to(Decision.class).on(namedOneOf(
                    "commitOffset", "commitTransactionalOffset", "deleteOffsets", "fetchOffsets", "fetchAllOffsets",
                    "deleteAllOffsets", "cleanupExpiredOffsets", "onTopicsDeleted")))).
            type(named(here + "OffsetMetadataManagerTest$OffsetMetadataManagerTestContext")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Settled.class).on(named("commit")))).
            type(named(here + "modern.consumer.ConsumerGroup")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Touch.class).on(named("updateMember")))).
            type(named(here + "GroupConfigManager")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Configured.class).on(named("updateGroupConfig")))).
            type(named(here + "modern.TargetAssignmentBuilder")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Assigns.class).on(isConstructor()))).
            type(named(here + "modern.consumer.TopicRegexResolver")).
            transform((builder, type, loader, module, domain) -> builder.visit(
                Advice.to(Filtered.class).on(named("filterTopicDescribeAuthorizedTopics")))).
            type(named("org.apache.kafka.common.Uuid")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Random.class).on(named("randomUuid")))).
            type(named(here + "classic.ClassicGroup")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Named.class).on(named("generateMemberId"))).visit(
                Advice.to(Touch.class).on(namedOneOf("add", "remove", "transitionTo", "initNextGeneration", "setProtocolName", "setSubscribedTopics")))).
            type(named(here + "modern.ModernGroup")).
            transform((builder, type, loader, module, domain) -> builder.visit(
                Advice.to(Touch.class).on(named("setMetadataRefreshDeadline")))).
            installOn(ByteBuddyAgent.install());
    }

    public static class Replay {
        @Advice.OnMethodEnter
        public static void enter() {
            deeper();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.This Object manager, @Advice.AllArguments Object[] arguments, @Advice.Thrown Throwable thrown) {
            replayed(manager, (ApiMessage) arguments[0], (ApiMessage) arguments[1], thrown == null);
        }
    }

    public static class Made {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager) {
            made(manager);
        }
    }

    public static class Image {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager) {
            image(manager);
        }
    }

    public static class Created {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager, @Advice.Origin("#m") String name, @Advice.Argument(0) String group) {
            touched(null, name, new Object[] {group});
        }
    }

    public static class Heard {
        @Advice.OnMethodExit
        public static void exit(@Advice.Argument(0) Object group, @Advice.Argument(1) Object member) {
            heard(group, member);
        }
    }

    public static class OffsetsMade {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager) {
            offsetsMade(manager);
        }
    }

    public static class OffsetReplay {
        @Advice.OnMethodEnter
        public static void enter() {
            deeper();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.This Object manager,
            @Advice.Argument(0) long offset,
            @Advice.Argument(1) long producer,
            @Advice.Argument(2) Object key,
            @Advice.Argument(3) Object value
        ) {
            offsetReplayed(manager, offset, producer, (ApiMessage) key, (ApiMessage) value);
        }
    }

    public static class Marker {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager, @Advice.Argument(0) long producer, @Advice.Argument(1) Object result) {
            ended(manager, producer, result);
        }
    }

    public static class Settled {
        @Advice.OnMethodEnter
        public static void enter(@Advice.Origin("#m") String name) {
            settled(name);
        }
    }

    public static class Configured {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object configs, @Advice.Argument(0) String group, @Advice.Argument(1) Object properties) {
            configured(configs, group, properties);
        }
    }

    public static class Random {
        @Advice.OnMethodExit
        public static void exit(@Advice.Return Object uuid) {
            drawn(uuid);
        }
    }

    public static class Named {
        @Advice.OnMethodExit
        public static void exit(@Advice.Return String member) {
            drawn(member.substring(member.length() - 36));
        }
    }

    public static class Assigns {
        @Advice.OnMethodExit
        public static void exit(@Advice.FieldValue(value = "assignor", readOnly = false) PartitionAssignor assignor) {
            assignor = new Shown(assignor);
        }
    }

    public static class Filtered {
        @Advice.OnMethodEnter
        public static String enter(@Advice.Argument(1) Map<String, Set<String>> found) {
            return names(found);
        }

        @Advice.OnMethodExit
        public static void exit(@Advice.Enter String before, @Advice.Argument(1) Map<String, Set<String>> found) {
            line("seen", before, names(found));
        }
    }

    /** An assignor whose assignments are written down. */
    public static final class Shown implements ConsumerGroupPartitionAssignor, ShareGroupPartitionAssignor {
        private final PartitionAssignor assignor;

        public Shown(PartitionAssignor assignor) {
            this.assignor = assignor;
        }

        @Override
        public String name() {
            return assignor.name();
        }

        @Override
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber describer) {
            GroupAssignment assigned = null;
            String failure = "";
            try {
                assigned = assignor.assign(spec, describer);
                return assigned;
            } catch (RuntimeException e) {
                failure = e.getMessage();
                throw e;
            } finally {
                assigned(spec, assigned, failure);
            }
        }
    }

    public static class Touch {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object group, @Advice.Origin("#m") String name, @Advice.AllArguments Object[] arguments) {
            touched(group, name, arguments);
        }
    }

    public static class Decision {
        @Advice.OnMethodEnter
        public static int enter(@Advice.This Object manager, @Advice.Origin("#m") String name, @Advice.AllArguments Object[] arguments) {
            return called(manager, name, arguments);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.Enter int call,
            @Advice.AllArguments Object[] arguments,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            ended(call, arguments, result, thrown);
        }
    }

    public static void deeper() {
        depth++;
    }

    public static void replayed(Object manager, ApiMessage key, ApiMessage value, boolean taken) {
        depth--;
        if (depth > 0 || !WORLDS.containsKey(manager)) return;
        line("replay", WORLDS.get(manager), record(key, value), taken, now());
    }

    public static void made(Object manager) {
        last = (GroupMetadataManager) manager;
        int world = WORLDS.size();
        for (String part : List.of("timer", "executor", "groupConfigManager")) WORLDS.put(field(manager, part), world);
        WORLDS.put(manager, world);
        GroupCoordinatorConfig config = (GroupCoordinatorConfig) field(manager, "config");
        StringJoiner shown = new StringJoiner("\t");
        Map.ofEntries(
            Map.entry("group_max_size", config.classicGroupMaxSize()),
            Map.entry("group_initial_rebalance_delay_ms", config.classicGroupInitialRebalanceDelayMs()),
            Map.entry("group_consumer_session_timeout_ms", config.consumerGroupSessionTimeoutMs()),
            Map.entry("group_consumer_min_session_timeout_ms", config.consumerGroupMinSessionTimeoutMs()),
            Map.entry("group_consumer_max_session_timeout_ms", config.consumerGroupMaxSessionTimeoutMs()),
            Map.entry("group_consumer_heartbeat_interval_ms", config.consumerGroupHeartbeatIntervalMs()),
            Map.entry("group_consumer_min_heartbeat_interval_ms", config.consumerGroupMinHeartbeatIntervalMs()),
            Map.entry("group_consumer_max_heartbeat_interval_ms", config.consumerGroupMaxHeartbeatIntervalMs()),
            Map.entry("group_consumer_assignment_interval_ms", config.consumerGroupAssignmentIntervalMs()),
            Map.entry("group_consumer_max_size", config.consumerGroupMaxSize()),
            Map.entry("group_consumer_regex_refresh_interval_ms", config.consumerGroupRegexRefreshIntervalMs()),
            Map.entry("group_consumer_migration_policy", config.consumerGroupMigrationPolicy()),
            Map.entry("group_share_session_timeout_ms", config.shareGroupSessionTimeoutMs()),
            Map.entry("group_share_min_session_timeout_ms", config.shareGroupMinSessionTimeoutMs()),
            Map.entry("group_share_max_session_timeout_ms", config.shareGroupMaxSessionTimeoutMs()),
            Map.entry("group_share_heartbeat_interval_ms", config.shareGroupHeartbeatIntervalMs()),
            Map.entry("group_share_min_heartbeat_interval_ms", config.shareGroupMinHeartbeatIntervalMs()),
            Map.entry("group_share_max_heartbeat_interval_ms", config.shareGroupMaxHeartbeatIntervalMs()),
            Map.entry("group_share_assignment_interval_ms", config.shareGroupAssignmentIntervalMs()),
            Map.entry("group_share_initialize_retry_interval_ms", config.shareGroupInitializeRetryIntervalMs()),
            Map.entry("group_share_max_size", config.shareGroupMaxSize()),
            Map.entry("offsets_commit_timeout_ms", config.offsetCommitTimeoutMs()),
            Map.entry("group_consumer_assignors", config.consumerGroupAssignors().stream().
                map(ConsumerGroupPartitionAssignor::name).collect(Collectors.joining(",")))
        ).forEach((key, value) -> shown.add(key + "=" + value));
        line("world", world, shown);
        image(manager);
    }

    public static void offsetsMade(Object manager) {
        Integer world = WORLDS.get(field(manager, "groupMetadataManager"));
        if (world == null) return;  // of a mock
        WORLDS.put(manager, world);
        GroupCoordinatorConfig config = (GroupCoordinatorConfig) field(manager, "config");
        line("offsets", world, config.offsetMetadataMaxSize(), config.offsetsRetentionMs() / 60_000);
    }

    public static void offsetReplayed(Object manager, long offset, long producer, ApiMessage key, ApiMessage value) {
        depth--;
        if (depth > 0 || !WORLDS.containsKey(manager)) return;
        line("offset", WORLDS.get(manager), offset, producer, record(key, value), now());
    }

    public static void ended(Object manager, long producer, Object result) {
        if (WORLDS.containsKey(manager)) line("marker", WORLDS.get(manager), producer, result);
    }

    private static String record(ApiMessage key, ApiMessage value) {
        boolean expires = value instanceof OffsetCommitValue offset && offset.expireTimestamp() != -1;  // which one version has
        short version = value == null ? 0 : expires ? 1 : value.highestSupportedVersion();
        ApiMessageAndVersion written = value == null ? null : new ApiMessageAndVersion(value, version);
        return hex(CoordinatorRecord.record(key, written));
    }

    public static void image(Object manager) {
        CoordinatorMetadataImage image = (CoordinatorMetadataImage) field(manager, "metadataImage");
        StringJoiner topics = new StringJoiner(" ");
        for (String name : image.topicNames()) {
            CoordinatorMetadataImage.TopicMetadata topic = image.topicMetadata(name).orElseThrow();
            StringJoiner racks = new StringJoiner("/");
            for (int index = 0; index < topic.partitionCount(); index++)
                racks.add("." + String.join("+", topic.partitionRacks(index)));
            topics.add(name + "," + topic.id() + "," + racks);
        }
        line("image", WORLDS.get(manager), image.version(), field(manager, "lastMetadataImageWithNewTopics"), topics);
    }

    public static void settled(String name) {
        if (last != null) line("settled", WORLDS.get(last), name);
    }

    public static void configured(Object configs, String group, Object properties) {
        if (WORLDS.containsKey(configs)) line("configs", WORLDS.get(configs), group, properties);
    }

    public static void drawn(Object uuid) {
        if (depth > 0) line("uuid", uuid);
    }

    public static String names(Map<String, Set<String>> found) {
        TreeSet<String> names = new TreeSet<>();
        found.values().forEach(names::addAll);
        return String.join(",", names);
    }

    private static void assigned(GroupSpec spec, GroupAssignment assigned, String failure) {
        TreeMap<String, String> members = new TreeMap<>(), targets = new TreeMap<>();
        for (String member : spec.memberIds()) {
            String topics = spec.memberSubscription(member).subscribedTopicIds().stream().map(Uuid::toString).sorted().collect(Collectors.joining(","));
            members.put(member, topics + "|" + partitions(spec.memberAssignment(member).partitions()));
        }
        if (assigned != null) assigned.members().forEach((member, target) -> targets.put(member, partitions(target.partitions())));
        line("assigned", spec.subscriptionType(), columns(members), assigned == null ? "null" : columns(targets), failure);
    }

    private static long now() {
        return ((Time) field(last, "time")).milliseconds();
    }

    private static String columns(Map<String, String> rows) {
        return rows.entrySet().stream().map(row -> row.getKey() + "|" + row.getValue()).collect(Collectors.joining(";"));
    }

    private static String partitions(Map<Uuid, ? extends Collection<Integer>> partitions) {
        TreeMap<String, String> rows = new TreeMap<>();
        partitions.forEach((topic, indexes) -> rows.put(topic.toString(),
            new TreeSet<>(indexes).stream().map(String::valueOf).collect(Collectors.joining("."))));
        return rows.entrySet().stream().map(row -> row.getKey() + ":" + row.getValue()).collect(Collectors.joining(","));
    }

    public static void touched(Object group, String name, Object[] arguments) {
        if (depth > 0 || last == null || isManagers(0)) return;
        int world = WORLDS.get(last);
        if (group == null) {
            line("touch", world, arguments[0], name, now());
        } else if (group instanceof ConsumerGroup consumers && arguments[0] instanceof ConsumerGroupMember member) {
            CoordinatorRecord said = GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord(consumers.groupId(), member);
            CoordinatorRecord has = GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord(consumers.groupId(), member);
            for (CoordinatorRecord record : List.of(said, has)) line("touch", world, consumers.groupId(), "replay", now(), hex(record));
        } else if (group instanceof ModernGroup<?> modern) {
            line("touch", world, modern.groupId(), name, now(), arguments[0], arguments[1]);
        } else if (group instanceof ClassicGroup classic) {
            Map<?, ?> groups = (Map<?, ?>) field(last, "groups");
            if (groups.get(classic.groupId()) != classic) return;  // it gets there by its record, if at all
            if (arguments.length > 0 && arguments[0] instanceof ClassicGroupMember member) {
                JoinGroupRequestData said = new JoinGroupRequestData().setGroupId(classic.groupId()).setMemberId(member.memberId()).
                    setGroupInstanceId(member.groupInstanceId().orElse(null)).setProtocolType(member.protocolType()).
                    setSessionTimeoutMs(member.sessionTimeoutMs()).setRebalanceTimeoutMs(member.rebalanceTimeoutMs()).
                    setProtocols(member.supportedProtocols().duplicate());
                if (arguments.length == 1) return;  // it has called the other overload
                line("touch", world, classic.groupId(), name, now(), hex(said), member.clientId(), member.clientHost(),
                    HexFormat.of().formatHex(member.assignment()), arguments[1] != null);
            } else {
                line("touch", world, classic.groupId(), name, now(), arguments.length == 0 ? "" : arguments[0]);
            }
        }
    }

    public static void heard(Object group, Object member) {
        if (depth == 0 && !isManagers(1)) line("touch", WORLDS.get(last), field(group, "groupId"), "heard", now(), field(member, "memberId"));
    }

    /** Whether the manager itself is at work, once records are appended, in more than so many calls of this. */
    private static boolean isManagers(int own) {
        String name = GroupMetadataManager.class.getName();
        return own < StackWalker.getInstance().walk(frames -> frames.filter(
            frame -> frame.getClassName().equals(name) && !frame.getMethodName().startsWith("getOrMaybeCreate")).count());
    }

    public static int called(Object manager, String name, Object[] arguments) {
        depth++;
        if (depth > 1 || !WORLDS.containsKey(manager) || isManagers(1)) return 0;
        int world = WORLDS.get(manager), call = ++number;
        if (manager instanceof MockCoordinatorTimer<?>) name = "timers";
        if (manager instanceof MockCoordinatorExecutor<?>) name = "tasks";
        TreeMap<String, Long> timers = new TreeMap<>();
        ((Map<?, ?>) field(field(last, "timer"), "timeoutMap")).forEach((key, timeout) ->
            timers.put((String) key, ((MockCoordinatorTimer.ScheduledTimeout<?>) timeout).deadlineMs()));
        StringJoiner scheduled = new StringJoiner("\t");
        timers.forEach((key, time) -> scheduled.add(key + "=" + time));
        line("timers", world, scheduled);
        StringJoiner shown = new StringJoiner("\t");
        for (Object argument : arguments) {
            if (argument instanceof CompletableFuture<?> future) future.whenComplete((answer, error) -> line(
                "answered", call, error == null ? hex((ApiMessage) answer) : Errors.forException(error).name()));
            else shown.add(argument(argument));
        }
        line("call", world, call, name, now(), shown);
        return call;
    }

    private static String argument(Object argument) {
        if (argument instanceof RequestContext context)
            return context.header.apiVersion() + "\t" + context.clientId() + "\t" + context.clientAddress;
        if (argument instanceof OffsetCommitRequestData request) return hex(request) + "," + request.retentionTimeMs();
        if (argument instanceof OffsetFetchRequestData.OffsetFetchRequestGroup group)
            return hex(new OffsetFetchRequestData().setGroups(List.of(group)));
        if (argument instanceof ApiMessage message) return hex(message);
        if (argument instanceof List<?> some && !some.isEmpty() && some.get(0) instanceof GroupCoordinatorShard.DeletedTopic)
            return some.stream().map(GroupCoordinatorShard.DeletedTopic.class::cast).map(one -> one.name() + "=" + one.id()).collect(Collectors.joining(","));
        if (argument instanceof Collection<?> some) return some.stream().map(String::valueOf).sorted().collect(Collectors.joining(","));
        if (argument instanceof Map<?, ?> some) return partitions(cast(some));
        return String.valueOf(argument);
    }

    public static void ended(int call, Object[] arguments, Object result, Throwable thrown) {
        depth--;
        if (call == 0) return;
        if (thrown != null) {
            line("refused", call, Errors.forException(thrown).name(), thrown.getMessage());
            return;
        }
        List<CoordinatorResult<?, CoordinatorRecord>> results = new ArrayList<>();
        if (result instanceof CoordinatorResult<?, ?> one) results.add(cast(one));
        if (result instanceof List<?> list) for (Object one : list) {
            if (one instanceof MockCoordinatorTimer.ExpiredTimeout<?> timeout) results.add(cast(timeout.result()));
            if (one instanceof MockCoordinatorExecutor.ExecutorResult<?> task) results.add(cast(task.result()));
        }
        Object answer = result;
        StringJoiner records = new StringJoiner(" ");
        boolean waits = false;
        for (CoordinatorResult<?, CoordinatorRecord> one : results) {
            answer = one.response();
            one.records().forEach(record -> records.add(hex(record)));
            waits |= one.appendFuture() != null;
        }
        if (result instanceof List<?> list)
            list.stream().filter(CoordinatorRecord.class::isInstance).forEach(record -> records.add(hex((CoordinatorRecord) record)));
        else if (arguments.length > 0 && arguments[arguments.length - 1] instanceof List<?> list)
            list.stream().filter(CoordinatorRecord.class::isInstance).forEach(record -> records.add(hex((CoordinatorRecord) record)));
        line("done", call, answer(answer, arguments), records, waits);
        for (CoordinatorResult<?, CoordinatorRecord> one : results)
            if (one.appendFuture() != null) one.appendFuture().whenComplete((none, error) ->
                line("appended", call, error == null ? "NONE" : Errors.forException(error).name(), now()));
    }

    @SuppressWarnings("unchecked")
    private static Map<Uuid, Collection<Integer>> cast(Map<?, ?> partitions) {
        return (Map<Uuid, Collection<Integer>>) partitions;
    }

    @SuppressWarnings("unchecked")
    private static CoordinatorResult<?, CoordinatorRecord> cast(CoordinatorResult<?, ?> result) {
        return (CoordinatorResult<?, CoordinatorRecord>) result;
    }

    private static String answer(Object answer, Object[] arguments) {
        if (answer instanceof ApiMessage message) return hex(message);
        if (answer instanceof OffsetFetchResponseData.OffsetFetchResponseGroup group)
            return hex(new OffsetFetchResponseData().setGroups(List.of(group)));
        if (answer instanceof Map.Entry<?, ?> pair && pair.getKey() instanceof ApiMessage message) {
            String begun = "";
            if (pair.getValue() instanceof Optional<?> some && some.orElse(null) instanceof InitializeShareGroupStateParameters asked)
                begun = asked.groupTopicPartitionData().topicsData().stream().map(topic -> topic.topicId() + ":" + topic.partitions().stream().
                    map(one -> one.partition() + "@" + one.stateEpoch()).sorted().collect(Collectors.joining("."))).sorted().collect(Collectors.joining(","));
            return hex(message) + " " + begun;
        }
        if (answer instanceof List<?> rows && !rows.isEmpty()) {
            if (rows.get(0) instanceof DescribeGroupsResponseData.DescribedGroup) {
                DescribeGroupsResponseData all = new DescribeGroupsResponseData();
                rows.forEach(row -> all.groups().add((DescribeGroupsResponseData.DescribedGroup) row));
                return hex(all);
            }
            if (rows.get(0) instanceof ConsumerGroupDescribeResponseData.DescribedGroup) {
                ConsumerGroupDescribeResponseData all = new ConsumerGroupDescribeResponseData();
                rows.forEach(row -> all.groups().add((ConsumerGroupDescribeResponseData.DescribedGroup) row));
                return hex(all);
            }
            if (rows.get(0) instanceof ShareGroupDescribeResponseData.DescribedGroup) {
                ShareGroupDescribeResponseData all = new ShareGroupDescribeResponseData();
                rows.forEach(row -> all.groups().add((ShareGroupDescribeResponseData.DescribedGroup) row));
                return hex(all);
            }
            if (rows.get(0) instanceof ListGroupsResponseData.ListedGroup) {
                ListGroupsResponseData all = new ListGroupsResponseData();
                rows.forEach(row -> all.groups().add((ListGroupsResponseData.ListedGroup) row));
                return hex(all);
            }
        }
        return String.valueOf(answer);
    }

    private static String hex(ApiMessage message) {
        try {
            String newest = hex(message, message.highestSupportedVersion());
            boolean hasTwo = message.apiKey() == ApiKeys.OFFSET_COMMIT.id || message.apiKey() == ApiKeys.OFFSET_FETCH.id;
            return "x" + newest + (hasTwo ? "," + hex(message, (short) 9) : "");  // that has names in place of ids of topics
        } catch (RuntimeException e) {
            return "unwritable";  // a test may make a message that has no form
        }
    }

    private static String hex(ApiMessage message, short version) {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HexFormat.of().formatHex(copy);
    }

    private static String hex(CoordinatorRecord record) {
        byte[] value = SERDE.serializeValue(record);
        String key = HexFormat.of().formatHex(SERDE.serializeKey(record));
        return value == null ? key + ":" : key + ":" + HexFormat.of().formatHex(value);
    }
}
