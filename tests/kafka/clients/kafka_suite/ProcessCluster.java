package org.apache.kafka.common.test.junit;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.TestKitDefaults;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.opentest4j.TestAbortedException;

/** A cluster of kraftd processes. What a test asks of a broker's inside is answered by Inside. */
class ProcessCluster implements ClusterInstance {
    private static final long PATIENCE_MS = 60_000;
    private static final String PERSISTER = "group.share.persister.class.name";

    private final ClusterConfig config;
    private final boolean combined;
    private final Map<Integer, NodeProcess> nodes = new TreeMap<>();
    private final Map<Integer, KafkaBroker> brokers = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    private final Set<Integer> down = new HashSet<>();
    private String clusterId;
    private Path home;
    private Admin admin;
    private boolean started;
    private boolean stopped;

    ProcessCluster(ClusterConfig config, boolean combined) {
        this.config = config;
        this.combined = combined;
    }

    void format() throws Exception {
        if (home != null) return;
        home = Files.createTempDirectory(Path.of(System.getProperty("kraftd.tmp")), "cluster-");
        clusterId = Uuid.randomUuid().toString();
        int first = combined ? TestKitDefaults.BROKER_ID_OFFSET : TestKitDefaults.CONTROLLER_ID_OFFSET;
        Set<Integer> brokerIds = range(TestKitDefaults.BROKER_ID_OFFSET, config.numBrokers());
        Set<Integer> controllerIds = range(first, config.numControllers());
        Set<Integer> all = new TreeSet<>(brokerIds);
        all.addAll(controllerIds);
        for (int id : all)
            nodes.put(id, new NodeProcess(id, brokerIds.contains(id), controllerIds.contains(id), home.resolve("node-" + id)));
        for (NodeProcess node : nodes.values()) {
            node.configure(settings(node));
            node.format(clusterId, formatOptions(node));
        }
    }

    private static Set<Integer> range(int first, int count) {
        return IntStream.range(first, first + count).boxed().collect(Collectors.toSet());
    }

    private Map<String, String> settings(NodeProcess node) {
        String forClients = config.brokerListenerName().value();
        String forControllers = config.controllerListenerName().value();
        Map<String, String> found = new TreeMap<>(config.serverProperties());
        String metadata = node.home.resolve("metadata").toString();
        found.put("process.roles", node.roles());
        found.put("node.id", Integer.toString(node.id));
        found.put("metadata.log.dir", metadata);
        found.put("log.dirs", node.isBroker() ? disks(node) : metadata);
        found.putIfAbsent(
            "listener.security.protocol.map",
            forClients + ":" + config.brokerSecurityProtocol() + "," + forControllers + ":" + config.controllerSecurityProtocol());
        List<String> listeners = new ArrayList<>();
        if (node.isBroker()) listeners.add(forClients + "://localhost:" + node.brokerPort);
        if (node.isController()) listeners.add(forControllers + "://localhost:" + node.controllerPort);
        found.putIfAbsent("listeners", String.join(",", listeners));
        found.putIfAbsent("inter.broker.listener.name", forClients);
        found.putIfAbsent("controller.listener.names", forControllers);
        found.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152"); // as in Kafka's kit: enough for one thread
        if (config.standalone()) found.put("controller.quorum.bootstrap.servers", bootstrapControllers());
        else found.put("controller.quorum.voters", voters());
        if (node.isBroker()) found.remove("controller.quorum.auto.join.enable");
        secure(found, forClients, config.brokerSecurityProtocol(), node.isBroker());
        secure(found, forControllers, config.controllerSecurityProtocol(), node.isController());
        keepShareState(found);
        found.putAll(config.perServerOverrideProperties().getOrDefault(node.id, Map.of()));
        return found;
    }

    private String disks(NodeProcess node) {
        return IntStream.range(0, config.numDisksPerBroker())
            .mapToObj(n -> node.home.resolve("data" + n).toString())
            .collect(Collectors.joining(","));
    }

    private String voters() {
        return joined(NodeProcess::isController, node -> node.id + "@localhost:" + node.controllerPort);
    }

