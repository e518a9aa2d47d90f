import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints the facts of Kafka's config definitions as one JSON object: of every key its name, type, default
 * (null where it is null; absent where the key is required), rule of valid values and whether it is internal.
 * It leaves out descriptions.
 */
public final class ConfigFacts {
    public static void main(String[] args) throws Exception {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("broker", keys(AbstractKafkaConfig.CONFIG_DEF));
        facts.put("broker_quota", keys(QuotaConfig.brokerQuotaConfigs()));
        facts.put("topic", keys(LogConfig.configDefCopy()));
        facts.put("group", keys(GroupConfig.CONFIG_DEF));
        facts.put("client_metrics", keys(ClientMetricsConfigs.configDef()));
        facts.put("dynamic", new TreeSet<>(DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS));
        facts.put("dynamic_security", new TreeSet<>(DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS));
        facts.put("dynamic_per_broker", sorted(DynamicBrokerConfig.class, "PER_BROKER_CONFIGS"));
        facts.put("dynamic_cluster_listener", sorted(DynamicBrokerConfig.class, "CLUSTER_LEVEL_LISTENER_CONFIGS"));
        facts.put("listener_mechanism", sorted(DynamicBrokerConfig.class, "LISTENER_MECHANISM_CONFIGS"));
        facts.put("topic_synonyms", topicSynonyms());
        facts.put("group_synonyms", groupSynonyms());
        new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(System.out, facts);
    }

    private static List<Object> keys(ConfigDef definition) throws Exception {
        List<Object> rows = new ArrayList<>();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("name", key.name);
            row.put("type", key.type.name());
            if (key.hasDefault()) {
                row.put("default", text(key.defaultValue, key.type));
            }
            if (key.validator != null) {
                row.put("valid", rule(key.validator));
            }
            if (key.internalConfig) {
                row.put("internal", true);
            }
            rows.add(row);
        }
        return rows;
    }

    private static String text(Object value, ConfigDef.Type type) {
        return value instanceof Password ? ((Password) value).value() : ConfigDef.convertToString(value, type);
    }

    private static Map<String, Object> rule(ConfigDef.Validator validator) throws Exception {
        Map<String, Object> rule = new LinkedHashMap<>();
        String kind = validator.getClass().getSimpleName();
        rule.put("rule", kind);
        switch (kind) {
            case "Range":
                rule.put("min", field(validator, "min"));
                rule.put("max", field(validator, "max"));
                break;
            case "ValidString":
                rule.put("values", field(validator, "validStrings"));
                break;
            case "CaseInsensitiveValidString":
                rule.put("values", new TreeSet<>((Collection<String>) field(validator, "validStrings")));
                break;
            case "ValidList":
                rule.put("values", field(field(validator, "validString"), "validStrings"));
                rule.put("empty", field(validator, "isEmptyAllowed"));
                rule.put("null", field(validator, "isNullAllowed"));
                break;
            case "LambdaValidator":
                rule.put("says", validator.toString());
                break;
            default:
                break;
        }
        return rule;
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static TreeSet<String> sorted(Class<?> owner, String name) throws Exception {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return new TreeSet<>((Collection<String>) field.get(null));
    }

    /** Of each topic config the server configs that stand in for it, first to last, each with its factor to the topic's unit. */
    private static Map<String, Object> topicSynonyms() {
        Map<String, Object> synonyms = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((topic, servers) -> {
            List<Object> rows = new ArrayList<>();
            servers.forEach(server -> {
                String one = server.converter().apply("1");
                rows.add(List.of(server.name(), Long.parseLong(one)));
            });
            synonyms.put(topic, rows);
        });
        return synonyms;
    }

    private static Map<String, String> groupSynonyms() {
        Map<String, String> synonyms = new TreeMap<>();
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach((group, server) -> server.ifPresent(name -> synonyms.put(group, name)));
        return synonyms;
    }
}
