package org.apache.kafka.controller;

import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.message.AllocateProducerIdsRequestData;
import org.apache.kafka.common.message.AllocateProducerIdsResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatResponseData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.BrokerRegistrationResponseData;
import org.apache.kafka.common.message.ControllerRegistrationRequestData;
import org.apache.kafka.common.message.UpdateFeaturesRequestData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.ProducerIdsRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RegisterControllerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.errors.EventHandlerExceptionInfo;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Kafka's own managers of brokers, features and producer ids, driven by lines on its input like ControllerOracle.
 *
 * "time MS" sets the clock, "failover" makes the controller standby and active again. Each replayed record takes an
 * offset, from 0 on.
 */
public class BrokerOracle {
    private static final String CLUSTER = "kraftd-tests-0123456789";

    private final SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
    private final FeatureControlManager features;
    private final ClusterControlManager cluster;
    private final ConfigurationControlManager configs;
    private final ProducerIdControlManager producerIds;
    private final ReplicationControlManager replication;
    private long nowMs = 0;
    private long offset = 0;

    private class Clock implements Time {
        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    BrokerOracle() {
        features = new FeatureControlManager.Builder().
            setSnapshotRegistry(registry).
            setQuorumFeatures(new QuorumFeatures(3000, QuorumFeatures.defaultSupportedFeatureMap(false), List.of(3000))).
            setClusterFeatureSupportDescriber(new ClusterFeatureSupportDescriber() {
                @Override
                public java.util.Iterator<Map.Entry<Integer, Map<String, org.apache.kafka.metadata.VersionRange>>> brokerSupported() {
                    return cluster().brokerSupportedFeatures();
                }

                @Override
                public java.util.Iterator<Map.Entry<Integer, Map<String, org.apache.kafka.metadata.VersionRange>>> controllerSupported() {
                    return cluster().controllerSupportedFeatures();
                }
            }).
            build();
        cluster = new ClusterControlManager.Builder().
            setClusterId(CLUSTER).
            setTime(new Clock()).
            setSessionTimeoutNs(9_000_000_000L).
            setSnapshotRegistry(registry).
            setFeatureControlManager(features).
            setBrokerShutdownHandler((broker, clean, records) -> replication().handleBrokerShutdown(broker, clean, records)).
            build();
        configs = new ConfigurationControlManager.Builder().
            setSnapshotRegistry(registry).
            setFeatureControl(features).
            setKafkaConfigSchema(kafka.server.KafkaRaftServer.configSchema()).
            setNodeId(3000).
            build();
        producerIds = new ProducerIdControlManager.Builder().
            setSnapshotRegistry(registry).
            setClusterControlManager(cluster).
            build();
        replication = new ReplicationControlManager.Builder().
            setSnapshotRegistry(registry).
            setConfigurationControl(configs).
            setClusterControl(cluster).
            setFeatureControl(features).
            build();
        cluster.activate();
    }

    private ClusterControlManager cluster() {
        return cluster;
    }

    private ReplicationControlManager replication() {
        return replication;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BrokerOracle oracle = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("new")) {
                oracle = new BrokerOracle();
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
            Answer answer = decide(words, records);
            for (ApiMessageAndVersion record : records) replay(record.message());
            if (answer.shuttingDown >= 0) {
                cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(answer.shuttingDown, offset - 1);
            }
            String written = records.stream().map(Hex::hex).collect(Collectors.joining(" "));
            return "ok " + answer.text + (written.isEmpty() ? "" : " " + written);
        } catch (Exception e) {
            Throwable shown = EventHandlerExceptionInfo.fromInternal(e, OptionalInt::empty).effectiveExternalException();
            Errors error = Errors.forException(shown);
            return error == Errors.UNKNOWN_SERVER_ERROR ? "refused UNKNOWN_SERVER_ERROR " + e : "refused " + error.name();
        }
    }

    private record Answer(String text, int shuttingDown) {
        Answer(String text) {
            this(text, -1);
        }
    }