    /** A listener with SASL. As in Kafka's kit, it has an authorizer where the node itself has that listener. */
    private static void secure(Map<String, String> settings, String listener, SecurityProtocol protocol, boolean own) {
        if (protocol != SecurityProtocol.SASL_PLAINTEXT) return;
        settings.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        settings.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        settings.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
        if (own) {
            settings.putIfAbsent("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
            settings.putIfAbsent("allow.everyone.if.no.acl.found", "false");
            settings.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        }
        settings.put(
            "listener.name." + listener.toLowerCase() + ".plain.sasl.jaas.config",
            String.format(
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\" user_%s=\"%s\" user_%s=\"%s\";",
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
                JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
    }

    /** Tests that switch the state of share groups off get a state topic of one replica: kraftd always keeps it. */
    private static void keepShareState(Map<String, String> settings) {
        if (!"".equals(settings.get(PERSISTER))) return;
        settings.remove(PERSISTER);
        settings.putIfAbsent("share.coordinator.state.topic.replication.factor", "1");
        settings.putIfAbsent("share.coordinator.state.topic.min.isr", "1");
        settings.putIfAbsent("share.coordinator.state.topic.num.partitions", "1");
    }

    private List<String> formatOptions(NodeProcess node) {
        MetadataVersion last = MetadataVersion.latestProduction();
        MetadataVersion version = config.metadataVersion().isAtLeast(last) ? last : config.metadataVersion();
        List<String> options = new ArrayList<>(List.of("--feature", "metadata.version=" + version.featureLevel()));
        config.features().forEach((feature, level) -> options.addAll(List.of("--feature", feature.featureName() + "=" + level)));
        if (config.standalone()) options.add(node.isController() ? "--standalone" : "--no-initial-controllers");
        return options;
    }

    @Override
    public void start() {
        if (started) return;
        started = true;
        try {
            format();
            nodes.values().forEach(NodeProcess::start);
            waitForReadyBrokers();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    @Override
    public void stop() {
        if (stopped) return;
        stopped = true;
        if (admin != null) admin.close(Duration.ofSeconds(1));
        stopAtOnce(node -> !node.isController());
        stopAtOnce(NodeProcess::isController);
    }

    private void stopAtOnce(Predicate<NodeProcess> which) {
        List<Thread> threads = nodes.values().stream().filter(which).map(node -> new Thread(node::stop)).toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Stop the nodes; their directories stay after a failure, for a look at their logs. */
    void remove(Optional<Throwable> failure) throws IOException {
        stop();
        if (home == null) return;
        if (failure.isPresent() && !(failure.get() instanceof TestAbortedException)) {
            System.err.println("KEPT " + home);
            return;
        }
        List<Path> paths;
        try (Stream<Path> all = Files.walk(home)) {
            paths = all.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path path : paths) Files.deleteIfExists(path);
    }

    @Override
    public void shutdownBroker(int brokerId) {
        if (down.add(brokerId)) broker(brokerId).stop();
    }

    @Override
    public void startBroker(int brokerId) {
        if (!down.remove(brokerId)) return;
        broker(brokerId).start();
        try {
            waitForReadyBrokers();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    private NodeProcess broker(int brokerId) {
        NodeProcess node = nodes.get(brokerId);
        if (node == null || !node.isBroker()) throw new IllegalArgumentException("Unknown brokerId " + brokerId);
        return node;
    }

    boolean isDown(int brokerId) {
        return down.contains(brokerId);
    }

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        List<NodeProcess> up = nodes.values().stream().filter(node -> !down.contains(node.id)).toList();
        Predicate<List<NodeProcess>> ended = some -> some.stream().anyMatch(NodeProcess::hasEnded);
        TestUtils.waitForCondition(() -> ended.test(up) || up.stream().allMatch(NodeProcess::listens), PATIENCE_MS, () -> "all nodes listen");
        int expected = (int) up.stream().filter(NodeProcess::isBroker).count();
        DescribeClusterOptions soon = new DescribeClusterOptions().timeoutMs(5000);
        if (expected > 0)
            waitUntil("all brokers are ready", a -> ended.test(up) || a.describeCluster(soon).nodes().get().size() == expected);
        for (NodeProcess node : up)
            if (node.hasEnded()) throw new TestAbortedException("node " + node.id + ": " + node.lastLines("node.log"));
    }

    interface Condition {
        boolean holds(Admin admin) throws Exception;
    }

    private void waitUntil(String what, Condition condition) throws InterruptedException {
        Admin asking = admin();
        try (asking) {
            TestUtils.waitForCondition(() -> {
                try {
                    return condition.holds(asking);
                } catch (ExecutionException e) {
                    return false;
                }
            }, PATIENCE_MS, () -> what);
        }
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        waitUntil("topic " + topic + " is there", a -> a.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == partitions);
        ensureConsistentMetadata();
        if (!down.isEmpty()) return;
        Map<TopicPartition, OffsetSpec> all = IntStream.range(0, partitions).boxed()
            .collect(Collectors.toMap(index -> new TopicPartition(topic, index), index -> OffsetSpec.earliest()));
        waitUntil("the leaders of " + topic + " serve it", a -> a.listOffsets(all).all().get().size() == partitions);
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        waitUntil("topic " + topic + " is gone", a -> !topics(a).contains(topic));
        ensureConsistentMetadata();
    }

    static Set<String> topics(Admin admin) throws InterruptedException, ExecutionException {
        return admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
    }

    /** Every replica has what the leader's log holds now, and the coordinators have opened their partitions. */
    @Override
    public void ensureConsistentMetadata() throws InterruptedException {
        waitUntil("all nodes have the metadata", a -> {
            long end = replicas(a).mapToLong(QuorumInfo.ReplicaState::logEndOffset).max().orElse(0);
            TestUtils.waitForCondition(
                () -> replicas(a).filter(one -> !down.contains(one.replicaId())).allMatch(one -> one.logEndOffset() >= end),
                PATIENCE_MS, () -> "all nodes have offset " + end);
            Thread.sleep(100); // a broker reports an offset when it has the record, and applies it after that
            if (down.isEmpty()) openCoordinators(a);
            return true;
        });
    }

    private static Stream<QuorumInfo.ReplicaState> replicas(Admin admin) throws InterruptedException, ExecutionException {
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        return Stream.concat(quorum.voters().stream(), quorum.observers().stream());
    }

    private static void openCoordinators(Admin admin) throws InterruptedException, ExecutionException {
        Set<String> names = topics(admin);
        try {
            if (names.contains("__consumer_offsets")) admin.describeConsumerGroups(List.of("absent")).all().get();
        } catch (ExecutionException e) {
            // The coordinator answered that there is no such group.
        }
        try {
            if (names.contains("__transaction_state")) admin.describeTransactions(List.of("absent")).all().get();
        } catch (ExecutionException e) {
            // The coordinator answered that there is no such id.
        }
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        Set<AccessControlEntry> expected = Set.copyOf(entries);
        waitUntil("the ACLs", a -> a.describeAcls(filter).values().get().stream().map(AclBinding::entry).collect(Collectors.toSet()).equals(expected));
        ensureConsistentMetadata();
    }

    @Override
    public List<Authorizer> authorizers() {
        throw new TestAbortedException(Inside.WHY + "authorizers");
    }

    /** A client that lives as long as the cluster. */
    synchronized Admin lasting() {
        if (admin == null) admin = admin();
        return admin;
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        for (NodeProcess node : nodes.values())
            if (node.isBroker()) brokers.computeIfAbsent(node.id, id -> Inside.broker(this, node));
        return new TreeMap<>(brokers);
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        for (NodeProcess node : nodes.values())
            if (node.isController()) controllers.computeIfAbsent(node.id, id -> Inside.controller(this, node));
        return new TreeMap<>(controllers);
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        if (down.containsAll(brokerIds())) return Map.of(); // the first stand-in takes seconds, and none is needed
        Map<Integer, KafkaBroker> alive = brokers();
        alive.keySet().removeAll(down);
        return alive;
    }

    @Override
    public Set<Integer> brokerIds() {
        return ids(NodeProcess::isBroker);
    }

    @Override
    public Set<Integer> controllerIds() {
        return ids(NodeProcess::isController);
    }

    private Set<Integer> ids(Predicate<NodeProcess> which) {
        return nodes.values().stream().filter(which).map(node -> node.id).collect(Collectors.toCollection(TreeSet::new));
    }

    private String joined(Predicate<NodeProcess> which, java.util.function.Function<NodeProcess, String> text) {
        return nodes.values().stream().filter(which).map(text).collect(Collectors.joining(","));
    }

    @Override
    public String bootstrapServers() {
        return joined(NodeProcess::isBroker, node -> "localhost:" + node.brokerPort);
    }

    @Override
    public String bootstrapControllers() {
        return joined(NodeProcess::isController, node -> "localhost:" + node.controllerPort);
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return nodes.values().stream().filter(NodeProcess::isBroker).map(node -> node.brokerPort).toList();
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return nodes.values().stream().filter(NodeProcess::isController).map(node -> node.controllerPort).toList();
    }

    @Override
    public Type type() {
        return combined ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String clusterId() {
        return clusterId;
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    @Override
    public boolean started() {
        return started;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }
}
