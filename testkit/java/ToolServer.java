import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's command line tools in one resident JVM, many at a time if asked to.
 *
 * A connection carries one run. Request: int argument count, then per argument int length and UTF-8 bytes (the
 * first is the main class), then int length and bytes of standard input. Answer: int exit code, int length and
 * bytes of standard output, int length and bytes of standard error.
 *
 * Streams belong to the run, not to the JVM: threads that a tool starts inherit those of their parent. The process
 * prints its port on the first line and ends when its standard input ends, so it cannot outlive its owner.
 */
public final class ToolServer {
    /** What Exit.exit throws instead of ending the JVM. */
    private static final class Ended extends Error {
        Ended() {
            super("ended by Exit.exit", null, false, false);
        }
    }

    private static final class Run {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final InputStream in;
        final Queue<Runnable> hooks = new ConcurrentLinkedQueue<>();
        volatile Integer code;

        Run(byte[] input) {
            in = new ByteArrayInputStream(input);
        }

        /** The first code wins: tools that catch Throwable around Exit.exit call it a second time. */
        synchronized void end(int status) {
            if (code == null) {
                code = status;
            }
        }
    }

    private static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();
    private static final PrintStream REAL_ERR = System.err;

    private static PrintStream perRun(boolean isOut) {
        return new PrintStream(new OutputStream() {
            private OutputStream target() {
                Run run = CURRENT.get();
                return run == null ? REAL_ERR : isOut ? run.out : run.err;
            }

            @Override
            public void write(int value) throws IOException {
                target().write(value);
            }

            @Override
            public void write(byte[] bytes, int from, int length) throws IOException {
                target().write(bytes, from, length);
            }
        }, true, StandardCharsets.UTF_8) {
            /** A tool may close its output at its end; the next one needs it. */
            @Override
            public void close() {
                flush();
            }
        };
    }

    private static InputStream perRunInput() {
        return new InputStream() {
            @Override
            public int read() throws IOException {
                Run run = CURRENT.get();
                return run == null ? -1 : run.in.read();
            }

            @Override
            public int read(byte[] bytes, int from, int length) throws IOException {
                Run run = CURRENT.get();
                return run == null ? -1 : run.in.read(bytes, from, length);
            }
        };
    }

    private static byte[] readBlock(DataInputStream from) throws IOException {
        byte[] block = new byte[from.readInt()];
        from.readFully(block);
        return block;
    }

    private static void writeBlock(DataOutputStream to, byte[] block) throws IOException {
        to.writeInt(block.length);
        to.write(block);
    }

    private static void invoke(Run run, String mainClass, String[] arguments) {
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
            run.end(0);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                error.getCause().printStackTrace();
                run.end(1);
            }
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            run.end(127);
        }
    }

    private static void serve(Socket socket) {
        try (socket; DataInputStream from = new DataInputStream(socket.getInputStream());
                DataOutputStream to = new DataOutputStream(socket.getOutputStream())) {
            String[] words = new String[from.readInt()];
            for (int index = 0; index < words.length; index++) {
                words[index] = new String(readBlock(from), StandardCharsets.UTF_8);
            }
            Run run = new Run(readBlock(from));
            CURRENT.set(run);
            invoke(run, words[0], Arrays.copyOfRange(words, 1, words.length));
            run.hooks.forEach(Runnable::run);
            System.out.flush();
            System.err.flush();
            to.writeInt(run.code == null ? 1 : run.code);
            writeBlock(to, run.out.toByteArray());
            writeBlock(to, run.err.toByteArray());
        } catch (IOException error) {
            error.printStackTrace(REAL_ERR);
        }
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream announce = System.out;
        InputStream owner = System.in;
        System.setOut(perRun(true));
        System.setErr(perRun(false));
        System.setIn(perRunInput());
        Exit.Procedure end = (status, message) -> {
            Run run = CURRENT.get();
            if (run != null) {
                run.end(status);
            }
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        // The end of a run is to its tool what the end of the JVM would be: some give up locks only then.
        Exit.setShutdownHookAdder((name, hook) -> {
            Run run = CURRENT.get();
            if (run != null) {
                run.hooks.add(hook);
            }
        });

        Thread watch = new Thread(() -> {
            try {
                while (owner.read() >= 0) {
                    // Only the end of the stream means anything.
                }
            } catch (IOException error) {
                // An error is treated like its end.
            }
            Runtime.getRuntime().halt(0);
        }, "owner-watch");
        watch.setDaemon(true);
        watch.start();

        try (ServerSocket server = new ServerSocket(0, 64, InetAddress.getLoopbackAddress())) {
            announce.println(server.getLocalPort());
            announce.flush();
            while (true) {
                Socket socket = server.accept();
                new Thread(() -> serve(socket), "tool").start();
            }
        }
    }
}
