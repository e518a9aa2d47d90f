import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Times Kafka's own codecs on the bytes in a folder; prints "name seconds", the best call of some rounds. */
public final class CodecBench {
    private static final short RECORD_VERSION = 1;
    private static final double CLOCK_EVERY_SECONDS = 0.001;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static Object sink;

    private final Path folder;
    private final int rounds;
    private final double roundSeconds;
    private final double warmSeconds;

    private CodecBench(String[] arguments) {
        folder = Path.of(arguments[0]);
        rounds = Integer.parseInt(arguments[1]);
        roundSeconds = Double.parseDouble(arguments[2]);
        warmSeconds = Double.parseDouble(arguments[3]);
    }

    public static void main(String[] arguments) throws Exception {
        new CodecBench(arguments).run();
    }

    private void run() throws Exception {
        byte[] fetch = bytes("codec_fetch_request_decode_us");
        time("codec_fetch_request_decode_us", () -> sink = fetch(fetch, 18));
        FetchRequestData request = fetch(bytes("codec_fetch_request_encode_us"), 17);
        time("codec_fetch_request_encode_us", () -> sink = encode(request, 17));
        byte[] many = bytes("codec_fetch_1000_decode_us");
        time("codec_fetch_1000_decode_us", () -> sink = fetch(many, 18));
        byte[] heartbeat = bytes("codec_heartbeat_decode_us");
        time("codec_heartbeat_decode_us", () -> sink = new BrokerHeartbeatRequestData(accessor(heartbeat), (short) 1));
        byte[] metadata = bytes("codec_metadata_decode_ms");
        time("codec_metadata_decode_ms", () -> sink = new MetadataResponseData(accessor(metadata), (short) 13));
        MetadataResponseData response = new MetadataResponseData(accessor(metadata), (short) 13);
        time("codec_metadata_encode_ms", () -> sink = encode(response, 13));
        byte[] batch = bytes("codec_record_decode_us");
        time("codec_record_decode_us", () -> sink = records(batch));
        List<ApiMessageAndVersion> records = records(batch);
        time("codec_record_encode_us", () -> sink = batch(records, batch.length * 2));
        byte[] some = bytes("codec_crc_mb_s");
        time("codec_crc_mb_s", () -> {
            CRC32C crc = new CRC32C();
            crc.update(some);
            sink = crc.getValue();
        });
    }

    private void time(String name, Runnable work) {
        double best = repeat(work, warmSeconds, 1);
        for (int round = 0; round < rounds; round++) {
            // Reading the clock costs as much as a small message.
            best = Math.min(best, repeat(work, roundSeconds, Math.max(1, (long) (CLOCK_EVERY_SECONDS / best))));
        }
        System.out.println(name + " " + best);
    }

    /** CPU seconds of one call. */
    private static double repeat(Runnable work, double seconds, long many) {
        long began = THREADS.getCurrentThreadCpuTime();
        long calls = 0;
        double took;
        do {
            for (long call = 0; call < many; call++) {
                work.run();
            }
            calls += many;
            took = (THREADS.getCurrentThreadCpuTime() - began) / 1e9;
        } while (took < seconds);
        return took / calls;
    }

    private byte[] bytes(String name) throws Exception {
        return Files.readAllBytes(folder.resolve(name));
    }

    private static ByteBufferAccessor accessor(byte[] bytes) {
        return new ByteBufferAccessor(ByteBuffer.wrap(bytes));
    }

    private static FetchRequestData fetch(byte[] bytes, int version) {
        return new FetchRequestData(accessor(bytes), (short) version);
    }

    private static ByteBuffer encode(Message message, int version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, (short) version));
        message.write(new ByteBufferAccessor(buffer), cache, (short) version);
        return buffer;
    }

    private static List<ApiMessageAndVersion> records(byte[] bytes) {
        List<ApiMessageAndVersion> found = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                found.add(MetadataRecordSerde.INSTANCE.read(
                    new ByteBufferAccessor(record.value()), record.valueSize()));
            }
        }
        return found;
    }

    private static MemoryRecords batch(List<ApiMessageAndVersion> records, int capacity) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(capacity), (byte) 2, Compression.NONE, TimestampType.CREATE_TIME, 0L,
            1_700_000_000_000L, -1L, (short) -1, -1, false, false, 1, capacity);
        for (ApiMessageAndVersion record : records) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer value = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(value));
            value.flip();
            builder.append(1_700_000_000_000L, null, value);
        }
        return builder.build();
    }
}
