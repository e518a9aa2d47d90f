package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

import kraftd.Suite;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import static kraftd.Suite.field;
import static kraftd.Suite.line;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.isStatic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;

/**
 * What Kafka's tests ask of a log: "create ...", "step LOG NAME NOW ARGUMENT...", and then "done RESULT STATE" or "failed ERROR
 * STATE". A log is made of the files that it finds, and they are written down. The result of a close is its indexes.
 */
public final class KafkasLogs {
    private static final int LARGEST = 1 << 20;  // bytes of a file, less the zeros at its end
    private static final HexFormat HEX = HexFormat.of();
    private static final ThreadLocal<String> ASKED = new ThreadLocal<>();  // what the thread's step is

    private KafkasLogs() {
    }

    static AgentBuilder on(AgentBuilder agent) {
        return agent.type(named("org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Cache.class).on(isPublic().and(
                namedOneOf("assign", "endOffsetFor", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "epochForOffset",
                    "latestEpoch", "clearAndFlush"))))).
            type(named(KafkasLogs.class.getPackageName() + ".UnifiedLog")).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(Create.class).on(named("create").and(isStatic()))).
                visit(Advice.to(Step.class).on(isPublic().and(not(isStatic())).and(namedOneOf(
                    "appendAsLeader", "appendAsLeaderWithRecordVersion", "appendAsFollower", "updateHighWatermark",
                    "maybeIncrementHighWatermark", "maybeUpdateHighWatermark", "maybeIncrementLogStartOffset", "deleteOldSegments",
                    "roll", "truncateTo", "truncateFullyAndStartAt", "fetchOffsetByTimestamp", "read", "collectAbortedTransactions",
                    "endOffsetForEpoch", "assignEpochStartOffset", "removeExpiredProducers", "maybeStartTransactionVerification",
                    "hasOngoingTransaction", "hasLateTransaction", "flush", "flushUptoOffsetExclusive", "updateConfig",
                    "takeProducerSnapshot", "close", "delete", "renameDir", "replaceSegments", "splitOverflowedSegment",
                    "updateHighestOffsetInRemoteStorage", "updateLogStartOffsetFromRemoteTier", "maybeIncrementLocalLogStartOffset",
                    "closeHandlers", "loadProducerState", "updateLocalLogStartOffset")))));
    }

    public static class Cache {
        @Advice.OnMethodEnter
        public static String enter(@Advice.This Object cache) {
            return KafkasStorage.entered() ? entries(cache) : "";
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.This Object cache,
            @Advice.Origin("#m") String name,
            @Advice.Enter String before,
            @Advice.AllArguments Object[] arguments,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            if (KafkasStorage.left() && thrown == null)
                line("epochs", name, Arrays.toString(arguments), before, shown(result), entries(cache));
        }
    }

    public static class Create {
        @Advice.OnMethodEnter
        public static void enter(@Advice.AllArguments Object[] arguments) {
            if (KafkasStorage.entered()) asked(arguments);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Return(typing = Assigner.Typing.DYNAMIC) Object log, @Advice.Thrown Throwable thrown) {
            if (KafkasStorage.left()) ended(log, log, thrown);
        }
    }

    public static class Step {
        @Advice.OnMethodEnter
        public static void enter(@Advice.This Object log, @Advice.Origin("#m") String name, @Advice.AllArguments Object[] arguments) {
            if (KafkasStorage.entered()) stepped(log, name, arguments);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.This Object log,
            @Advice.Origin("#m") String name,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            if (KafkasStorage.left()) ended(log, name.equals("close") ? indexes((UnifiedLog) log) : result, thrown);
        }
    }

    public static void asked(Object[] arguments) {
        File directory = (File) arguments[0];
        ProducerStateManagerConfig producers = (ProducerStateManagerConfig) arguments[8];
        boolean isTiered = arguments.length > 14 && (Boolean) arguments[14] && arguments[1] != null && ((LogConfig) arguments[1]).remoteStorageEnable();
        boolean isWhole = producers != null;  // not while a test describes what a mock is to answer
        ask("create", isWhole ? directory.getName() : "none", isWhole ? ((Time) arguments[6]).milliseconds() : 0,
            isWhole ? config((LogConfig) arguments[1]) : "", arguments[2], arguments[3], arguments[11],
            isWhole ? producers.producerIdExpirationMs() : 0, isWhole && producers.transactionVerificationEnabled(),
            arguments[7], isTiered || !isWhole, isWhole ? files(directory) : "");
    }

    public static void stepped(Object log, String name, Object[] arguments) {
        StringJoiner columns = new StringJoiner("\t");
        for (Object argument : arguments) columns.add(shown(argument));
        UnifiedLog of = (UnifiedLog) log;
        ask("step", KafkasStorage.number(log), name, ((Time) field(field(log, "localLog"), "time")).milliseconds(), shape(of),
            epochs(of), snapshots(of), verifies(of),
            columns);
    }

    public static void ended(Object log, Object result, Throwable thrown) {
        String state = log == null ? "" : state((UnifiedLog) log);
        if (thrown == null) answer("done", result == log ? KafkasStorage.number(log) : shown(result), state);
        else answer("failed", Errors.forException(thrown instanceof RecordValidationException e ? e.invalidException() : thrown),
            thrown.getClass().getSimpleName() + ": " + thrown.getMessage(), state);
    }

    private static void ask(Object... columns) {
        ASKED.set(Arrays.stream(columns).map(String::valueOf).collect(Collectors.joining("\t")));
    }

    /** Writes both lines at once: other threads have steps, too. */
    private static void answer(Object... columns) {
        synchronized (Suite.class) {
            line(ASKED.get());
            line(columns);
        }
    }

    private static String config(LogConfig config) {
        return Stream.of(config.segmentSize(), config.segmentMs, config.segmentJitterMs, config.maxIndexSize, config.indexInterval,
            config.flushInterval, config.flushMs, config.retentionSize, config.retentionMs, config.fileDeleteDelayMs, config.delete,
            config.compact, config.deleteRetentionMs, config.minCleanableRatio, config.compactionLagMs, config.maxCompactionLagMs,
            config.maxMessageSize(), config.messageTimestampType, config.messageTimestampBeforeMaxMs,
            config.messageTimestampAfterMaxMs, config.compressionType.name, config.remoteStorageEnable()
        ).map(String::valueOf).collect(Collectors.joining(" "));
    }

    public static String shown(Object value) {
        if (value instanceof MemoryRecords records) return KafkasStorage.hex(records);
        if (value instanceof Optional<?> some) return some.isPresent() ? shown(some.get()) : "none";
        if (value instanceof OptionalLong some) return some.isPresent() ? String.valueOf(some.getAsLong()) : "none";
        if (value instanceof OptionalInt some) return some.isPresent() ? String.valueOf(some.getAsInt()) : "none";
        if (value instanceof LogOffsetMetadata offset) return String.valueOf(offset.messageOffset);
        if (value instanceof LogConfig config) return config(config);
        if (value instanceof RequestLocal) return "";
        if (value instanceof VerificationGuard guard)
            return guard == VerificationGuard.SENTINEL ? "none" : String.valueOf(KafkasStorage.number(guard));
        if (value instanceof LogAppendInfo info) return info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime();
        if (value instanceof LogSegment segment) return String.valueOf(segment.baseOffset());
        if (value instanceof OffsetAndEpoch end) return end.offset() + " " + end.epoch();
        if (value instanceof OffsetResultHolder found) return found.timestampAndOffsetOpt().map(
            one -> one.timestamp + " " + one.offset + " " + one.leaderEpoch.orElse(-1)).orElse("none");
        if (value instanceof FetchDataInfo read) return read(read);
        if (value instanceof AbortedTxn txn)
            return txn.producerId() + "," + txn.firstOffset() + "," + txn.lastOffset() + "," + txn.lastStableOffset();
        if (value instanceof Collection<?> some) return some.stream().map(KafkasLogs::shown).collect(Collectors.joining(" "));
        return String.valueOf(value);
    }

    private static String read(FetchDataInfo read) {
        StringJoiner found = new StringJoiner(" ");
        for (RecordBatch batch : read.records.batches())
            found.add(batch.baseOffset() + "," + batch.lastOffset() + "," + batch.sizeInBytes());
        return found.toString();
    }

    private static String state(UnifiedLog log) {
        try {
            String producers = log.producerStateManager().activeProducers().values().stream().map(KafkasStorage::entry).
                collect(Collectors.joining(" "));
            return Stream.of(log.logStartOffset(), log.logEndOffset(), log.highWatermark(), log.lastStableOffset(), shape(log),
                epochs(log),
                producers, snapshots(log), log.recoveryPoint()).map(String::valueOf).collect(Collectors.joining("\t"));
        } catch (Exception e) {
            return "unreadable";
        }
    }

    /** The segments: where they begin, their sizes, and when they were written last. */
    private static String shape(UnifiedLog log) {
        return log.logSegments().stream().map(each -> each.baseOffset() + ":" + each.size() + ":" + each.log().file().lastModified()).
            collect(Collectors.joining(" "));
    }

    private static String snapshots(UnifiedLog log) {
        try {
            return ProducerStateManager.listSnapshotFiles(log.dir()).stream().map(each -> each.offset).sorted().
                map(String::valueOf).collect(Collectors.joining(" "));
        } catch (IOException e) {
            return "";
        }
    }

    private static boolean verifies(UnifiedLog log) {
        ProducerStateManagerConfig config = log.producerStateManager().producerStateManagerConfig();
        return config != null && config.transactionVerificationEnabled();  // it is null in a mock
    }

    private static String epochs(UnifiedLog log) {
        return entries(log.leaderEpochCache());
    }

    public static String entries(Object cache) {
        return ((LeaderEpochFileCache) cache).epochEntries().stream().map(each -> each.epoch() + ":" + each.startOffset()).
            collect(Collectors.joining(" "));
    }

    private static String files(File directory) {
        File[] files = Objects.requireNonNullElse(directory.listFiles(File::isFile), new File[0]);
        return Arrays.stream(files).map(file -> file.getName() + "=" + file.lastModified() + "=" + content(file.toPath())).
            collect(Collectors.joining(" "));
    }

    /** What the indexes of a closed log hold, without the room at their ends. */
    public static String indexes(UnifiedLog log) {
        File[] files = Objects.requireNonNullElse(log.dir().listFiles(file -> file.getName().endsWith("index")), new File[0]);
        return Arrays.stream(files).sorted().map(file -> file.getName() + "=" + content(file.toPath()).split("=", 2)[1]).
            filter(each -> !each.endsWith("=")).collect(Collectors.joining(" "));
    }

    /** The size of a file, and its bytes without the zeros at the end. */
    private static String content(Path file) {
        try {
            byte[] content = Files.readAllBytes(file);
            int end = content.length;
            while (end > 0 && content[end - 1] == 0) end--;
            return end > LARGEST ? "large" : content.length + "=" + HEX.formatHex(content, 0, end);
        } catch (IOException e) {
            return "large";
        }
    }
}
