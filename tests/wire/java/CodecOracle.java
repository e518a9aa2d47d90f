import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.ControlRecordType;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Apache Kafka's generated message classes, asked through standard input and output.
 *
 * A question: operation (byte), name of the message (UTF), version (short), second version (short), length (int), bytes.
 *   'D'  bytes of the message -> its JSON, and the bytes that Kafka writes for it
 *   'E'  its JSON             -> bytes
 *   'T'  bytes in the version -> bytes in the second version
 *   'F'  nothing              -> JSON of the facts that are not in schemas: error codes, APIs, header versions
 * An answer: 0 and two blocks (length, bytes), or 1 and two blocks: class and message of the exception.
 */
public final class CodecOracle {
    private static final String[] PLACES = {
        "org.apache.kafka.common.message.%sData",
        "org.apache.kafka.common.message.%s",
        "org.apache.kafka.common.metadata.%s",
        "org.apache.kafka.raft.generated.%s",
        "org.apache.kafka.coordinator.group.generated.%s",
        "org.apache.kafka.coordinator.transaction.generated.%s",
        "org.apache.kafka.coordinator.share.generated.%s",
    };
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Codec> CODECS = new HashMap<>();

    private record Codec(Class<?> type, Method read, Method write) { }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            int operation;
            try {
                operation = in.readByte();
            } catch (EOFException ended) {
                return;
            }
            String name = in.readUTF();
            short version = in.readShort();
            short second = in.readShort();
            byte[] data = new byte[in.readInt()];
            in.readFully(data);
            byte[][] answer;
            try {
                answer = answer(operation, name, version, second, data);
                out.writeByte(0);
            } catch (Throwable problem) {
                Throwable cause = problem instanceof InvocationTargetException ? problem.getCause() : problem;
                answer = new byte[][] {utf8(cause.getClass().getSimpleName()), utf8(String.valueOf(cause.getMessage()))};
                out.writeByte(1);
            }
            for (byte[] block : answer) {
                out.writeInt(block.length);
                out.write(block);
            }
            out.flush();
        }
    }

    private static byte[][] answer(int operation, String name, short version, short second, byte[] data)
            throws Exception {
        if (operation == 'F') {
            return new byte[][] {JSON.writeValueAsBytes(facts()), {}};
        }
        Codec codec = CODECS.computeIfAbsent(name, CodecOracle::find);
        if (operation == 'E') {
            JsonNode node = JSON.readTree(data);
            return new byte[][] {bytes((Message) codec.read.invoke(null, node, version), version), {}};
        }
        Message message = (Message) codec.type.getDeclaredConstructor().newInstance();
        ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(data));
        message.read(readable, version);
        if (readable.remaining() != 0) {
            throw new IllegalArgumentException(readable.remaining() + " bytes remain");
        }
        if (operation == 'T') {
            return new byte[][] {bytes(message, second), {}};
        }
        JsonNode node = (JsonNode) codec.write.invoke(null, message, version, true);
        return new byte[][] {JSON.writeValueAsBytes(node), bytes(message, version)};
    }

    private static Map<String, Object> facts() {
        Map<String, Object> errors = new TreeMap<>();
        for (Errors error : Errors.values()) {
            errors.put(error.name(), error.code());
        }
        Map<String, Object> apis = new TreeMap<>();
        for (ApiKeys api : ApiKeys.values()) {
            if (!api.hasValidVersion()) {
                continue;
            }
            List<List<Integer>> headers = new ArrayList<>();
            for (short version = api.oldestVersion(); version <= api.latestVersion(); version++) {
                headers.add(List.of((int) version, (int) api.requestHeaderVersion(version),
                    (int) api.responseHeaderVersion(version)));
            }
            List<String> listeners = new ArrayList<>();
            for (ApiMessageType.ListenerType listener : ApiMessageType.ListenerType.values()) {
                if (api.inScope(listener)) {
                    listeners.add(listener.name().toLowerCase(Locale.ROOT));
                }
            }
            apis.put(api.name(), Map.of("key", (int) api.id, "headers", headers, "listeners", listeners,
                "latestVersionUnstable", api.messageType.latestVersionUnstable()));
        }
        Map<String, Object> records = new TreeMap<>();
        for (MetadataRecordType type : MetadataRecordType.values()) {
            records.put(type.name(), List.of((int) type.id(), (int) type.lowestSupportedVersion(),
                (int) type.highestSupportedVersion()));
        }
        Map<String, Object> controls = new TreeMap<>();
        for (ControlRecordType type : ControlRecordType.values()) {
            if (type != ControlRecordType.UNKNOWN) {
                controls.put(type.name(), (int) type.type());
            }
        }
        return Map.of("errors", errors, "apis", apis, "records", records, "controls", controls);
    }

    private static byte[] bytes(Message message, short version) {
        return MessageUtil.toByteBufferAccessor(message, version).buffer().array();
    }

    private static Codec find(String name) {
        for (String place : PLACES) {
            String className = String.format(place, name);
            try {
                Class<?> type = Class.forName(className);
                Class<?> converter = Class.forName(className + "JsonConverter");
                return new Codec(type, converter.getMethod("read", JsonNode.class, short.class),
                    converter.getMethod("write", type, short.class, boolean.class));
            } catch (ClassNotFoundException elsewhere) {
                continue;
            } catch (NoSuchMethodException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
        throw new IllegalArgumentException("Kafka has no message " + name);
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private CodecOracle() { }
}
