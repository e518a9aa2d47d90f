import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Loads ACLs into Kafka's StandardAuthorizer and asks it. The file has a line an ACL (name, pattern, principal), an
 * empty one, and a line a question (principal, name). Prints the CPU milliseconds of the first load, the microseconds
 * of a decision once they were all asked five times, how many were allowed, and the microseconds of a question about
 * any topic once the first ones were asked five times.
 */
public class AclBench {
    private static final AclOperation READ = AclOperation.READ;
    private static final int QUESTIONS_ABOUT_ANY = 100;

    private record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        @Override public String listenerName() { return "CONTROLLER"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        @Override public int requestType() { return 19; }
        @Override public int requestVersion() { return 7; }
        @Override public String clientId() { return "bench"; }
        @Override public int correlationId() { return 1; }
    }

    public static void main(String[] arguments) throws Exception {
        Map<Uuid, StandardAcl> acls = new LinkedHashMap<>();
        List<Context> contexts = new ArrayList<>();
        List<List<Action>> actions = new ArrayList<>();
        boolean asks = false;
        InetAddress host = InetAddress.getByName("10.0.0.1");
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] f = line.split("\t");
            if (line.isEmpty()) {
                asks = true;
            } else if (asks) {
                contexts.add(new Context(new KafkaPrincipal("User", f[0].substring(5)), host));
                ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, f[1], PatternType.LITERAL);
                actions.add(List.of(new Action(READ, pattern, 1, true, true)));
            } else {
                acls.put(Uuid.randomUuid(), new StandardAcl(ResourceType.TOPIC, f[0],
                    PatternType.fromCode(Byte.parseByte(f[1])), f[2], "*", READ, AclPermissionType.ALLOW));
            }
        }
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", "User:root", "node.id", "1"));
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        long began = cpuNanos();
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        double loadMs = (cpuNanos() - began) / 1e6;
        int allowed = 0;
        double decisionUs = 0;
        for (int round = 0; round < 6; round++) {
            allowed = 0;
            long from = System.nanoTime();
            for (int at = 0; at < contexts.size(); at++) {
                if (authorizer.authorize(contexts.get(at), actions.get(at)).get(0) == AuthorizationResult.ALLOWED) {
                    allowed++;
                }
            }
            decisionUs = (System.nanoTime() - from) / 1e3 / contexts.size();
        }
        double anyUs = 0;
        for (int round = 0; round < 6; round++) {
            long from = System.nanoTime();
            for (Context context : contexts.subList(0, QUESTIONS_ABOUT_ANY)) {
                authorizer.authorizeByResourceType(context, READ, ResourceType.TOPIC);
            }
            anyUs = (System.nanoTime() - from) / 1e3 / QUESTIONS_ABOUT_ANY;
        }
        System.out.println(loadMs + " " + decisionUs + " " + allowed + " " + anyUs);
    }

    /** Of all threads: the compiler's and the collector's work is work. */
    private static long cpuNanos() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }
}
