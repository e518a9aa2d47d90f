package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.MockTime;

import kraftd.Suite;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.StringJoiner;
import java.util.stream.Collectors;

import static kraftd.Suite.field;
import static kraftd.Suite.line;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;

/**
 * Runs Kafka's own tests of its storage, and writes what they ask for to the output.
 *
 * "validate ... BYTES" is followed by "valid MAXIMUM NEXT BYTES" or "refused ERROR MESSAGE RECORD..." of a batch. "manager",
 * "info" (of an append of one producer), "data", "marker" and "op" are steps of the producers' state; what a step leaves of
 * it comes last.
 */
public final class KafkasStorage {
    private static final Map<Object, Integer> NUMBERS = new IdentityHashMap<>();
    private static final ThreadLocal<Integer> DEPTH = ThreadLocal.withInitial(() -> 0);

    private KafkasStorage() {
    }

    public static void main(String[] classes) {
        String here = KafkasStorage.class.getPackageName() + ".";
        KafkasLogs.on(new AgentBuilder.Default()).
            type(named(here + "LogValidator")).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(Clock.class).on(isConstructor())).
                visit(Advice.to(Validate.class).on(named("validateMessagesAndAssignOffsets")))).
            type(named(here + "ProducerAppendInfo")).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(Info.class).on(isConstructor())).
                visit(Advice.to(Append.class).on(namedOneOf("appendDataBatch", "appendEndTxnMarker")))).
            type(named(here + "ProducerStateManager")).
            transform((builder, type, loader, module, domain) -> builder.
                visit(Advice.to(Manager.class).on(isConstructor())).
                visit(Advice.to(Operation.class).on(namedOneOf(
                    "prepareUpdate", "update", "completeTxn", "removeExpiredProducers", "onHighWatermarkUpdated", "onLogStartOffsetIncremented",
                    "truncateAndReload", "truncateFullyAndStartAt", "truncateFullyAndReloadSnapshots", "updateMapEndOffset",
                    "takeSnapshot", "hasLateTransaction", "lastStableOffset", "firstUnstableOffset", "isEmpty",
                    "maybeCreateVerificationStateEntry", "clearVerificationStateEntry", "removeStraySnapshots",
                    "deleteSnapshotsBefore")))).
            installOn(ByteBuddyAgent.install());
        Suite.run(classes);
        System.exit(0);  // threads of some tests stay
    }

    // --- a batch ---

    /** Lets a validator read one time only. */
    public static class Clock {
        @Advice.OnMethodExit
        public static void exit(@Advice.FieldValue(value = "time", readOnly = false) Time time) {
            time = new MockTime(time.milliseconds(), 0);
        }
    }

    public static class Validate {
        @Advice.OnMethodEnter
        public static void enter(@Advice.This Object validator, @Advice.Argument(0) PrimitiveRef.LongRef next) {
            if (entered()) validated(validator, next.value);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.Argument(0) PrimitiveRef.LongRef next,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            if (!left()) return;
            if (thrown == null) valid((LogValidator.ValidationResult) result, next.value);
            else refused(thrown);
        }
    }

    public static void validated(Object validator, long next) {
        Compression target = (Compression) field(validator, "targetCompression");
        Object level = field(target, "level");
        line("validate", field(validator, "topicPartition"), ((Time) field(validator, "time")).milliseconds(), next,
            field(validator, "sourceCompressionType"), target.type(), level == null ? "" : level, field(validator, "compactedTopic"),
            field(validator, "toMagic"), field(validator, "timestampType"), field(validator, "timestampBeforeMaxMs"),
            field(validator, "timestampAfterMaxMs"), field(validator, "partitionLeaderEpoch"), field(validator, "origin"),
            hex((MemoryRecords) field(validator, "records")));
    }

    public static void valid(LogValidator.ValidationResult result, long next) {
        line("valid", result.maxTimestampMs(), next, hex(result.validatedRecords()));
    }

    public static void refused(Throwable thrown) {
        StringJoiner columns = new StringJoiner("\t");
        Throwable shown = thrown;
        if (thrown instanceof RecordValidationException invalid) {
            shown = invalid.invalidException();
            for (ProduceResponse.RecordError error : invalid.recordErrors()) columns.add(error.batchIndex + " " + error.message);
        }
        line("refused", Errors.forException(shown).name(), shown.getMessage(), columns);
    }

    // --- producers ---

    public static class Manager {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object manager) {
            if (isIdle()) made(manager);
        }
    }

    public static class Info {
        @Advice.OnMethodExit
        public static void exit(@Advice.This Object info) {
            if (isIdle()) begun(info, null);
        }
    }

    public static class Append {
        @Advice.OnMethodEnter
        public static void enter() {
            entered();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.This Object info,
            @Advice.AllArguments Object[] arguments,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            if (left()) appended(info, arguments, result, thrown);
        }
    }

    public static class Operation {
        @Advice.OnMethodEnter
        public static String enter(@Advice.This Object manager, @Advice.Origin("#m") String name) {
            return entered() && name.startsWith("truncate") ? snapshots(manager) : "";
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.This Object manager,
            @Advice.Origin("#m") String name,
            @Advice.Enter String before,
            @Advice.AllArguments Object[] arguments,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
            @Advice.Thrown Throwable thrown
        ) {
            if (left()) done(manager, name, before, arguments, result, thrown);
        }
    }

    public static void made(Object manager) {
        ProducerStateManager of = (ProducerStateManager) manager;
        if (of.producerStateManagerConfig() == null) return;  // a mock
        line("manager", number(manager), of.producerStateManagerConfig().producerIdExpirationMs(), of.maxTransactionTimeoutMs());
    }

    public static void begun(Object info, Object manager) {
        line("info", number(info), field(info, "origin"), entry((ProducerStateEntry) field(info, "currentEntry")),
            manager == null ? "" : number(manager));
    }

    public static void appended(Object info, Object[] arguments, Object result, Throwable thrown) {
        StringJoiner columns = new StringJoiner("\t");
        for (Object argument : arguments) {
            if (argument instanceof LogOffsetMetadata offset) columns.add(String.valueOf(offset.messageOffset));
            else if (argument instanceof EndTransactionMarker marker) columns.add(marker.controlType() + "\t" + marker.coordinatorEpoch());
            else columns.add(String.valueOf(argument));
        }
        String kind = arguments[0] instanceof EndTransactionMarker ? "marker" : "data";
        line(kind, number(info), columns, thrown == null ? shown(result) : error(thrown), entry((ProducerStateEntry) field(info, "updatedEntry")));
    }

    public static void done(Object manager, String name, String before, Object[] arguments, Object result, Throwable thrown) {
        if (name.equals("prepareUpdate")) {
            begun(result, manager);
            return;
        }
        String shown = Arrays.stream(arguments).map(KafkasStorage::shown).collect(Collectors.joining(","));
        String files = name.equals("takeSnapshot") ? snapshots(manager) : before;
        line("op", number(manager), name, ((Time) field(manager, "time")).milliseconds(), shown, files,
            thrown == null ? shown(result) : error(thrown), state((ProducerStateManager) manager));
    }

    private static String error(Throwable thrown) {
        return "refused " + Errors.forException(thrown).name();
    }

    private static String shown(Object value) {
        if (value instanceof Optional<?> some) return some.isPresent() ? shown(some.get()) : "none";
        if (value instanceof ProducerAppendInfo info) return String.valueOf(number(info));
        if (value instanceof CompletedTxn txn)
            return txn.producerId() + " " + txn.firstOffset() + " " + txn.lastOffset() + " " + txn.isAborted();
        if (value instanceof VerificationStateEntry entry) return entry.lowestSequence() + " " + entry.epoch();
        if (value instanceof LogOffsetMetadata offset) return String.valueOf(offset.messageOffset);
        return value instanceof File file ? hex(file) : String.valueOf(value).replace(", ", " ");
    }

    private static String state(ProducerStateManager manager) {
        return manager.mapEndOffset() + "\t" + manager.activeProducers().values().stream().map(KafkasStorage::entry).collect(Collectors.joining(" "));
    }

    static String entry(ProducerStateEntry entry) {
        return entry.producerId() + ":" + entry.producerEpoch() + ":" + entry.coordinatorEpoch() + ":" + entry.lastTimestamp() + ":"
            + entry.currentTxnFirstOffset().orElse(-1) + ":" + entry.batchMetadata().stream().map(
                batch -> batch.lastSeq() + "," + batch.lastOffset() + "," + batch.offsetDelta() + "," + batch.timestamp()
            ).collect(Collectors.joining(";"));
    }

    public static String snapshots(Object manager) {
        File[] files = Objects.requireNonNull(((File) field(manager, "logDir")).listFiles((in, name) -> name.endsWith(".snapshot")));
        return Arrays.stream(files).map(file -> file.getName() + "=" + hex(file)).collect(Collectors.joining(" "));
    }

    // --- all of them ---

    /** Return whether no other call of these is under way in the thread. */
    public static boolean entered() {
        DEPTH.set(DEPTH.get() + 1);
        return DEPTH.get() == 1;
    }

    public static boolean isIdle() {
        return DEPTH.get() == 0;
    }

    public static boolean left() {
        DEPTH.set(DEPTH.get() - 1);
        return DEPTH.get() == 0;
    }

    static synchronized int number(Object object) {
        return NUMBERS.computeIfAbsent(object, none -> NUMBERS.size());
    }

    static String hex(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] copy = new byte[buffer.remaining()];
        buffer.get(copy);
        return HexFormat.of().formatHex(copy);
    }

    private static String hex(File file) {
        try {
            return HexFormat.of().formatHex(Files.readAllBytes(file.toPath()));
        } catch (IOException e) {
            return "unreadable";
        }
    }
}
