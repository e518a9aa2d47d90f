package org.apache.kafka.metadata.authorizer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.AuthorizerNotReadyException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Decides with Kafka's StandardAuthorizer. Fields are separated by tabs, one case a line:
 * "new" super users, allow if none; "acl" type name pattern principal host operation permission;
 * "remove" number of the ACL; "loaded"; "time" times, then as "ask";
 * "ask" principal host operation type name, answered A, D or N (not ready); "any" principal host operation type.
 */
public class AuthorizerOracle {
    private static StandardAuthorizer authorizer;
    private static final List<Uuid> IDS = new java.util.ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        StringBuilder answers = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            switch (f[0]) {
                case "new": start(f); break;
                case "acl": add(f); break;
                case "remove": authorizer.removeAcl(IDS.get(Integer.parseInt(f[1]))); break;
                case "loaded": authorizer.completeInitialLoad(); break;
                case "time": answers.append(time(f)).append('\n'); break;
                case "ask": answers.append(ask(f)); break;
                case "any": answers.append(letter(authorizer.authorizeByResourceType(
                    context(f[1], f[2]), AclOperation.fromCode(Byte.parseByte(f[3])),
                    ResourceType.fromCode(Byte.parseByte(f[4]))))); break;
                default: throw new IllegalArgumentException(line);
            }
        }
        out.println(answers);
        out.flush();
    }

    private static void start(String[] f) throws Exception {
        authorizer = new StandardAuthorizer();
        Map<String, Object> configs = new LinkedHashMap<>();
        configs.put("super.users", f[1]);
        configs.put("allow.everyone.if.no.acl.found", f[2]);
        configs.put("node.id", "1");
        authorizer.configure(configs);
        authorizer.withPluginMetrics(new org.apache.kafka.common.metrics.internals.PluginMetricsImpl(
            new Metrics(), Map.of()));
        IDS.clear();
    }

    private static void add(String[] f) {
        Uuid id = Uuid.randomUuid();
        IDS.add(id);
        authorizer.addAcl(id, new StandardAcl(ResourceType.fromCode(Byte.parseByte(f[1])), f[2],
            PatternType.fromCode(Byte.parseByte(f[3])), f[4], f[5],
            AclOperation.fromCode(Byte.parseByte(f[6])), AclPermissionType.fromCode(Byte.parseByte(f[7]))));
    }

    private static String ask(String[] f) {
        Action action = new Action(AclOperation.fromCode(Byte.parseByte(f[3])),
            new ResourcePattern(ResourceType.fromCode(Byte.parseByte(f[4])), f[5], PatternType.LITERAL), 1, false, false);
        try {
            return letter(authorizer.authorize(context(f[1], f[2]), List.of(action)).get(0));
        } catch (AuthorizerNotReadyException e) {
            return "N";
        } catch (StringIndexOutOfBoundsException e) {
            return "X";
        }
    }

    private static String time(String[] f) {
        int times = Integer.parseInt(f[1]);
        String[] asked = java.util.Arrays.copyOfRange(f, 1, f.length);
        for (int i = 0; i < times; i++) ask(asked);
        long began = System.nanoTime();
        for (int i = 0; i < times; i++) ask(asked);
        return Long.toString((System.nanoTime() - began) / times);
    }

    private static String letter(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? "A" : "D";
    }

    private static AuthorizableRequestContext context(String principal, String host) {
        int colon = principal.indexOf(':');
        KafkaPrincipal asker = new KafkaPrincipal(principal.substring(0, colon), principal.substring(colon + 1));
        return new AuthorizableRequestContext() {
            @Override public String listenerName() { return "CONTROLLER"; }
            @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
            @Override public KafkaPrincipal principal() { return asker; }
            @Override public InetAddress clientAddress() {
                try {
                    return InetAddress.getByName(host);
                } catch (java.net.UnknownHostException e) {
                    throw new IllegalArgumentException(e);
                }
            }
            @Override public int requestType() { return 19; }
            @Override public int requestVersion() { return 7; }
            @Override public String clientId() { return "oracle"; }
            @Override public int correlationId() { return 1; }
        };
    }
}
