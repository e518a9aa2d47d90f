package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreatePartitionsResponseData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ListPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.controller.errors.EventHandlerExceptionInfo;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Random;
import java.util.stream.Collectors;

/**
 * Kafka's own ReplicationControlManager, driven by lines on its input: an operation and its arguments.
 *
 * Requests and responses travel as hex of their encoding, records as hex of theirs in the metadata log.
 * An answer is "ok RESPONSE RECORD...", or "refused ERROR". The records of an operation are replayed at once.
 */
public class ControllerOracle {
    private final SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
    private final FeatureControlManager features;
    private final ClusterControlManager cluster;
    private final ConfigurationControlManager configs;
    private final ReplicationControlManager replication;

    ControllerOracle(long seed) {
        features = new FeatureControlManager.Builder().
            setSnapshotRegistry(registry).
            setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0))).
            build();
        cluster = new ClusterControlManager.Builder().
            setSnapshotRegistry(registry).
            setReplicaPlacer(new StripedReplicaPlacer(new Random(seed))).
            setFeatureControlManager(features).
            setBrokerShutdownHandler((broker, clean, records) -> { }).
            build();
        configs = new ConfigurationControlManager.Builder().
            setSnapshotRegistry(registry).
            setFeatureControl(features).
            setKafkaConfigSchema(kafka.server.KafkaRaftServer.configSchema()).
            setValidator(new kafka.server.ControllerConfigurationValidator(kafka.server.KafkaConfig.fromProps(node()))).
            setNodeId(3000).
            build();
        replication = new ReplicationControlManager.Builder().
            setSnapshotRegistry(registry).
            setConfigurationControl(configs).
            setClusterControl(cluster).
            setFeatureControl(features).
            setDefaultNumPartitions(2).
            setDefaultReplicationFactor((short) 2).
            build();
        cluster.activate();
    }

    private static Properties node() {
        Properties properties = new Properties();
        properties.setProperty("process.roles", "controller");
        properties.setProperty("node.id", "3000");
        properties.setProperty("controller.listener.names", "CONTROLLER");
        properties.setProperty("listeners", "CONTROLLER://127.0.0.1:9093");
        properties.setProperty("controller.quorum.voters", "3000@127.0.0.1:9093");
        return properties;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        ControllerOracle oracle = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("new")) {
                oracle = new ControllerOracle(Long.parseLong(words[1]));
                out.println("ok -");
            } else {
                out.println(oracle.run(words));
            }
            out.flush();
        }
    }

    private String run(String[] words) {
        try {
            List<ApiMessageAndVersion> records = new ArrayList<>();
            String answer = decide(words, records);
            for (ApiMessageAndVersion record : records) replay(record.message());
            String written = records.stream().map(Hex::hex).collect(Collectors.joining(" "));
            return "ok " + answer + (written.isEmpty() ? "" : " " + written);
        } catch (Exception e) {
            Throwable shown = EventHandlerExceptionInfo.fromInternal(e, OptionalInt::empty).effectiveExternalException();
            Errors error = Errors.forException(shown);
            return error == Errors.UNKNOWN_SERVER_ERROR ? "refused UNKNOWN_SERVER_ERROR " + e : "refused " + error.name();
        }
    }

    private String decide(String[] words, List<ApiMessageAndVersion> records) {
        int broker = words.length > 1 && words[1].matches("\\d{1,4}") ? Integer.parseInt(words[1]) : -1;
        switch (words[0]) {
            case "replay":
                for (int i = 1; i < words.length; i++) {
                    records.add(Hex.record(words[i]));
                }
                return "-";
            case "fence":
                replication.handleBrokerFenced(broker, records);
                return "-";
            case "unfence":
                replication.handleBrokerUnfenced(broker, cluster.registration(broker).epoch(), records);
                return "-";
            case "shut_down":
                replication.handleBrokerInControlledShutdown(broker, cluster.registration(broker).epoch(), records);
                cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(broker, 1);
                return "-";
            case "unregister":
                records.addAll(replication.unregisterBroker(broker).records());
                return "-";
            case "restart":
                replication.handleBrokerShutdown(broker, words[2].equals("clean"), records);
                return "-";
            case "lose":
                List<Uuid> lost = Arrays.stream(words).skip(2).map(ControllerOracle::uuid).collect(Collectors.toList());
                replication.handleDirectoriesOffline(broker, cluster.registration(broker).epoch(), lost, records);
                return "-";
            case "balance":
                return take(replication.maybeBalancePartitionLeaders(), records).toString();
            case "elect_uncleanly":
                return take(replication.maybeElectUncleanLeaders(), records).toString();
            default:
                return request(words[0], Short.parseShort(words[1]), Hex.accessor(words.length > 2 ? words[2] : ""), records);
        }
    }

    private String request(String api, short version, ByteBufferAccessor bytes, List<ApiMessageAndVersion> records) {
        ControllerRequestContext context = new ControllerRequestContext(
            new RequestHeaderData().setRequestApiVersion(version), KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
        switch (api) {
            case "create_topics":
                CreateTopicsRequestData create = new CreateTopicsRequestData(bytes, version);
                return Hex.hex(take(replication.createTopics(context, create, create.topics().stream().
                    map(topic -> topic.name()).collect(Collectors.toSet()), false), records), version);
            case "create_partitions":
                return Hex.hex(new CreatePartitionsResponseData().setResults(take(replication.createPartitions(
                    context, new ArrayList<>(new CreatePartitionsRequestData(bytes, version).topics())), records)), version);
            case "alter_partition":
                return Hex.hex(take(replication.alterPartition(
                    context, new AlterPartitionRequestData(bytes, version)), records), version);
            case "elect_leaders":
                return Hex.hex(take(replication.electLeaders(new ElectLeadersRequestData(bytes, version)), records), version);
            case "reassign":
                return Hex.hex(take(replication.alterPartitionReassignments(
                    new AlterPartitionReassignmentsRequestData(bytes, version)), records), version);
            case "list_reassignments":
                return Hex.hex(replication.listPartitionReassignments(
                    new ListPartitionReassignmentsRequestData(bytes, version).topics(), Long.MAX_VALUE), version);
            case "assign_directories":
                return Hex.hex(take(replication.handleAssignReplicasToDirs(
                    new AssignReplicasToDirsRequestData(bytes, version)), records), version);
            default:
                throw new IllegalArgumentException(api);
        }
    }

    private static <T> T take(ControllerResult<T> result, List<ApiMessageAndVersion> records) {
        records.addAll(result.records());
        return result.response();
    }

    private void replay(ApiMessage record) {
        if (record instanceof FeatureLevelRecord feature) features.replay(feature);
        else if (record instanceof RegisterBrokerRecord broker) cluster.replay(broker, 0);
        else if (record instanceof UnregisterBrokerRecord broker) cluster.replay(broker);
        else if (record instanceof BrokerRegistrationChangeRecord broker) cluster.replay(broker);
        else if (record instanceof ConfigRecord config) configs.replay(config);
        else if (record instanceof TopicRecord topic) replication.replay(topic);
        else if (record instanceof RemoveTopicRecord topic) replication.replay(topic);
        else if (record instanceof PartitionRecord partition) replication.replay(partition);
        else if (record instanceof PartitionChangeRecord partition) replication.replay(partition);
        else if (record instanceof ClearElrRecord elr) replication.replay(elr);
        else throw new IllegalArgumentException(record.toString());
    }

    private static Uuid uuid(String hex) {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }
}
