package kafka.coordinator.transaction;

import kafka.server.ReplicaManager;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.ProducerIdAndEpoch;
import org.apache.kafka.coordinator.transaction.ProducerIdManager;
import org.apache.kafka.coordinator.transaction.TransactionMetadata;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.common.FinalizedFeatures;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import org.mockito.Mockito;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

import scala.Function1;
import scala.Option;
import scala.runtime.BoxedUnit;

import static kraftd.Suite.field;
import static kraftd.Suite.line;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.anyShort;

/**
 * Asks Kafka's transaction coordinator for random things, and writes what it answers and what it has in memory.
 *
 * A step is a line "op NAME NOW ARGUMENT...", then "pid ID" for each producer id taken, "answer STEP ERROR ID EPOCH" for each
 * answer, "state ID ..." for each transactional id, and "done". Records are written, or fail, when a step "settle" says so.
 */
public final class RandomTransactions {
    private static final List<String> IDS = List.of("a", "b", "c");
    private static final int STEPS = 150, EXPIRATION_MS = 1_000_000, MAX_TIMEOUT_MS = 900_000;
    private static final List<Errors> FAILURES = List.of(
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Errors.REQUEST_TIMED_OUT, Errors.NOT_ENOUGH_REPLICAS, Errors.UNKNOWN_TOPIC_OR_PARTITION);

    private record Append(Function1<Map<TopicIdPartition, PartitionResponse>, BoxedUnit> callback, MemoryRecords records) {
    }

    private record Completion(TransactionMetadata metadata, TxnTransitMetadata next, int epoch) {
    }

    private final Random random;
    private final MockTime time = new MockTime();
    private final TopicIdPartition partition = new TopicIdPartition(Uuid.ONE_UUID, new TopicPartition("__transaction_state", 0));
    private final Map<String, Completion> markers = new TreeMap<>();
    private final List<Completion> again = new ArrayList<>();
    private final List<SimpleRecord> log = new ArrayList<>();
    private final TransactionStateManager states;
    private final TransactionCoordinator coordinator;
    private List<Append> appends = new ArrayList<>();
    private long lastId = 1000;
    private boolean hasIds = true;
    private short level;
    private int completing = 0;
    private int epoch = 1;
    private boolean isElected = true;
    private int step = 0;

    /** The arguments are seeds. */
    public static void main(String[] seeds) {
        for (String seed : seeds) {
            line("world", seed);
            new RandomTransactions(Long.parseLong(seed)).run();
        }
        System.exit(0);
    }

    private RandomTransactions(long seed) {
        random = new Random(seed);
        level = (short) random.nextInt(3);
        ReplicaManager replicas = Mockito.mock(ReplicaManager.class, Mockito.withSettings().stubOnly());
        Mockito.when(replicas.topicIdPartition(any())).thenReturn(partition);
        Mockito.when(replicas.getLogConfig(any())).thenReturn(Option.apply(new LogConfig(new Properties())));
        Mockito.doAnswer(asked -> {
            scala.collection.Map<TopicIdPartition, MemoryRecords> records = asked.getArgument(4);
            appends.add(new Append(asked.getArgument(5), records.apply(partition)));
            return null;
        }).when(replicas).appendRecords(
            anyLong(), anyShort(), anyBoolean(), any(), any(), any(), any(), any(), any(), anyShort());
        Mockito.when(replicas.getLogEndOffset(any())).thenAnswer(asked -> Option.apply((long) log.size()));
        Mockito.when(replicas.getLog(any())).thenAnswer(asked -> Option.apply(written()));
        MetadataCache cache = Mockito.mock(MetadataCache.class, Mockito.withSettings().stubOnly());
        Mockito.when(cache.features()).thenAnswer(asked -> new FinalizedFeatures(
            MetadataVersion.latestProduction(), Map.of(TransactionVersion.FEATURE_NAME, level), 0));
        TransactionConfig config = new TransactionConfig(
            EXPIRATION_MS, MAX_TIMEOUT_MS, 1, (short) 1, 1 << 20, 1 << 20, 1, 1, 1, random.nextBoolean(), 30_000);
        Scheduler scheduler = Mockito.mock(Scheduler.class);
        Mockito.when(scheduler.scheduleOnce(any(), any())).thenAnswer(asked -> {
            ((Runnable) asked.getArgument(1)).run();
            return null;
        });
        states = new TransactionStateManager(0, scheduler, replicas, cache, config, time, new Metrics());
        states.startup(() -> 1, false);
        states.addLoadedTransactionsToCache(0, 1, new ConcurrentHashMap<>());
        ProducerIdManager ids = () -> {
            if (!hasIds) throw Errors.COORDINATOR_LOAD_IN_PROGRESS.exception();
            line("pid", ++lastId);
            return lastId;
        };
        TransactionMarkerChannelManager channels =
            Mockito.mock(TransactionMarkerChannelManager.class, Mockito.withSettings().stubOnly());
        Mockito.doAnswer(asked -> {
            TransactionMetadata metadata = asked.getArgument(2);
            Completion completion = new Completion(metadata, asked.getArgument(3), asked.getArgument(0));
            if (metadata.topicPartitions().isEmpty()) complete(completion);
            else markers.put(metadata.transactionalId(), completion);
            return null;
        }).when(channels).addTxnMarkersToSend(anyInt(), any(), any(), any());
        coordinator = new TransactionCoordinator(
            config, scheduler, () -> ids, states, channels, time, new LogContext());
        line("config", level, config.transaction2PCEnable());
    }

