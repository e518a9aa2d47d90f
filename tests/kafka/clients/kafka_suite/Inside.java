package org.apache.kafka.common.test.junit;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;

/**
 * The objects of a broker or controller that tests reach into, where a client can answer for them: ports,
 * settings, start and stop, and what metadata says. Any other question skips the test, and names it.
 */
class Inside {
    static final String WHY = "asks for the inside of a node: ";

    private Inside() {}

    private static Object skip(InvocationOnMock call) {
        String name = call.getMethod().getName();
        if (name.equals("toString")) return "the inside of a node";
        if (name.equals("hashCode")) return System.identityHashCode(call.getMock());
        throw new TestAbortedException(WHY + call.getMethod().getDeclaringClass().getSimpleName() + "." + name);
    }

    private static <T> T empty(Class<T> type) {
        return mock(type, (Answer<Object>) Inside::skip);
    }

    static BrokerServer broker(ProcessCluster cluster, NodeProcess node) {
        BrokerServer broker = empty(BrokerServer.class);
        Properties settings = node.settings();
        settings.put("unstable.api.versions.enable", "false");
        doReturn(new KafkaConfig(settings, false)).when(broker).config();
        doAnswer(call -> {
            cluster.shutdownBroker(node.id);
            return null;
        }).when(broker).shutdown();
        doAnswer(call -> {
            cluster.startBroker(node.id);
            return null;
        }).when(broker).startup();
        doAnswer(call -> null).when(broker).awaitShutdown();
        doAnswer(call -> cluster.isDown(node.id)).when(broker).isShutdown();
        doAnswer(call -> cluster.isDown(node.id) ? BrokerState.NOT_RUNNING : BrokerState.RUNNING).when(broker).brokerState();
        doReturn(cluster.clusterId()).when(broker).clusterId();
        doReturn(node.brokerPort).when(broker).boundPort(any());
        doReturn(sockets(node.brokerPort)).when(broker).socketServer();
        doReturn(metadata(cluster)).when(broker).metadataCache();
        KafkaApis apis = empty(KafkaApis.class);
        doReturn(node.id).when(apis).brokerId();
        doReturn(true).when(apis).isConsumerGroupProtocolEnabled();
        doReturn(apis).when(broker).dataPlaneRequestProcessor();
        GroupCoordinator groups = empty(GroupCoordinator.class);
        Properties topic = new Properties();
        topic.putAll(Map.of("cleanup.policy", "compact", "compression.type", "producer", "segment.bytes", "104857600"));
        doReturn(topic).when(groups).groupMetadataTopicConfigs();
        doReturn(groups).when(broker).groupCoordinator();
        MetadataLoader loader = empty(MetadataLoader.class);
        doReturn(Long.MAX_VALUE).when(loader).lastAppliedOffset(); // the controller's end below waits for all brokers
        SharedServer shared = empty(SharedServer.class);
        doReturn(loader).when(shared).loader();
        doReturn(shared).when(broker).sharedServer();
        return broker;
    }

    static ControllerServer controller(ProcessCluster cluster, NodeProcess node) {
        ControllerServer server = empty(ControllerServer.class);
        doReturn(new KafkaConfig(node.settings(), false)).when(server).config();
        doReturn(cluster.clusterId()).when(server).clusterId();
        doReturn(sockets(node.controllerPort)).when(server).socketServer();
        Controller controller = empty(Controller.class);
        doAnswer(call -> CompletableFuture.completedFuture(topicIds(cluster.lasting()))).when(controller).findAllTopicIds(any());
        doReturn(controller).when(server).controller();
        RaftLog log = empty(RaftLog.class);
        doAnswer(call -> {
            cluster.ensureConsistentMetadata();
            return new LogOffsetMetadata(0);
        }).when(log).endOffset();
        KafkaRaftManager<?> raft = mock(KafkaRaftManager.class, (Answer<Object>) Inside::skip);
        doReturn(log).when(raft).raftLog();
        doReturn(raft).when(server).raftManager();
        return server;
    }

    private static SocketServer sockets(int port) {
        SocketServer sockets = empty(SocketServer.class);
        doReturn(port).when(sockets).boundPort(any());
        return sockets;
    }

    private static Map<String, Uuid> topicIds(Admin admin) throws Exception {
        return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get().stream()
            .collect(Collectors.toMap(TopicListing::name, TopicListing::topicId));
    }

    private static KRaftMetadataCache metadata(ProcessCluster cluster) {
        KRaftMetadataCache cache = empty(KRaftMetadataCache.class);
        doAnswer(call -> topic(cluster, call).map(found -> found.partitions().size())).when(cache).numPartitions(any());
        doAnswer(call -> topic(cluster, call).isPresent()).when(cache).contains(any(String.class));
        doAnswer(call -> topic(cluster, call).map(TopicDescription::topicId).orElse(Uuid.ZERO_UUID)).when(cache).getTopicId(any());
        doAnswer(call -> ProcessCluster.topics(cluster.lasting())).when(cache).getAllTopics();
        doAnswer(call -> new ArrayList<>(cluster.lasting().describeCluster().nodes().get())).when(cache).getAliveBrokerNodes(any());
        doAnswer(call -> {
            int id = call.getArgument(0);
            return cluster.lasting().describeCluster().nodes().get().stream().anyMatch(node -> node.id() == id);
        }).when(cache).hasAliveBroker(anyInt());
        doAnswer(call -> {
            int index = call.getArgument(1);
            return topic(cluster, call).filter(found -> index < found.partitions().size()).map(found -> leaderAndIsr(found.partitions().get(index)));
        }).when(cache).getLeaderAndIsr(any(), anyInt());
        return cache;
    }

    private static Optional<TopicDescription> topic(ProcessCluster cluster, InvocationOnMock call) throws Exception {
        String name = call.getArgument(0);
        try {
            return Optional.of(cluster.lasting().describeTopics(List.of(name)).allTopicNames().get().get(name));
        } catch (ExecutionException e) {
            return Optional.empty();
        }
    }

    private static LeaderAndIsr leaderAndIsr(TopicPartitionInfo partition) {
        int leader = partition.leader() == null ? LeaderAndIsr.NO_LEADER : partition.leader().id();
        List<Integer> isr = partition.isr().stream().map(Node::id).collect(Collectors.toList());
        return new LeaderAndIsr(leader, 0, isr, LeaderRecoveryState.RECOVERED, 0);
    }
}
