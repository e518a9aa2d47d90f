package org.apache.kafka.image;

import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Answers lines of standard input. "image HEX,HEX,...": the snapshot records of the image that these records make,
 * as HEX,HEX,... . "images HEX,HEX,...": the same after each record, separated by semicolons. "versions": the facts of each metadata.version.
 */
public class ImageOracle {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("versions")) {
                out.println(versions());
            } else if (line.startsWith("images ")) {
                List<String> images = new ArrayList<>();
                image(line.substring("images ".length()), images);
                out.println(String.join(";", images));
            } else {
                out.println(written(image(line.substring("image ".length()), null)));
            }
        }
    }

    private static MetadataImage image(String records, List<String> afterEach) {
        MetadataImage image = MetadataImage.EMPTY;
        MetadataImage beforeTransaction = null;
        long offset = 0;
        for (String hex : records.split(",")) {
            byte[] bytes = HEX.parseHex(hex);
            ApiMessageAndVersion record = SERDE.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length);
            switch (MetadataRecordType.fromId(record.message().apiKey())) {
                case BEGIN_TRANSACTION_RECORD -> beforeTransaction = image;
                case ABORT_TRANSACTION_RECORD -> image = beforeTransaction;
                case END_TRANSACTION_RECORD -> beforeTransaction = null;
                default -> {
                    // Applied one by one: within one delta a topic deleted and made again would hide faults.
                    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
                    delta.replay(record.message());
                    image = delta.apply(new MetadataProvenance(offset++, 1, 1L, true));
                }
            }
            if (afterEach != null) {
                afterEach.add(written(image));
            }
        }
        return image;
    }

    private static String written(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        List<String> written = new ArrayList<>();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
            SERDE.write(record, cache, new ByteBufferAccessor(buffer));
            written.add(HEX.formatHex(buffer.array()));
        }
        return String.join(",", written);
    }

    private static String versions() {
        List<String> lines = new ArrayList<>();
        for (MetadataVersion version : MetadataVersion.values()) {
            List<String> facts = new ArrayList<>();
            facts.add(version.featureLevel() + "=" + version);
            facts.add("register_broker=" + version.registerBrokerRecordVersion());
            facts.add("partition=" + version.partitionRecordVersion());
            facts.add("partition_change=" + version.partitionChangeRecordVersion());
            facts.add("scram=" + version.isScramSupported());
            facts.add("transactions=" + version.isMetadataTransactionSupported());
            facts.add("tokens=" + version.isDelegationTokenSupported());
            facts.add("controllers=" + version.isControllerRegistrationSupported());
            facts.add("directories=" + version.isDirectoryAssignmentSupported());
            facts.add("elr=" + version.isElrSupported());
            facts.add("cordoned=" + version.isCordonedLogDirsSupported());
            facts.add("isr_shrink_bump=" + version.isLeaderEpochBumpRequiredOnIsrShrink());
            if (version.isProduction()) {
                facts.add("release=" + MetadataVersion.fromVersionString(version.shortVersion(), true).featureLevel());
            }
            for (Feature feature : Feature.PRODUCTION_FEATURES) {
                facts.add(feature.featureName() + "=" + feature.defaultLevel(version));
            }
            List<String> changed = new ArrayList<>();
            for (MetadataVersion other : MetadataVersion.values()) {
                if (MetadataVersion.checkIfMetadataChanged(version, other)) {
                    changed.add("" + other.featureLevel());
                }
            }
            facts.add("changed=" + String.join("+", changed));
            lines.add(String.join(" ", facts));
        }
        return String.join(";", lines);
    }
}