    private void run() {
        for (step = 0; step < STEPS; step++) {
            one();
            if (random.nextInt(100) < 55 && !appends.isEmpty()) settle();
        }
    }

    // --- steps ---

    private void one() {
        if (!isElected && random.nextBoolean()) elect();
        switch (random.nextInt(25)) {
            case 0, 1, 2, 3, 4 -> init();
            case 5, 6, 7, 8, 9 -> add();
            case 10, 11, 12, 13, 14, 15 -> end();
            case 16, 17, 18 -> write();
            case 19 -> verify();
            case 20 -> retry();
            case 21 -> pass();
            case 22 -> turn();
            case 23 -> {
                if (isElected && random.nextBoolean()) resign();
            }
            default -> change();
        }
    }

    private void init() {
        String id = pick(IDS);
        TransactionMetadata known = known(id);
        boolean expects = random.nextInt(5) < 2;
        ProducerIdAndEpoch who = expects ? producer(known) : new ProducerIdAndEpoch(-1, (short) -1);
        if (who.epoch < 0 || who.producerId < 0) who = new ProducerIdAndEpoch(-1, (short) -1);
        int timeout = pick(List.of(60_000, 60_000, 5_000, 5_000, MAX_TIMEOUT_MS, 0, MAX_TIMEOUT_MS + 1));
        boolean twoPhases = random.nextInt(12) == 0, keeps = random.nextInt(40) == 0;
        op("init", id, timeout, who.producerId, who.epoch, twoPhases, keeps);
        int number = step;
        Option<ProducerIdAndEpoch> expected = who.producerId < 0 ? Option.empty() : Option.apply(who);
        safely(number, () -> coordinator.handleInitProducerId(id, timeout, twoPhases, keeps, expected, result -> {
            line("answer", number, result.error(), result.producerId(), result.producerEpoch());
            return BoxedUnit.UNIT;
        }, RequestLocal.noCaching()));
        done();
    }

    private void add() {
        String id = pick(IDS);
        ProducerIdAndEpoch who = producer(known(id));
        Set<TopicPartition> places = places();
        int version = level == 2 && random.nextInt(4) > 0 ? 2 : 0;
        op("add", id, who.producerId, who.epoch, shown(places), version);
        int number = step;
        safely(number, () -> coordinator.handleAddPartitionsToTransaction(id, who.producerId, who.epoch, places, error -> {
            line("answer", number, error, -1, -1);
            return BoxedUnit.UNIT;
        }, TransactionVersion.fromFeatureLevel((short) version), RequestLocal.noCaching()));
        done();
    }

    private void end() {
        String id = pick(IDS);
        ProducerIdAndEpoch who = producer(known(id));
        boolean commits = random.nextInt(3) > 0;
        int version = level == 2 && random.nextInt(6) > 0 ? 2 : 0;
        op("end", id, who.producerId, who.epoch, commits, version);
        int number = step;
        safely(number, () -> coordinator.handleEndTransaction(id, who.producerId, who.epoch,
            commits ? TransactionResult.COMMIT : TransactionResult.ABORT, TransactionVersion.fromFeatureLevel((short) version),
            (error, producerId, epoch) -> {
                line("answer", number, error, producerId, epoch);
                return BoxedUnit.UNIT;
            }, RequestLocal.noCaching()));
        done();
    }

