package org.apache.kafka.controller;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.nio.ByteBuffer;
import java.util.HexFormat;

/** Messages and records between a test and an oracle, as hex of their encoding. */
final class Hex {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    private Hex() {
    }

    static ByteBufferAccessor accessor(String hex) {
        return new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(hex)));
    }

    static ApiMessageAndVersion record(String hex) {
        ByteBufferAccessor bytes = accessor(hex);
        return SERDE.read(bytes, bytes.remaining());
    }

    static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HexFormat.of().formatHex(copy);
    }

    static String hex(ApiMessage message, short version) {
        return hex(MessageUtil.toByteBufferAccessor(message, version).buffer());
    }

    static String hex(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(bytes));
        bytes.flip();
        return hex(bytes);
    }
}
