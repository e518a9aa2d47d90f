package org.apache.kafka.coordinator.group;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.NotLeaderOrFollowerException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorTimer;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

import java.net.InetAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

import static kraftd.Suite.field;
import static kraftd.Suite.line;

/** Asks Kafka's manager of groups for random things, while the agent of GroupDecisions writes down what it decides. */
public class RandomGroups {
    private static final List<String> TOPICS = List.of("a", "b", "c"), GROUPS = List.of("g1", "g2"), INSTANCES = List.of("i1", "i2");
    private static final List<String> PATTERNS = List.of("a|b", "b.*", "[a-c]", "(", "z");
    private static final int STEPS = 120;

    private final Random random;
    private final GroupMetadataManagerTestContext context;
    private final OffsetMetadataManager offsets;
    private final Map<String, Integer> partitions = new HashMap<>();
    private final Map<String, Integer> deleted = new HashMap<>();  // how often
    private final Map<String, List<String>> classicMembers = new HashMap<>();
    private final Map<String, Integer> epochs = new HashMap<>();
    private final Map<String, List<ConsumerGroupHeartbeatResponseData.TopicPartitions>> owned = new HashMap<>();
    private final Deque<CompletableFuture<Void>> appends = new ArrayDeque<>();
    private final Set<CompletableFuture<Void>> mayFail = new HashSet<>();
    private MetadataImage image = MetadataImage.EMPTY;
    private long version = 0;

    /** The arguments are the first seed, and how many. */
    public static void main(String[] numbers) {
        System.setOut(System.out);
        GroupDecisions.install();
        long first = Long.parseLong(numbers[0]), count = Long.parseLong(numbers[1]);
        for (long seed = first; seed < first + count; seed++) {
            line("test", "RandomGroups.seed" + seed);
            new RandomGroups(seed).run();
            line("ended", "SUCCESSFUL");
        }
    }

    private RandomGroups(long seed) {
        random = new Random(seed);
        for (String topic : TOPICS) partitions.put(topic, 0);
        MetadataDelta delta = delta("a", 3);
        change(delta, "b", 2);
        image = delta.apply(new MetadataProvenance(++version, 0, 0L, true));
        context = new GroupMetadataManagerTestContext.Builder().
            withConfig(GroupCoordinatorConfig.CONSUMER_GROUP_ASSIGNORS_CONFIG, List.of(new UniformAssignor(), new RangeAssignor())).
            withConfig(GroupCoordinatorConfig.CONSUMER_GROUP_MIGRATION_POLICY_CONFIG, pick("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled")).
            withConfig(GroupCoordinatorConfig.GROUP_MAX_SIZE_CONFIG, pick(100, 100, 2)).
            withConfig(GroupCoordinatorConfig.CONSUMER_GROUP_MAX_SIZE_CONFIG, pick(100, 100, 2)).
            withConfig(GroupCoordinatorConfig.CONSUMER_GROUP_ASSIGNMENT_INTERVAL_MS_CONFIG, pick(0, 0, 1000)).
            withMetadataImage(new KRaftCoordinatorMetadataImage(image)).
            withShareGroupAssignor(new SimpleAssignor()).
            build();
        offsets = new OffsetMetadataManager.Builder().
            withTime(context.time).
            withLogContext(new LogContext()).
            withSnapshotRegistry(context.snapshotRegistry).
            withMetadataImage(new KRaftCoordinatorMetadataImage(image)).
            withGroupMetadataManager(context.groupMetadataManager).
            withGroupCoordinatorConfig(GroupCoordinatorConfigTest.createGroupCoordinatorConfig(12, 60000L, 1)).
            withGroupCoordinatorMetricsShard(context.metrics).
            build();
    }

    @SafeVarargs
    private <T> T pick(T... some) {
        return some[random.nextInt(some.length)];
    }

    private <T> T pick(List<T> some) {
        return some.get(random.nextInt(some.size()));
    }

    private <T> List<T> several(List<T> some) {
        return some.stream().filter(one -> random.nextBoolean()).toList();
    }

    private Uuid id(String topic) {
        return new Uuid(1 + deleted.getOrDefault(topic, 0), topic.charAt(0));
    }

    // The metadata

