package org.apache.kafka.server;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.Time;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Drives Kafka's fetch sessions by lines of standard input; partitions are "name|-,id|0,index", lists are split by ";".
 * "reset SLOTS EVICTION_MS"; "now MS";
 * "begin KEY VERSION REPLICA SESSION EPOCH NAMES FETCHED FORGOTTEN": the partitions to read, in order;
 * "answer KEY READ": error, session id and the partitions told, in order.
 */
public class FetchSessionOracle {
    private static final String NOTHING = "-";
    private static long nowMs = 0;
    private static FetchManager manager;
    private static final Map<String, FetchContext> CONTEXTS = new HashMap<>();

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

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "reset" -> {
                    nowMs = 0;
                    CONTEXTS.clear();
                    int slots = Integer.parseInt(words[1]);
                    long evictionMs = Long.parseLong(words[2]);
                    manager = new FetchManager(TIME, new FetchSessionCacheShard(slots, evictionMs, Integer.MAX_VALUE, 0));
                }
                case "now" -> nowMs = Long.parseLong(words[1]);
                case "begin" -> out.println(begin(words));
                default -> out.println(answer(words));
            }
        }
    }

    private static String begin(String[] words) {
        short version = Short.parseShort(words[2]);
        FetchMetadata metadata = new FetchMetadata(Integer.parseInt(words[4]), Integer.parseInt(words[5]));
        Map<Uuid, String> names = new HashMap<>();
        for (String entry : list(words[6])) {
            String[] fields = entry.split(",");
            names.put(Uuid.fromString(fields[0]), fields[1]);
        }
        Map<TopicIdPartition, FetchRequest.PartitionData> fetched = new LinkedHashMap<>();
        for (String entry : list(words[7])) {
            String[] fields = entry.split(",");
            TopicIdPartition partition = partition(fields);
            fetched.put(partition, new FetchRequest.PartitionData(partition.topicId(), Long.parseLong(fields[3]), -1,
                Integer.parseInt(fields[4]), epoch(fields[5]), epoch(fields[6])));
        }
        List<TopicIdPartition> forgotten = new ArrayList<>();
        for (String entry : list(words[8])) {
            forgotten.add(partition(entry.split(",")));
        }
        boolean isFollower = Integer.parseInt(words[3]) >= 0;
        FetchContext context = manager.newContext(version, metadata, isFollower, fetched, forgotten, names);
        CONTEXTS.put(words[1], context);
        List<String> read = new ArrayList<>();
        context.foreachPartition((partition, data) -> read.add(text(partition) + "," + data.fetchOffset + "," + data.maxBytes
            + "," + data.currentLeaderEpoch.orElse(-1) + "," + data.lastFetchedEpoch.orElse(-1)));
        return read.isEmpty() ? NOTHING : String.join(";", read);
    }

    private static String answer(String[] words) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> updates = new LinkedHashMap<>();
        for (String entry : list(words[2])) {
            String[] fields = entry.split(",");
            updates.put(partition(fields), new FetchResponseData.PartitionData()
                .setPartitionIndex(Integer.parseInt(fields[2]))
                .setErrorCode(Short.parseShort(fields[3]))
                .setHighWatermark(Long.parseLong(fields[4]))
                .setLogStartOffset(Long.parseLong(fields[5]))
                .setDivergingEpoch(new FetchResponseData.EpochEndOffset().setEpoch(Integer.parseInt(fields[6])))
                .setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate(Integer.parseInt(fields[7])))));
        }
        FetchResponse response = CONTEXTS.remove(words[1]).updateAndGenerateResponseData(updates, List.of());
        List<String> told = new ArrayList<>();
        response.data().responses().forEach(topic -> topic.partitions().forEach(data -> told.add(
            (topic.topicId().equals(Uuid.ZERO_UUID) ? topic.topic() : topic.topicId()) + "," + data.partitionIndex() + ","
                + data.errorCode() + "," + data.highWatermark() + "," + data.logStartOffset() + ","
                + data.divergingEpoch().epoch() + "," + FetchResponse.recordsSize(data))));
        return response.data().errorCode() + " " + response.sessionId() + " "
            + response.data().responses().size() + " " + (told.isEmpty() ? NOTHING : String.join(";", told));
    }

    private static String[] list(String text) {
        return text.equals(NOTHING) ? new String[0] : text.split(";");
    }

    private static TopicIdPartition partition(String[] fields) {
        String name = fields[0].equals(NOTHING) ? null : fields[0];
        // Kafka recognizes sessions by name by the identity of this object.
        Uuid id = fields[1].equals("0") ? Uuid.ZERO_UUID : Uuid.fromString(fields[1]);
        return new TopicIdPartition(id, new TopicPartition(name, Integer.parseInt(fields[2])));
    }

    private static String text(TopicIdPartition partition) {
        return (partition.topic() == null ? NOTHING : partition.topic()) + ","
            + (partition.topicId() == Uuid.ZERO_UUID ? "0" : partition.topicId()) + "," + partition.partition();
    }

    private static Optional<Integer> epoch(String text) {
        int epoch = Integer.parseInt(text);
        return epoch < 0 ? Optional.empty() : Optional.of(epoch);
    }
}
