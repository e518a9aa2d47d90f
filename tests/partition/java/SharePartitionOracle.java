package kafka.server.share;

import kafka.server.ReplicaManager;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * Drives Kafka's share partition by lines of standard input, whose lists are split by ";" and are "-" if empty.
 * "reset LOCKS DELIVERIES LOCK_MS START BATCHES"; "now MS"; "start OFFSET": the log's;
 * "limits LOCKS DELIVERIES LOCK_MS RENEWS": other ones of the group from now on;
 * "acquire MEMBER MODE BATCH_SIZE MOST OFFSET BATCHES ABORTED"; "ack NUMBER MEMBER ACKS"; "release NUMBER MEMBER";
 * "answer WRITE ERROR": the share coordinator's.
 * Each is answered by what was acquired, which numbers were answered, what is written, the offsets, and what is in flight.
 */
public class SharePartitionOracle {
    private static final TopicIdPartition PLACE =
        new TopicIdPartition(new Uuid(1, 2), new TopicPartition("t", 0));
    private static final byte[] NOTHING = new byte[0];
    private static final List<String> ANSWERED = new ArrayList<>();
    private static final List<String> WRITES = new ArrayList<>();
    private static final List<CompletableFuture<WriteShareGroupStateResult>> PENDING = new ArrayList<>();
    private static final List<TimerTaskEntry> TIMERS = new ArrayList<>();
    private static long nowMs = 0;
    private static GroupConfig limits = null;
    private static long startOffset = 0;
    private static List<PersisterStateBatch> kept = List.of();
    private static SharePartition share;

    private static final Time TIME = new Time() {
        public long milliseconds() {
            return nowMs;
        }

        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        public void sleep(long ms) {
            nowMs += ms;
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    };


    private static final Timer TIMER = new Timer() {
        public void add(TimerTask task) {
            TimerTaskEntry entry = new TimerTaskEntry(task, nowMs + task.delayMs);
            TIMERS.add(entry);
        }

        public boolean advanceClock(long timeoutMs) {
            throw new UnsupportedOperationException();
        }

        public int size() {
            return TIMERS.size();
        }

        public void close() {
        }
    };

    private static class Groups extends GroupConfigManager {
        Groups() {
            super(Map.of(), null, null);
        }

        @Override
        public Optional<GroupConfig> groupConfig(String groupId) {
            return Optional.ofNullable(limits);
        }
    }

    private static class Replicas extends ReplicaManager {
        Replicas() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null);
        }

