package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;

/**
 * Cleans a log with Kafka's cleaner, for each line of standard input:
 * "DIRECTORY NOW_MS CLEANED_TO|-1 LAST_STABLE_OFFSET MAP_BYTES SEGMENT_BYTES INTERVAL_BYTES DELETE_RETENTION_MS MIN_LAG_MS
 * INDEX_BYTES".
 * Answers "first dirty, first uncleanable, cleanable bytes, ratio in thousandths, end offset".
 */
public class CleanerOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = clean(line.split(" "));
            } catch (Exception error) {
                answer = "failed: " + error;
                error.printStackTrace();
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String clean(String[] words) throws Exception {
        long nowMs = Long.parseLong(words[1]);
        long cleanedTo = Long.parseLong(words[2]);
        long stable = Long.parseLong(words[3]);
        Properties properties = new Properties();
        properties.put("cleanup.policy", "compact");
        properties.put(LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG, words[5]);
        properties.put("index.interval.bytes", words[6]);
        properties.put("delete.retention.ms", words[7]);
        properties.put("min.compaction.lag.ms", words[8]);
        properties.put("segment.index.bytes", words[9]);
        Time time = new Time() {
            public long milliseconds() {
                return nowMs;
            }

            public long nanoseconds() {
                return nowMs * 1_000_000;
            }

            public void sleep(long ms) {
                throw new UnsupportedOperationException();
            }

            public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
                throw new UnsupportedOperationException();
            }

            public Timer timer(long timeoutMs) {
                throw new UnsupportedOperationException();
            }
        };
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        BrokerTopicStats stats = new BrokerTopicStats(false);
        UnifiedLog log = UnifiedLog.create(
            new File(words[0]), new LogConfig(properties), 0, 0, scheduler, stats, time, 900_000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000, new LogDirFailureChannel(10), true,
            Optional.empty());
        try {
            log.updateHighWatermark(stable);
            Optional<Long> last = cleanedTo < 0 ? Optional.empty() : Optional.of(cleanedTo);
            LogCleanerManager.OffsetsToClean found = LogCleanerManager.cleanableOffsets(log, last, nowMs);
            LogToClean chosen = new LogToClean(
                log, found.firstDirtyOffset(), found.firstUncleanableDirtyOffset(), false);
            Cleaner cleaner = new Cleaner(
                0, new SkimpyOffsetMap(Integer.parseInt(words[4])), 1 << 20, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, 1000, "bytes", "bytes", time), time, partition -> { });
            long end = cleaner.doClean(chosen, nowMs).getKey();
            return found.firstDirtyOffset() + " " + chosen.firstUncleanableOffset() + " "
                + chosen.cleanableBytes() + " " + Math.round(chosen.cleanableRatio() * 1000) + " " + end;
        } finally {
            log.close();
            scheduler.shutdown();
            stats.close();
        }
    }
}