    private MetadataDelta delta(String topic, int count) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        change(delta, topic, count);
        return delta;
    }

    private void change(MetadataDelta delta, String topic, int count) {
        int before = partitions.get(topic);
        if (count == 0) {
            delta.replay(new RemoveTopicRecord().setTopicId(id(topic)));
            deleted.merge(topic, 1, Integer::sum);
        }
        if (count > 0 && before == 0) delta.replay(new TopicRecord().setTopicId(id(topic)).setName(topic));
        for (int index = before; index < count; index++)
            delta.replay(new PartitionRecord().setTopicId(id(topic)).setPartitionId(index).setReplicas(List.of(0, 1)));
        partitions.put(topic, count);
    }

    private void changeTopics() {
        String topic = pick(TOPICS);
        int count = partitions.get(topic) == 0 || random.nextInt(3) > 0 ? partitions.get(topic) + 1 + random.nextInt(2) : 0;
        if (count > 8) return;
        Uuid gone = id(topic);
        MetadataDelta delta = delta(topic, count);
        image = delta.apply(new MetadataProvenance(++version, 0, 0L, true));
        context.groupMetadataManager.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
        offsets.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
        if (count == 0) replayOffsets(-1, offsets.onTopicsDeleted(List.of(new GroupCoordinatorShard.DeletedTopic(gone, topic))));
    }

    // Requests

    private void run() {
        for (int step = 0; step < STEPS; step++) {
            try {
                context.time.sleep(1);
                step();
            } catch (RuntimeException e) {
                tasks();  // the step is written as a refusal
                continue;
            }
            tasks();
            while (!appends.isEmpty() && random.nextInt(5) > 0) complete(appends.poll());
        }
        while (!appends.isEmpty()) complete(appends.poll());
        context.sleep(1);
    }

    private void step() {
        switch (random.nextInt(30)) {
            case 0, 1, 2, 3, 4 -> join();
            case 5, 6, 7 -> sync();
            case 8, 9 -> heartbeat();
            case 10 -> leave();
            case 11, 12, 13, 14, 15 -> consumerHeartbeat();
            case 16, 17 -> shareHeartbeat();
            case 18, 19 -> sleep(pick(100, 1000, 3000, 6000, 20000));
            case 20 -> changeTopics();
            case 21, 22, 23 -> commitOffsets();
            case 24, 25 -> sendOffsets();
            case 26 -> endTransaction();
            case 27 -> fetchOffsets();
            case 28 -> removeOffsets();
            default -> describe();
        }
    }

    /** Let one deadline after the other come. */
    private void sleep(long ms) {
        long end = context.time.milliseconds() + ms;
        while (context.time.milliseconds() < end) {
            long next = end;
            for (Object timeout : ((Map<?, ?>) field(context.timer, "timeoutMap")).values())
                next = Math.min(next, ((MockCoordinatorTimer.ScheduledTimeout<?>) timeout).deadlineMs());
            for (MockCoordinatorTimer.ExpiredTimeout<CoordinatorRecord> one : context.sleep(Math.max(1, next - context.time.milliseconds())))
                if (one.result().appendFuture() != null) complete(one.result().appendFuture());
        }
    }

    private void tasks() {
        if (context.executor.size() > 0) context.processTasks();
    }

    /** An append may fail if nothing has to be taken back then, which the context does not do. */
    private void complete(CompletableFuture<Void> append) {
        if (append.isDone()) return;
        if (mayFail.contains(append) && random.nextInt(10) == 0) append.completeExceptionally(new NotLeaderOrFollowerException());
        else append.complete(null);
    }

    private String classicMember(String group) {
        List<String> known = classicMembers.computeIfAbsent(group, none -> new ArrayList<>());
        return known.isEmpty() || random.nextInt(12) == 0 ? "nobody" : pick(known);
    }

    /** Whether Kafka forgets the group if a member joins with an id (docs/divergence.md). */
    private boolean isEmptyConsumers(String group) {
        return ((Map<?, ?>) field(context.groupMetadataManager, "groups")).get(group) instanceof ConsumerGroup consumers && consumers.isEmpty();
    }

    private String instance() {
        return random.nextInt(4) == 0 ? pick(INSTANCES) : null;
    }

    private JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols(String member) {
        List<TopicPartition> had = new ArrayList<>();
        for (String topic : several(TOPICS)) if (partitions.get(topic) > 0) had.add(new TopicPartition(topic, random.nextInt(partitions.get(topic))));
        byte[] said = ConsumerProtocol.serializeSubscription(
            new ConsumerPartitionAssignor.Subscription(several(TOPICS), null, random.nextBoolean() ? List.of() : had), (short) pick(1, 2, 3).intValue()).array();
        JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestData.JoinGroupRequestProtocolCollection();
        for (String name : pick(List.of("range"), List.of("range", "roundrobin"), List.of("roundrobin", "range"), List.of("roundrobin")))
            protocols.add(new JoinGroupRequestData.JoinGroupRequestProtocol().setName(name).setMetadata(said));
        return protocols;
    }

    private void join() {
        String group = pick(GROUPS);
        String member = random.nextBoolean() || isEmptyConsumers(group) ? "" : classicMember(group);
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(group).setMemberId(member).setGroupInstanceId(instance()).
            setProtocolType(random.nextInt(20) == 0 ? "connect" : "consumer").setProtocols(protocols(member)).
            setSessionTimeoutMs(5000).setRebalanceTimeoutMs(pick(5003, 10007));  // at other times than sessions end
        boolean isNew = random.nextInt(4) > 0;
        GroupMetadataManagerTestContext.JoinResult result = context.sendClassicGroupJoin(request, isNew, isNew && random.nextBoolean());
        result.joinFuture.whenComplete((answer, error) -> joined(group, answer));
        if (result.records.size() == 1 && result.records.get(0).value() != null &&
            result.records.get(0).value().message() instanceof GroupMetadataValue value && !value.members().isEmpty()) mayFail.add(result.appendFuture);
        if (result.appendFuture != null) appends.add(result.appendFuture);
    }

    private void joined(String group, JoinGroupResponseData answer) {
        if (answer == null || answer.memberId().isEmpty()) return;
        List<String> known = classicMembers.computeIfAbsent(group, none -> new ArrayList<>());
        if (!known.contains(answer.memberId())) known.add(answer.memberId());
        if (known.size() > 5) known.remove(0);
        epochs.put(answer.memberId(), answer.generationId());
    }

    private int epoch(String member) {
        return random.nextInt(15) == 0 ? random.nextInt(5) : epochs.getOrDefault(member, 1);
    }

    private void sync() {
        String group = pick(GROUPS), member = classicMember(group);
        List<SyncGroupRequestData.SyncGroupRequestAssignment> assigned = classicMembers.get(group).stream().map(one ->
            new SyncGroupRequestData.SyncGroupRequestAssignment().setMemberId(one).setAssignment(ConsumerProtocol.serializeAssignment(
                new ConsumerPartitionAssignor.Assignment(List.of(new TopicPartition("a", random.nextInt(3))))).array())).toList();
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(group).setMemberId(member).setGenerationId(epoch(member)).
            setGroupInstanceId(random.nextInt(6) == 0 ? instance() : null).setProtocolType("consumer").
            setProtocolName(random.nextInt(3) == 0 ? pick("range", "roundrobin") : null).setAssignments(assigned);
        GroupMetadataManagerTestContext.SyncResult result = context.sendClassicGroupSync(request);
        mayFail.add(result.appendFuture);
        if (result.appendFuture != null) appends.add(result.appendFuture);
    }

    private void heartbeat() {
        String group = pick(GROUPS), member = classicMember(group);
        context.sendClassicGroupHeartbeat(new HeartbeatRequestData().setGroupId(group).setMemberId(member).setGenerationId(epoch(member)).
            setGroupInstanceId(random.nextInt(6) == 0 ? instance() : null));
    }

    private void leave() {
        String group = pick(GROUPS);
        List<LeaveGroupRequestData.MemberIdentity> leaving = new ArrayList<>();
        for (int number = 0; number <= random.nextInt(2); number++) {
            String instance = instance();
            leaving.add(new LeaveGroupRequestData.MemberIdentity().setMemberId(instance != null && random.nextBoolean() ? "" : classicMember(group)).
                setGroupInstanceId(instance));
        }
        CoordinatorResult<?, CoordinatorRecord> result =
            context.sendClassicGroupLeave(new LeaveGroupRequestData().setGroupId(group).setMembers(leaving));
        if (result.replayRecords()) result.records().forEach(context::replay);
        if (result.appendFuture() != null) appends.add(result.appendFuture());
    }

    private void consumerHeartbeat() {
        String group = pick(GROUPS), member = pick("m1", "m2", "m3", "m4");
        int epoch = random.nextInt(8) == 0 ? pick(0, -1, -2, 1, 7) : epochs.getOrDefault(group + member, 0);
        boolean isFull = epoch == 0 || random.nextInt(6) == 0;
        String instance = member.equals("m4") ? "i1" : random.nextInt(15) == 0 ? pick(INSTANCES) : null;
        List<ConsumerGroupHeartbeatRequestData.TopicPartitions> has = new ArrayList<>();
        for (ConsumerGroupHeartbeatResponseData.TopicPartitions one : owned.getOrDefault(group + member, List.of()))
            has.add(new ConsumerGroupHeartbeatRequestData.TopicPartitions().setTopicId(one.topicId()).setPartitions(one.partitions()));
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData().setGroupId(group).setMemberId(member).
            setMemberEpoch(epoch).setInstanceId(instance).setRackId(random.nextInt(10) == 0 ? "r" : null).
            setRebalanceTimeoutMs(isFull ? pick(5000, 8000) : -1).
            setServerAssignor(random.nextInt(6) == 0 ? pick("range", "uniform") : null).
            setSubscribedTopicNames(isFull || random.nextInt(10) == 0 ? several(TOPICS) : null).
            setSubscribedTopicRegex(random.nextInt(5) == 0 ? pick(PATTERNS) : random.nextInt(12) == 0 ? "" : null).
            setTopicPartitions(epoch == 0 ? List.of() : isFull || random.nextInt(3) > 0 ? has : null);
        CoordinatorResult<ConsumerGroupHeartbeatResponseData, CoordinatorRecord> result;
        try {
            result = context.consumerGroupHeartbeat(request, (short) 1);
        } catch (RuntimeException e) {
            epochs.remove(group + member);
            throw e;
        }
        epochs.put(group + member, Math.max(0, result.response().memberEpoch()));
        if (result.response().assignment() != null) owned.put(group + member, result.response().assignment().topicPartitions());
        if (epoch <= 0) owned.computeIfAbsent(group + member, none -> List.of());
        if (result.appendFuture() != null) appends.add(result.appendFuture());
    }

    private void shareHeartbeat() {
        String member = pick("s1", "s2", "s3"), group = random.nextInt(30) == 0 ? "g1" : "sg";
        int epoch = random.nextInt(8) == 0 ? pick(0, -1, 1, 7) : epochs.getOrDefault(member, 0);
        try {
            var result = context.shareGroupHeartbeat(new ShareGroupHeartbeatRequestData().setGroupId(group).
                setMemberId(member).setMemberEpoch(epoch).setSubscribedTopicNames(epoch == 0 || random.nextInt(8) == 0 ? several(TOPICS) : null));
            epochs.put(member, Math.max(0, result.response().getKey().memberEpoch()));
            result.response().getValue().ifPresent(asked -> {
                Map<Uuid, Set<Integer>> begun = new HashMap<>();
                asked.groupTopicPartitionData().topicsData().forEach(topic -> topic.partitions().forEach(
                    one -> begun.computeIfAbsent(topic.topicId(), none -> new HashSet<>()).add(one.partition())));
                if (random.nextInt(5) == 0) context.groupMetadataManager.uninitializeShareGroupState(group, begun).records().forEach(context::replay);
                else context.groupMetadataManager.initializeShareGroupState(group, begun).records().forEach(context::replay);
            });
        } catch (RuntimeException e) {
            epochs.remove(member);
        }
    }

    // Offsets

    private RequestContext caller(ApiKeys api, int version) {
        return new RequestContext(new RequestHeader(api, (short) version, "client", 0), "1", InetAddress.getLoopbackAddress(),
            KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY, false);
    }

    private void replayOffsets(long producer, List<CoordinatorRecord> records) {
        for (CoordinatorRecord record : records) {
            OffsetCommitValue value = record.value() == null ? null : (OffsetCommitValue) record.value().message();
            offsets.replay(context.lastWrittenOffset, producer, (OffsetCommitKey) record.key(), value);
            written();
        }
    }

    private void written() {
        context.snapshotRegistry.idempotentCreateSnapshot(++context.lastWrittenOffset);
    }

    private String offsetsGroup() {
        return pick("g1", "g2", "g1", "g2", "alone", "sg");
    }

    /** A member of a group, with the epoch that it has or another. */
    private Map.Entry<String, Integer> member(String group) {
        String member = random.nextInt(4) == 0 ? "" : random.nextBoolean() ? classicMember(group) : pick("m1", "m2", "m3", "m4");
        int epoch = member.startsWith("m") ? epochs.getOrDefault(group + member, 0) : epoch(member);
        return Map.entry(member, member.isEmpty() && random.nextInt(6) > 0 ? -1 : random.nextInt(8) == 0 ? pick(-1, 1, 3) : epoch);
    }

    private void commitOffsets() {
        String group = offsetsGroup();
        Map.Entry<String, Integer> member = member(group);
        boolean expires = random.nextInt(6) == 0;  // then the record has no more fields than of that version
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group).setMemberId(member.getKey()).
            setGenerationIdOrMemberEpoch(member.getValue()).setGroupInstanceId(random.nextInt(10) == 0 ? instance() : null).
            setRetentionTimeMs(expires ? 30_000 : -1);
        for (String topic : several(TOPICS)) request.topics().add(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(topic).
            setTopicId(!expires && random.nextBoolean() ? id(topic) : Uuid.ZERO_UUID).setPartitions(List.of(
                new OffsetCommitRequestData.OffsetCommitRequestPartition().setPartitionIndex(random.nextInt(3)).setCommittedOffset(random.nextInt(100)).
                    setCommittedLeaderEpoch(expires ? -1 : pick(-1, 2)).setCommittedMetadata(pick("", "m", null, "longer than it may be")))));
        replayOffsets(-1, offsets.commitOffset(caller(ApiKeys.OFFSET_COMMIT, pick(8, 9, 10)), request).records());
    }

    private void sendOffsets() {
        String group = offsetsGroup();
        Map.Entry<String, Integer> member = member(group);
        long producer = pick(10L, 11L);
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setGroupId(group).setTransactionalId("t" + producer).
            setProducerId(producer).setProducerEpoch((short) 0).setMemberId(member.getKey()).setGenerationId(member.getValue()).
            setGroupInstanceId(random.nextInt(10) == 0 ? instance() : null);
        for (String topic : several(TOPICS)) if (partitions.get(topic) > 0) request.topics().add(
            new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic().setName(topic).setPartitions(List.of(
                new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition().setPartitionIndex(random.nextInt(3)).
                    setCommittedOffset(random.nextInt(100)).setCommittedMetadata(pick("", "m", "longer than it may be")))));
        replayOffsets(producer, offsets.commitTransactionalOffset(caller(ApiKeys.TXN_OFFSET_COMMIT, pick(3, 5)), request).records());
    }

    private void endTransaction() {
        offsets.replayEndTransactionMarker(pick(10L, 11L), pick(TransactionResult.COMMIT, TransactionResult.ABORT));
        written();
    }

    private void fetchOffsets() {
        if (random.nextBoolean()) context.commit();
        Map.Entry<String, Integer> member = random.nextBoolean() ? null : member("g1");
        OffsetFetchRequestData.OffsetFetchRequestGroup request = new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(offsetsGroup()).
            setMemberId(member == null ? null : member.getKey()).setMemberEpoch(member == null ? -1 : member.getValue()).setTopics(
                TOPICS.stream().map(topic -> new OffsetFetchRequestData.OffsetFetchRequestTopics().setName(topic).
                    setTopicId(random.nextBoolean() ? id(topic) : Uuid.ZERO_UUID).setPartitionIndexes(List.of(0, 1, 2))).toList());
        long committed = random.nextBoolean() ? Long.MAX_VALUE : context.lastCommittedOffset;
        if (random.nextBoolean()) offsets.fetchOffsets(request, committed);
        else offsets.fetchAllOffsets(request, committed);
    }

    private void removeOffsets() {
        String group = offsetsGroup();
        List<CoordinatorRecord> records = new ArrayList<>();
        switch (random.nextInt(3)) {
            case 0 -> {
                OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection topics = new OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection();
                for (String topic : several(TOPICS)) topics.add(new OffsetDeleteRequestData.OffsetDeleteRequestTopic().setName(topic).
                    setPartitions(List.of(new OffsetDeleteRequestData.OffsetDeleteRequestPartition().setPartitionIndex(random.nextInt(3)))));
                replayOffsets(-1, offsets.deleteOffsets(new OffsetDeleteRequestData().setGroupId(group).setTopics(topics)).records());
            }
            case 1 -> {
                if (group.equals("sg")) return;  // its offsets, of which there are none, do not expire
                context.groupMetadataManager.group(group);
                offsets.cleanupExpiredOffsets(group, records);
                replayOffsets(-1, records);
            }
            default -> {
                if (group.equals("sg")) return;
                context.groupMetadataManager.group(group).validateDeleteGroup();
                offsets.deleteAllOffsets(group, records);
                replayOffsets(-1, records);
                List<CoordinatorRecord> last = new ArrayList<>();
                context.groupMetadataManager.createGroupTombstoneRecordsAndCancelTimers(group, last);
                last.forEach(context::replay);
            }
        }
    }

    private void describe() {
        context.commit();
        switch (random.nextInt(4)) {
            case 0 -> context.sendListGroups(List.of(), List.of());
            case 1 -> context.describeGroups(GROUPS);
            case 2 -> context.sendConsumerGroupDescribe(GROUPS);
            default -> context.sendShareGroupDescribe(List.of("sg", "g1"));
        }
    }
}