        @Override
        public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) {
        }
    }

    private static class Coordinator extends NoOpStatePersister {
        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            PartitionAllData data = PartitionFactory.newPartitionAllData(0, 1, startOffset, (short) 0, "", kept);
            return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(PLACE.topicId(), List.of(data)))).build());
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            PartitionStateBatchData data =
                request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            List<String> batches = new ArrayList<>();
            data.stateBatches().forEach(one -> batches.add(
                one.firstOffset() + ":" + one.lastOffset() + ":" + one.deliveryState() + ":" + one.deliveryCount()));
            WRITES.add(PENDING.size() + "," + data.startOffset() + "," + data.deliveryCompleteCount() + ","
                + String.join("+", batches));
            CompletableFuture<WriteShareGroupStateResult> answer = new CompletableFuture<>();
            PENDING.add(answer);
            return answer;
        }
    }

    private static <T> T bare(Class<T> type) throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ANSWERED.clear();
            WRITES.clear();
            String acquired;
            try {
                acquired = run(line.split(" "));
            } catch (RuntimeException error) {
                acquired = "!" + error.toString().replace(' ', '_').replace('\n', '_');
            }
            out.println(acquired + " " + joined(ANSWERED) + " " + joined(WRITES) + " " + share.nextFetchOffset() + ","
                + share.startOffset() + "," + share.endOffset() + "," + share.canAcquireRecords() + ","
                + share.deliveryCompleteCount() + " " + inFlight());
        }
    }

    private static String run(String[] words) throws Exception {
        switch (words[0]) {
            case "reset" -> reset(words);
            case "limits" -> limits = limits(words);
            case "now" -> advance(Long.parseLong(words[1]));
            case "start" -> share.updateCacheAndOffsets(Long.parseLong(words[1]));
            case "ack" -> answered(words[1], share.acknowledge(words[2], acknowledgements(words[3])));
            case "release" -> answered(words[1], share.releaseAcquiredRecords(words[2]));
            case "answer" -> PENDING.get(Integer.parseInt(words[1])).complete(new WriteShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(PLACE.topicId(), List.<PartitionErrorData>of(
                    PartitionFactory.newPartitionErrorData(0, Short.parseShort(words[2]), ""))))).build());
            default -> {
                return acquire(words);
            }
        }
        return "-";
    }

    private static void reset(String[] words) throws Exception {
        nowMs = 0;
        limits = null;
        PENDING.clear();
        TIMERS.clear();
        startOffset = Long.parseLong(words[4]);
        kept = new ArrayList<>();
        for (String entry : list(words[5])) {
            String[] fields = entry.split(",");
            kept.add(new PersisterStateBatch(Long.parseLong(fields[0]), Long.parseLong(fields[1]),
                Byte.parseByte(fields[2]), Short.parseShort(fields[3])));
        }
        if (share != null)
            share.markFenced();
        share = new SharePartition("g", PLACE, 0, Integer.parseInt(words[1]), Integer.parseInt(words[2]),
            Integer.parseInt(words[3]), TIMER, TIME, new Coordinator(), bare(Replicas.class), bare(Groups.class), null);
        share.maybeInitialize().get();
    }

    private static GroupConfig limits(String[] words) {
        return new GroupConfig(Map.of("share.partition.max.record.locks", words[1], "share.delivery.count.limit", words[2],
            "share.record.lock.duration.ms", words[3], "share.renew.acknowledge.enable", words[4]));
    }

    private static void advance(long toMs) {
        while (true) {
            TimerTaskEntry due = null;
            for (TimerTaskEntry entry : TIMERS)
                if (entry.expirationMs <= toMs && (due == null || entry.expirationMs < due.expirationMs))
                    due = entry;
            if (due == null)
                break;
            TIMERS.remove(due);
            if (!due.cancelled()) {
                nowMs = due.expirationMs;
                due.timerTask.run();
            }
        }
        nowMs = toMs;
    }

    private static void answered(String number, CompletableFuture<Void> future) {
        future.whenComplete((nothing, error) -> ANSWERED.add(number + ":" + (error == null ? 0 : Errors.forException(error).code())));
    }

    private static List<ShareAcknowledgementBatch> acknowledgements(String text) {
        List<ShareAcknowledgementBatch> found = new ArrayList<>();
        for (String entry : list(text)) {
            String[] fields = entry.split(",");
            List<Byte> types = new ArrayList<>();
            for (String type : fields[2].split("\\."))
                types.add(Byte.parseByte(type));
            found.add(new ShareAcknowledgementBatch(Long.parseLong(fields[0]), Long.parseLong(fields[1]), types));
        }
        return found;
    }

    private static String acquire(String[] words) {
        List<FetchResponseData.AbortedTransaction> aborted = new ArrayList<>();
        for (String entry : list(words[7])) {
            String[] fields = entry.split(",");
            aborted.add(new FetchResponseData.AbortedTransaction()
                .setProducerId(Long.parseLong(fields[0])).setFirstOffset(Long.parseLong(fields[1])));
        }
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 1 << 30, 0, records(words[6]), Optional.empty(),
            OptionalLong.empty(), aborted.isEmpty() ? Optional.empty() : Optional.of(aborted), OptionalInt.empty(), false);
        List<String> got = new ArrayList<>();
        share.acquire(words[1], words[2].equals("records") ? ShareAcquireMode.RECORD_LIMIT : ShareAcquireMode.BATCH_OPTIMIZED,
            Integer.parseInt(words[3]), Integer.parseInt(words[4]), Long.parseLong(words[5]), data,
            aborted.isEmpty() ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.TXN_COMMITTED).acquiredRecords().forEach(
                one -> got.add(one.firstOffset() + "," + one.lastOffset() + "," + one.deliveryCount()));
        return joined(got);
    }

    /** Batches are "base,last,producer id,kind": 0 plain, 1 transactional, 2 an abort marker. */
    private static MemoryRecords records(String text) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        for (String entry : list(text)) {
            String[] fields = entry.split(",");
            long base = Long.parseLong(fields[0]);
            long last = Long.parseLong(fields[1]);
            long producer = Long.parseLong(fields[2]);
            if (fields[3].equals("2")) {
                MemoryRecords.writeEndTransactionalMarker(buffer, base, 0, 0, producer, (short) 0,
                    new EndTransactionMarker(ControlRecordType.ABORT, 0));
                continue;
            }
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                TimestampType.CREATE_TIME, base, 0, producer, producer < 0 ? (short) -1 : (short) 0, producer < 0 ? -1 : 0,
                fields[3].equals("1"), 0);
            builder.appendWithOffset(base, 0, NOTHING, NOTHING);
            if (last > base)
                builder.appendWithOffset(last, 0, NOTHING, NOTHING);
            builder.build();
        }
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private static String inFlight() {
        List<String> rows = new ArrayList<>();
        share.cachedState().values().forEach(batch -> {
            if (batch.offsetState() != null)
                batch.offsetState().forEach((offset, state) -> rows.add(offset + "," + offset + "," + text(state)));
            else
                rows.add(batch.firstOffset() + "," + batch.lastOffset() + "," + batch.batchState() + ","
                    + batch.batchDeliveryCount() + "," + batch.batchMemberId() + "," + batch.batchHasOngoingStateTransition());
        });
        return joined(rows);
    }

    private static String text(InFlightState state) {
        return state.state() + "," + state.deliveryCount() + "," + state.memberId() + "," + state.hasOngoingStateTransition();
    }

    private static String[] list(String text) {
        return text.equals("-") ? new String[0] : text.split(";");
    }

    private static String joined(List<String> rows) {
        return rows.isEmpty() ? "-" : String.join(";", rows);
    }
}
