package org.apache.kafka.common.test.junit;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.opentest4j.TestAbortedException;

/** A kraftd node: its directory, its file and its process. A port of 0 means that it lacks that role. */
class NodeProcess {
    final int id;
    final int brokerPort;
    final int controllerPort;
    final Path home;
    private Process process;

    NodeProcess(int id, boolean broker, boolean controller, Path home) throws IOException {
        this.id = id;
        this.brokerPort = broker ? freePort() : 0;
        this.controllerPort = controller ? freePort() : 0;
        this.home = Files.createDirectories(home);
    }

    boolean isBroker() {
        return brokerPort != 0;
    }

    boolean isController() {
        return controllerPort != 0;
    }

    String roles() {
        if (isBroker() && isController()) return "broker,controller";
        return isBroker() ? "broker" : "controller";
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private Path file() {
        return home.resolve("server.properties");
    }

    void configure(Map<String, String> settings) throws IOException {
        Properties properties = new Properties();
        properties.putAll(settings);
        try (OutputStream out = Files.newOutputStream(file())) {
            properties.store(out, null);
        }
    }

    Properties settings() {
        Properties found = new Properties();
        try (InputStream in = Files.newInputStream(file())) {
            found.load(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return found;
    }

    private Process kraftd(String log, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("kraftd.python"), "-m", "kraftd"));
        command.addAll(arguments);
        File output = home.resolve(log).toFile();
        return new ProcessBuilder(command)
            .directory(new File(System.getProperty("kraftd.home")))
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(output))
            .start();
    }

    /** Format the directories. A configuration that kraftd refuses skips the test, and says why. */
    void format(String clusterId, List<String> options) throws Exception {
        List<String> arguments = new ArrayList<>(List.of("format", "-c", file().toString(), "-t", clusterId));
        arguments.addAll(options);
        Process done = kraftd("format.log", arguments);
        if (!done.waitFor(60, TimeUnit.SECONDS) || done.exitValue() != 0)
            throw new TestAbortedException("format: " + lastLines("format.log"));
    }

    void start() {
        try {
            process = kraftd("node.log", List.of("start", file().toString()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    boolean hasEnded() {
        return process != null && !process.isAlive();
    }

    boolean listens() {
        return (!isBroker() || listens(brokerPort)) && (!isController() || listens(controllerPort));
    }

    private static boolean listens(int port) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1000);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** SIGTERM, and SIGKILL where that takes half a minute, which is said on standard error. */
    void stop() {
        if (process == null) return;
        process.destroy();
        try {
            if (process.waitFor(30, TimeUnit.SECONDS)) return;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        System.err.println("HUNG at its end: node " + id + " in " + home);
        process.destroyForcibly();
    }

    String lastLines(String log) {
        try {
            List<String> lines = Files.readAllLines(home.resolve(log));
            return String.join(" | ", lines.subList(Math.max(0, lines.size() - 4), lines.size()));
        } catch (IOException e) {
            return e.toString();
        }
    }
}
