import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

/** Reads values as HEX,HEX,... and prints one batch of them per codec, in hex, as Kafka's own classes write it. */
public class CompressedBatches {
    public static void main(String[] args) throws Exception {
        String[] values = new BufferedReader(new InputStreamReader(System.in)).readLine().split(",");
        for (String name : new String[] {"gzip", "snappy", "lz4", "zstd"}) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), RecordBatch.CURRENT_MAGIC_VALUE,
                Compression.of(CompressionType.forName(name)).build(), TimestampType.CREATE_TIME, 0L);
            for (String value : values) {
                builder.append(1000L, null, HexFormat.of().parseHex(value));
            }
            ByteBuffer buffer = builder.build().buffer();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            System.out.println(HexFormat.of().formatHex(bytes));
        }
    }
}