    private void verify() {
        String id = pick(IDS);
        ProducerIdAndEpoch who = producer(known(id));
        Set<TopicPartition> places = places();
        op("verify", id, who.producerId, who.epoch, shown(places));
        int number = step;
        coordinator.handleVerifyPartitionsInTransaction(id, who.producerId, who.epoch, places, result -> {
            Map<Integer, Short> errors = new TreeMap<>();
            result.topicResults().forEach(topic -> topic.resultsByPartition().forEach(
                one -> errors.put(one.partitionIndex(), one.partitionErrorCode())));
            line("answer", number, errors.entrySet().stream().map(one -> one.getKey() + ":" + one.getValue()).collect(Collectors.joining(",")), -1, -1);
            return BoxedUnit.UNIT;
        });
        done();
    }

    /** What is on its way is written, or fails. */
    private void settle() {
        List<Append> now = appends;
        appends = new ArrayList<>();
        Errors error = random.nextInt(8) > 0 ? Errors.NONE : pick(FAILURES);
        if (completing == 0 && random.nextInt(30) == 0) error = pick(List.of(Errors.NOT_LEADER_OR_FOLLOWER, Errors.MESSAGE_TOO_LARGE));
        completing = 0;
        op("settle", error);
        if (error == Errors.NONE) for (Append one : now) one.records.records().forEach(each -> log.add(new SimpleRecord(each)));
        for (Append one : now) one.callback.apply(Map.of(partition, new PartitionResponse(error)));
        done();
    }

    /** The leaders of partitions write markers, perhaps not all. */
    private void write() {
        if (markers.isEmpty()) return;
        String id = pick(List.copyOf(markers.keySet()));
        Completion completion = markers.get(id);
        Set<TopicPartition> places = new HashSet<>(completion.metadata.topicPartitions());
        if (random.nextInt(3) == 0) places.removeIf(place -> random.nextBoolean());
        op("markers", id, shown(places));
        places.forEach(completion.metadata::removePartition);
        if (completion.metadata.topicPartitions().isEmpty()) {
            markers.remove(id);
            complete(completion);
        }
        done();
    }

    /** Another broker leads the partition; at once, or later, it is this one again, with what is in the log. */
    private void resign() {
        op("resign");
        List<Append> lost = appends;
        appends = new ArrayList<>();
        completing = 0;
        coordinator.onResignation(0, Option.apply(epoch));
        for (Append one : lost) one.callback.apply(Map.of(partition, new PartitionResponse(Errors.NOT_LEADER_OR_FOLLOWER)));
        markers.clear();
        again.clear();
        isElected = false;
        done();
    }

    private void elect() {
        op("elect", ++epoch);
        isElected = true;
        coordinator.onElection(0, epoch);
        done();
    }