    private Answer decide(String[] words, List<ApiMessageAndVersion> records) {
        switch (words[0]) {
            case "replay":
                for (int i = 1; i < words.length; i++) {
                    records.add(Hex.record(words[i]));
                }
                return new Answer("-");
            case "time":
                nowMs = Long.parseLong(words[1]);
                return new Answer("-");
            case "failover":
                cluster.deactivate();
                cluster.activate();
                return new Answer("-");
            case "fence_stale":
                return new Answer(take(replication.maybeFenceOneStaleBroker(), records).toString());
            case "unregister":
                take(replication.unregisterBroker(Integer.parseInt(words[1])), records);
                return new Answer("-");
            default:
                return request(words[0], Short.parseShort(words[1]), Hex.accessor(words[2]), records);
        }
    }

    private Answer request(String api, short version, ByteBufferAccessor bytes, List<ApiMessageAndVersion> records) {
        switch (api) {
            case "register": {
                Map<String, Short> finalized = new HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
                finalized.put("kraft.version", (short) 1);
                long epoch = take(cluster.registerBroker(new BrokerRegistrationRequestData(bytes, version), offset,
                    new FinalizedControllerFeatures(finalized, Long.MAX_VALUE), version >= 3), records).epoch();
                return new Answer(Hex.hex(new BrokerRegistrationResponseData().setBrokerEpoch(epoch), version));
            }
            case "heartbeat": {
                BrokerHeartbeatRequestData beat = new BrokerHeartbeatRequestData(bytes, version);
                cluster.trackBrokerHeartbeat(beat.brokerId(), beat.brokerEpoch());
                if (cluster.registerBrokerRecordOffset(beat.brokerId()).isEmpty()) {
                    throw new org.apache.kafka.common.errors.StaleBrokerEpochException("before registration");
                }
                BrokerHeartbeatReply reply = take(replication.processBrokerHeartbeat(
                    beat, cluster.registerBrokerRecordOffset(beat.brokerId()).getAsLong()), records);
                return new Answer(Hex.hex(new BrokerHeartbeatResponseData().
                    setIsCaughtUp(reply.isCaughtUp()).
                    setIsFenced(reply.isFenced()).
                    setShouldShutDown(reply.shouldShutDown()), version),
                    reply.inControlledShutdown() ? beat.brokerId() : -1);
            }
            case "controller":
                take(cluster.registerController(new ControllerRegistrationRequestData(bytes, version)), records);
                return new Answer("-");
            case "features": {
                UpdateFeaturesRequestData update = new UpdateFeaturesRequestData(bytes, version);
                Map<String, Short> levels = new LinkedHashMap<>();
                Map<String, FeatureUpdate.UpgradeType> types = new HashMap<>();
                update.featureUpdates().forEach(one -> {
                    levels.put(one.feature(), one.maxVersionLevel());
                    types.put(one.feature(), FeatureUpdate.UpgradeType.fromCode(one.upgradeType()));
                });
                return new Answer(take(configs.updateFeatures(levels, types, update.validateOnly(), 1), records).
                    error().name());
            }
            case "allocate": {
                AllocateProducerIdsRequestData request = new AllocateProducerIdsRequestData(bytes, version);
                var block = take(producerIds.generateNextProducerId(request.brokerId(), request.brokerEpoch()), records);
                return new Answer(Hex.hex(new AllocateProducerIdsResponseData().
                    setProducerIdStart(block.firstProducerId()).setProducerIdLen(block.size()), version));
            }
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
        else if (record instanceof RegisterBrokerRecord broker) cluster.replay(broker, offset);
        else if (record instanceof UnregisterBrokerRecord broker) cluster.replay(broker);
        else if (record instanceof BrokerRegistrationChangeRecord broker) cluster.replay(broker);
        else if (record instanceof RegisterControllerRecord controller) cluster.replay(controller);
        else if (record instanceof ConfigRecord config) configs.replay(config);
        else if (record instanceof TopicRecord topic) replication.replay(topic);
        else if (record instanceof PartitionRecord partition) replication.replay(partition);
        else if (record instanceof PartitionChangeRecord partition) replication.replay(partition);
        else if (record instanceof ProducerIdsRecord ids) producerIds.replay(ids);
        else if (!(record instanceof NoOpRecord)) throw new IllegalArgumentException(record.toString());
        offset++;
    }
}
