package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.ConfigHelper;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.BrokerIdNotRegisteredException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/** Answers of Kafka's own classes about configs: one JSON object per line in and out. Topic "t" and node 7 exist. */
public final class ConfigOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode ask = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                switch (ask.get("ask").asText()) {
                    case "server": server(ask, answer); break;
                    case "effective": effective(ask, answer); break;
                    case "alter": alter(ask, answer); break;
                    case "describe": describe(ask, answer); break;
                    case "properties": answer.set("entries", JSON.valueToTree(properties(ask.get("text").asText()))); break;
                    default: throw new IllegalArgumentException(line);
                }
            } catch (Throwable e) {
                answer.put("thrown", e.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    private static Map<String, String> map(JsonNode node) {
        Map<String, String> texts = new LinkedHashMap<>();
        if (node != null) {
            node.fields().forEachRemaining(e -> texts.put(e.getKey(), e.getValue().isNull() ? null : e.getValue().asText()));
        }
        return texts;
    }

    private static Properties asProperties(Map<String, String> texts) {
        Properties properties = new Properties();
        properties.putAll(texts);
        return properties;
    }

    private static Map<String, String> properties(String text) throws Exception {
        Properties properties = new Properties();
        properties.load(new java.io.StringReader(text));
        Map<String, String> entries = new TreeMap<>();
        properties.forEach((key, value) -> entries.put((String) key, (String) value));
        return entries;
    }

    /** Adds the values of a server that starts with a file; fails if the server does not start. */
    private static void server(JsonNode ask, ObjectNode answer) {
        KafkaConfig config = new KafkaConfig(asProperties(map(ask.get("static"))), false);
        ObjectNode values = answer.putObject("values");
        config.values().forEach((name, value) -> {
            ConfigDef.ConfigKey key = KafkaConfig.configDef().configKeys().get(name);
            if (key.type != ConfigDef.Type.CLASS) {
                values.put(name, value == null ? null : ConfigDef.convertToString(value, key.type));
            }
        });
        ObjectNode topic = answer.putObject("topic");
        config.extractLogConfigMap().forEach((name, value) -> topic.put(name, value instanceof List
            ? ConfigDef.convertToString(value, ConfigDef.Type.LIST) : String.valueOf(value)));
        ArrayNode announced = answer.putArray("announced");
        scala.jdk.javaapi.CollectionConverters.asJava(config.effectiveAdvertisedControllerListeners()).forEach(endpoint ->
            announced.add(endpoint.listener() + "://" + (endpoint.host() == null ? "" : endpoint.host()) + ":" + endpoint.port()));
        answer.put("metadata", config.metadataLogDir());
    }

    private static void effective(JsonNode ask, ObjectNode answer) {
        Map<String, ConfigEntry> entries = KafkaRaftServer.configSchema().resolveEffectiveTopicConfigs(
            map(ask.get("static")), map(ask.get("cluster")), map(ask.get("node")), map(ask.get("topic")));
        ArrayNode rows = answer.putArray("configs");
        new TreeMap<>(entries).forEach((name, entry) -> {
            ArrayNode row = rows.addArray();
            row.add(name).add(entry.isSensitive() ? null : entry.value());
            row.add(KafkaConfigSchema.translateConfigSource(entry.source()).id()).add(entry.isReadOnly()).add(entry.isSensitive());
        });
    }

    private static void alter(JsonNode ask, ObjectNode answer) {
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        FeatureControlManager features = new FeatureControlManager.Builder().setSnapshotRegistry(registry).
            setQuorumFeatures(new QuorumFeatures(7, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(7))).build();
        features.replay(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) ask.get("level").asInt()));
        if (ask.get("elr").asBoolean()) {
            features.replay(new FeatureLevelRecord().setName("eligible.leader.replicas.version").setFeatureLevel((short) 1));
        }
        KafkaConfig config = new KafkaConfig(asProperties(map(ask.get("static"))), false);
        ConfigurationControlManager manager = new ConfigurationControlManager.Builder().
            setSnapshotRegistry(registry).setFeatureControl(features).setNodeId(7).
            setKafkaConfigSchema(KafkaRaftServer.configSchema()).
            setStaticConfig(new HashMap<>(config.originals())).
            setExistenceChecker(ConfigOracle::exists).
            setValidator(new ControllerConfigurationValidator(config)).build();
        for (JsonNode row : ask.get("existing")) {
            manager.replay(new ConfigRecord().setResourceType((byte) row.get(0).asInt()).setResourceName(row.get(1).asText()).
                setName(row.get(2).asText()).setValue(row.get(3).asText()));
        }
        boolean forwarded = ask.get("forwarded").asBoolean();
        Map<ConfigResource, ApiError> outcomes = new LinkedHashMap<>();
        List<ApiMessageAndVersion> records;
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.forId((byte) ask.get("type").asInt()), ask.get("name").asText());
        if (ask.get("incremental").asBoolean()) {
            Map<String, Map.Entry<OpType, String>> changes = new LinkedHashMap<>();
            for (JsonNode row : ask.get("changes")) {
                changes.put(row.get(0).asText(), new SimpleImmutableEntry<>(OpType.forId((byte) row.get(1).asInt()),
                    row.get(2).isNull() ? null : row.get(2).asText()));
            }
            ControllerResult<Map<ConfigResource, ApiError>> result = manager.incrementalAlterConfigs(
                Map.of(resource, changes), ask.get("created").asBoolean(), forwarded);
            outcomes.putAll(result.response());
            records = result.records();
        } else {
            Map<String, String> changes = new LinkedHashMap<>();
            for (JsonNode row : ask.get("changes")) {
                changes.put(row.get(0).asText(), row.get(2).isNull() ? null : row.get(2).asText());
            }
            ControllerResult<Map<ConfigResource, ApiError>> result =
                manager.legacyAlterConfigs(Map.of(resource, changes), ask.get("created").asBoolean(), forwarded);
            outcomes.putAll(result.response());
            records = result.records();
        }
        answer.put("error", outcomes.get(resource).error().name());
        answer.put("says", outcomes.get(resource).message());
        ArrayNode rows = answer.putArray("records");
        for (ApiMessageAndVersion record : records) {
            ArrayNode row = rows.addArray();
            if (record.message() instanceof ConfigRecord) {
                ConfigRecord change = (ConfigRecord) record.message();
                row.add(change.resourceType()).add(change.resourceName()).add(change.name()).add(change.value());
            } else {
                row.add("clear").add(((ClearElrRecord) record.message()).topicName());
            }
        }
    }

    private static void exists(ConfigResource resource) {
        if (resource.type() == ConfigResource.Type.TOPIC && !resource.name().equals("t")) {
            throw new UnknownTopicOrPartitionException("no topic " + resource.name());
        }
        if (resource.type() == ConfigResource.Type.BROKER && !resource.name().isEmpty() && Integer.parseInt(resource.name()) != 7) {
            throw new BrokerIdNotRegisteredException("no node " + resource.name());
        }
    }

    private static void describe(JsonNode ask, ObjectNode answer) {
        KafkaConfig config = new KafkaConfig(asProperties(map(ask.get("static"))), false);
        config.dynamicConfig().initialize(scala.Option.empty());
        config.dynamicConfig().updateDefaultConfig(asProperties(map(ask.get("cluster"))), false);
        config.dynamicConfig().updateBrokerConfig(7, asProperties(map(ask.get("node"))), false);
        Properties own = asProperties(map(ask.get("own")));
        ConfigRepository repository = resource -> own;
        MetadataCache cache = (MetadataCache) Proxy.newProxyInstance(ConfigOracle.class.getClassLoader(),
            new Class<?>[] {MetadataCache.class},
            (proxy, method, given) -> method.getName().equals("contains") && given[0].equals("t"));
        DescribeConfigsRequestData.DescribeConfigsResource resource = new DescribeConfigsRequestData.DescribeConfigsResource().
            setResourceType((byte) ask.get("type").asInt()).setResourceName(ask.get("name").asText());
        ConfigHelper helper = new ConfigHelper(cache, config, repository);
        var results = helper.describeConfigs(
            scala.jdk.javaapi.CollectionConverters.asScala(List.of(resource)).toList(), true, false);
        var result = results.head();
        answer.put("error", Errors.forCode(result.errorCode()).name());
        answer.put("says", result.errorMessage());
        ObjectNode rows = answer.putObject("configs");
        result.configs().forEach(entry -> {
            ArrayNode row = rows.putArray(entry.name());
            row.add(entry.value()).add(entry.readOnly()).add(entry.configSource()).add(entry.isSensitive()).add(entry.configType());
            ArrayNode synonyms = row.addArray();
            entry.synonyms().forEach(synonym -> synonyms.addArray().add(synonym.name()).add(synonym.value()).add(synonym.source()));
        });
    }
}