    private UnifiedLog written() {
        UnifiedLog written = Mockito.mock(UnifiedLog.class, Mockito.withSettings().stubOnly());
        MemoryRecords records = MemoryRecords.withRecords(0L, Compression.NONE, log.toArray(new SimpleRecord[0]));
        try {
            Mockito.when(written.read(anyLong(), anyInt(), any(), anyBoolean())).thenReturn(new FetchDataInfo(new LogOffsetMetadata(0), records));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return written;
    }

    private void retry() {
        time.sleep(100);
        op("retry");
        List<Completion> now = List.copyOf(again);
        again.clear();
        now.forEach(this::complete);
        done();
    }

    private void pass() {
        if (!appends.isEmpty()) settle();
        if (!again.isEmpty()) retry();
        if (!appends.isEmpty()) settle();
        if (!again.isEmpty() || !appends.isEmpty()) return;
        time.sleep(pick(List.of(1, 100, 5_000, 5_001, 60_000, EXPIRATION_MS - 60_000)));
        op("pass");
        done();
    }

    private void turn() {
        if (random.nextInt(6) == 0) {
            op("expire");
            states.removeExpiredTransactionalIds();
        } else {
            op("late");
            coordinator.abortTimedOutTransactions(late -> (error, producerId, epoch) -> BoxedUnit.UNIT);
        }
        done();
    }

    private void change() {
        int what = random.nextInt(6);
        if (what == 0) {
            level = (short) (level > 0 ? 1 + random.nextInt(2) : random.nextInt(3));  // Kafka cannot write a state of 2 at 0
            op("level", level);
        } else if (what == 1) {
            hasIds = !hasIds;
            op("ids", hasIds);
        } else {
            String id = pick(IDS);
            TransactionMetadata known = known(id);
            if (known == null || known.pendingTransitionInProgress() || known.producerEpoch() < 0) return;
            short epoch = pick(List.of((short) 32_764, (short) 32_765, (short) 32_766, (short) 32_766, (short) 32_767));
            op("epoch", id, epoch);
            known.setProducerEpoch(epoch);
        }
        done();
    }

    // --- what they need ---

    private void complete(Completion one) {
        completing++;
        states.appendTransactionToLog(one.metadata.transactionalId(), one.epoch, one.next, error -> {
            if (error == Errors.COORDINATOR_NOT_AVAILABLE) again.add(one);
            return BoxedUnit.UNIT;
        }, error -> error == Errors.COORDINATOR_NOT_AVAILABLE, RequestLocal.noCaching());
    }

    private void safely(int number, Runnable asked) {
        try {
            asked.run();
        } catch (RuntimeException e) {
            line("answer", number, Errors.UNKNOWN_SERVER_ERROR, -1, -1);  // as a broker answers
        }
    }

    private ProducerIdAndEpoch producer(TransactionMetadata known) {
        if (known == null) return new ProducerIdAndEpoch(random.nextInt(3) + 1000, (short) random.nextInt(2));
        long id = known.producerId();
        short epoch = known.producerEpoch();
        return switch (random.nextInt(24)) {
            case 0 -> new ProducerIdAndEpoch(id, (short) (epoch - 1));
            case 1 -> new ProducerIdAndEpoch(id, (short) Math.min(epoch + 1, Short.MAX_VALUE));
            case 2 -> new ProducerIdAndEpoch(known.prevProducerId(), epoch);
            case 3 -> new ProducerIdAndEpoch(known.prevProducerId(), (short) (Short.MAX_VALUE - 1));
            case 4 -> new ProducerIdAndEpoch(id, known.lastProducerEpoch());
            case 5 -> new ProducerIdAndEpoch(id + 1, epoch);
            case 6 -> new ProducerIdAndEpoch(known.prevProducerId(), Short.MAX_VALUE);
            default -> new ProducerIdAndEpoch(id, epoch);
        };
    }

    private Set<TopicPartition> places() {
        Set<TopicPartition> places = new HashSet<>();
        for (int count = random.nextInt(3) + 1; count > 0; count--) places.add(new TopicPartition("t", random.nextInt(4)));
        return places;
    }

    private static String shown(Set<TopicPartition> places) {
        return new TreeSet<>(places.stream().map(TopicPartition::partition).toList()).stream().map(String::valueOf).
            collect(Collectors.joining(","));
    }

    private TransactionMetadata known(String id) {
        Option<Option<CoordinatorEpochAndTxnMetadata>> found = states.getTransactionState(id).toOption();
        return found.isEmpty() || found.get().isEmpty() ? null : found.get().get().transactionMetadata();
    }

    private <T> T pick(List<T> some) {
        return some.get(random.nextInt(some.size()));
    }

    private void op(Object... columns) {
        String rest = Arrays.stream(columns).skip(1).map(String::valueOf).collect(Collectors.joining("\t"));
        line("op", columns[0], step, time.milliseconds(), rest);
    }

    private void done() {
        for (String id : IDS) {
            TransactionMetadata one = known(id);
            if (one == null) continue;
            line("state", id, one.producerId(), one.prevProducerId(), field(one, "nextProducerId"), one.producerEpoch(),
                one.lastProducerEpoch(), one.txnTimeoutMs(), one.state().stateName(),
                one.pendingState().map(TransactionState::stateName).orElse("none"), shown(one.topicPartitions()),
                one.txnStartTimestamp(), one.txnLastUpdateTimestamp(), one.clientTransactionVersion().featureLevel(),
                field(one, "hasFailedEpochFence"));
        }
        line("done");
    }
}
