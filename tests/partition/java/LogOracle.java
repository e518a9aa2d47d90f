import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.errors.RecordBatchTooLargeException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Apache Kafka's own log of a partition, asked through standard input: a JSON object a line, and one a line back.
 *
 *   new        a log with a topic's configuration, in an empty directory below the first argument
 *   append     bytes of a Produce, or of a coordinator: what a broker answers, and the batch as it is in the log
 *   verify     the beginning of a transaction's verification; later appends may show its guard
 *   state, watermark, expire, truncate, timestamp
 */
public final class LogOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class Clock implements Time {
        long now = 0;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            now += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }

    /** Runs what has no delay at once, and nothing else. */
    private static final class Immediately implements Scheduler {
        private final ScheduledExecutorService never = Executors.newSingleThreadScheduledExecutor(run -> {
            Thread thread = new Thread(run);
            thread.setDaemon(true);
            return thread;
        });

        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (delayMs <= 0 && periodMs < 0)
                task.run();
            return never.schedule(() -> { }, 1, TimeUnit.DAYS);
        }

        @Override
        public void resizeThreadPool(int newSize) { }
    }

    private final Path home;
    private final Clock clock = new Clock();
    private final Scheduler scheduler = new Immediately();
    private final Map<Long, VerificationGuard> guards = new HashMap<>();
    private UnifiedLog log;
    private int logs = 0;

    private LogOracle(Path home) {
        this.home = home;
    }

    public static void main(String[] arguments) throws Exception {
        LogOracle oracle = new LogOracle(Path.of(arguments[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            if (question.has("now"))
                oracle.clock.now = question.get("now").asLong();
            try {
                oracle.answer(question, answer);
            } catch (Throwable problem) {
                answer.put("error", Errors.forException(problem).name());
                answer.put("text", String.valueOf(problem));
            }
            out.println(answer);
            out.flush();
        }
    }

    private void answer(JsonNode question, ObjectNode answer) throws Exception {
        switch (question.get("op").asText()) {
            case "new" -> begin(question);
            case "append" -> append(question, answer);
            case "verify" -> {
                long producer = question.get("producer").asLong();
                VerificationGuard guard = log.maybeStartTransactionVerification(producer, question.get("sequence").asInt(),
                    (short) question.get("epoch").asInt(), question.get("bump").asBoolean());
                guards.put(producer, guard);
                answer.put("ongoing", guard == VerificationGuard.SENTINEL);
            }
            case "watermark" -> log.updateHighWatermark(question.get("offset").asLong());
            case "expire" -> log.removeExpiredProducers(clock.now);
            case "truncate" -> log.truncateTo(question.get("offset").asLong());
            case "timestamp" -> log.fetchOffsetByTimestamp(question.get("target").asLong(), Optional.empty())
                .timestampAndOffsetOpt().ifPresent(found -> answer.put("offset", found.offset).put("timestamp", found.timestamp));
            case "state" -> { }
            default -> throw new IllegalArgumentException("unknown operation");
        }
        state(answer);
    }

    private void begin(JsonNode question) throws Exception {
        if (log != null)
            log.close();
        guards.clear();
        Map<String, String> properties = new HashMap<>();
        question.get("config").fields().forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
        File directory = home.resolve("t" + logs++ + "-0").toFile();
        Files.createDirectories(directory.toPath());
        log = UnifiedLog.create(directory, new LogConfig(properties), 0, 0, scheduler, new BrokerTopicStats(), clock,
            900_000, new ProducerStateManagerConfig(question.get("expiration").asInt(), question.get("verifies").asBoolean()),
            600_000, new LogDirFailureChannel(1), true, Optional.of(Uuid.randomUuid()));
    }

    private void append(JsonNode question, ObjectNode answer) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(
            Base64.getDecoder().decode(question.get("bytes").asText())));
        AppendOrigin origin = AppendOrigin.valueOf(question.get("origin").asText());
        try {
            if (origin == AppendOrigin.CLIENT) {
                try {
                    ProduceRequest.validateRecords((short) question.get("version").asInt(), records);
                } catch (Exception invalid) {
                    answer.put("error", Errors.forException(invalid).name()).put("text", String.valueOf(invalid));
                    answer.put("shows", false);
                    return;
                }
            }
            VerificationGuard guard = question.has("guard")
                ? guards.getOrDefault(question.get("guard").asLong(), VerificationGuard.SENTINEL) : VerificationGuard.SENTINEL;
            long before = log.logEndOffset();
            LogAppendInfo info = log.appendAsLeader(records, question.get("epoch").asInt(), origin, RequestLocal.noCaching(),
                guard, (short) question.get("transaction_version").asInt());
            answer.put("error", "NONE").put("first", info.firstOffset()).put("last", info.lastOffset());
            answer.put("append_time", info.logAppendTime());
            if (log.logEndOffset() > before) {
                FileRecords written = (FileRecords) log.read(before, Integer.MAX_VALUE, FetchIsolation.LOG_END, true).records;
                ByteBuffer buffer = ByteBuffer.allocate(written.sizeInBytes());
                written.readInto(buffer, 0);
                answer.put("bytes", Base64.getEncoder().encodeToString(buffer.array()));
            }
        } catch (RecordValidationException invalid) {
            answer.put("error", Errors.forException(invalid.invalidException()).name());
            answer.put("message", invalid.invalidException().getMessage()).put("shows", true);
            ArrayNode errors = answer.putArray("errors");
            for (ProduceResponse.RecordError each : invalid.recordErrors())
                errors.addArray().add(each.batchIndex).add(each.message);
        } catch (Throwable problem) {
            answer.put("error", Errors.forException(problem).name()).put("text", String.valueOf(problem));
            answer.put("shows", !(problem instanceof RecordTooLargeException || problem instanceof RecordBatchTooLargeException
                || problem instanceof CorruptRecordException || problem instanceof KafkaStorageException));
        }
    }

    private void state(ObjectNode answer) {
        answer.put("partition", log.topicPartition().toString());
        answer.put("log_start", log.logStartOffset()).put("log_end", log.logEndOffset());
        answer.put("high_watermark", log.highWatermark()).put("last_stable", log.lastStableOffset());
        ArrayNode producers = answer.putArray("producers");
        for (DescribeProducersResponseData.ProducerState each : log.activeProducers())
            producers.addArray().add(each.producerId()).add(each.producerEpoch()).add(each.lastSequence())
                .add(each.lastTimestamp()).add(each.coordinatorEpoch()).add(each.currentTxnStartOffset());
    }
}
