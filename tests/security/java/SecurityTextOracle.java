import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.x500.X500Principal;

import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Parses texts by Kafka's classes; fields are base64, separated by spaces, one case a line; so are answers.
 * "map" rules name: the principal's name; "jaas" text: module and options; "dn" DER of a name: RFC 2253.
 * "jwt" key set, token, audience or nothing: the subject of a token of the issuer "issuer". "!" is an error.
 */
public class SecurityTextOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split(" ", -1);
            String answer;
            try {
                switch (f[0]) {
                    case "map": answer = encode(SslPrincipalMapper.fromRules(text(f[1])).getName(text(f[2]))); break;
                    case "jwt": answer = subject(text(f[1]), text(f[2]), text(f[3])); break;
                    case "jaas": answer = jaas(text(f[1])); break;
                    default: answer = encode(new X500Principal(Base64.getDecoder().decode(f[1])).getName()); break;
                }
            } catch (Exception e) {
                answer = "!";
            }
            out.println(answer);
        }
    }

    private static String jaas(String text) {
        JaasContext context = JaasContext.loadServerContext(new ListenerName("L"), "PLAIN",
            Map.of("listener.name.l.plain.sasl.jaas.config", new Password(text), "plain.sasl.jaas.config", new Password(text)));
        AppConfigurationEntry entry = context.configurationEntries().get(0);
        StringBuilder answer = new StringBuilder(encode(entry.getLoginModuleName()));
        new TreeMap<String, Object>(entry.getOptions()).forEach((key, value) ->
            answer.append(' ').append(encode(key)).append('=').append(encode(value.toString())));
        return answer.toString();
    }

    private static String subject(String keys, String token, String audience) throws Exception {
        AppConfigurationEntry entry = new AppConfigurationEntry(
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
            AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of());
        Path file = Files.createTempFile("jwks", ".json");
        try {
            Files.writeString(file, keys);
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", file.toUri().toString());
            try (BrokerJwtValidator validator = new BrokerJwtValidator()) {
                validator.configure(Map.of(
                    "sasl.oauthbearer.jwks.endpoint.url", file.toUri().toString(),
                    "sasl.oauthbearer.expected.audience", audience.isEmpty() ? List.of() : List.of(audience),
                    "sasl.oauthbearer.expected.issuer", "issuer",
                    "sasl.oauthbearer.clock.skew.seconds", 30,
                    "sasl.oauthbearer.scope.claim.name", "scope",
                    "sasl.oauthbearer.sub.claim.name", "sub"), "OAUTHBEARER", List.of(entry));
                return encode(validator.validate(token).principalName());
            }
        } finally {
            Files.delete(file);
        }
    }

    private static String text(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
