package org.apache.kafka.common.test.junit;

import java.util.List;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.TestAbortedException;

/**
 * Stands in the place of Kafka's class of this name: a test that asks for a cluster gets processes of kraftd.
 * Where a test asks for both shapes, combined nodes and separate ones, only the shape kraftd.shape runs.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    @Override
    public String getDisplayName(int index) {
        return name + " [" + index + "] " + shape() + " " + String.join(",", config.tags());
    }

    private String shape() {
        return combined ? "combined" : "separate";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        ProcessCluster cluster = new ProcessCluster(config, combined);
        BeforeEachCallback before = context -> {
            if (config.clusterTypes().size() > 1 && !shape().equals(System.getProperty("kraftd.shape")))
                throw new TestAbortedException("the other shape");
            cluster.format();
            if (config.isAutoStart()) cluster.start();
        };
        AfterEachCallback after = context -> cluster.remove(context.getExecutionException());
        return List.of(before, after, new ClusterInstanceParameterResolver(cluster));
    }
}
