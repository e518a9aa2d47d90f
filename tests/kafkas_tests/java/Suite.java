package kraftd;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.StringJoiner;
import java.util.stream.Collectors;

/**
 * Runs classes of Kafka's own tests, while an agent writes what they ask Kafka for to the output.
 *
 * A line has columns with tabs between. "test NAME" and "ended STATUS WHY" are the ends of a test.
 */
public final class Suite {
    private static final PrintStream OUT = System.out;

    private Suite() {
    }

    public static void run(String... classes) {
        System.setOut(System.err);
        LauncherFactory.create().execute(
            LauncherDiscoveryRequestBuilder.request().selectors(
                Arrays.stream(classes).map(DiscoverySelectors::selectClass).collect(Collectors.toList())).build(),
            new TestExecutionListener() {
                @Override
                public void executionStarted(TestIdentifier started) {
                    if (started.isTest()) started.getSource().map(MethodSource.class::cast).ifPresent(source ->
                        line("test", source.getJavaClass().getSimpleName() + "." + source.getMethodName()));
                }

                @Override
                public void executionFinished(TestIdentifier ended, TestExecutionResult result) {
                    if (ended.isTest()) line("ended", result.getStatus(), result.getThrowable().map(String::valueOf).orElse(""));
                }
            });
        OUT.flush();
    }

    public static synchronized void line(Object... columns) {
        StringJoiner line = new StringJoiner("\t");
        for (Object column : columns) line.add(String.valueOf(column).replace('\n', ' '));
        OUT.println(line);
    }

    /** The value of a field of an object or of its superclasses; null without such a field. */
    public static Object field(Object object, String name) {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Field field = type.getDeclaredField(name);
                field.setAccessible(true);
                return field.get(object);
            } catch (NoSuchFieldException e) {
                continue;  // of a superclass
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
        }
        return null;
    }
}
