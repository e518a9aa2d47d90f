package org.apache.kafka.coordinator.group.assignor;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;

import kraftd.Suite;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

import static kraftd.Suite.field;
import static kraftd.Suite.line;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;

/**
 * Runs Kafka's own tests of its assignors, and writes what each is given and gives.
 *
 * "assign ASSIGNOR TYPE TOPICS MEMBERS ASSIGNABLE", then "gave MEMBERS" or "refused". Topics are "id=count;", members
 * "id|instance or -|ids,|id:index.index,;", what a share group may assign "id:index.index,".
 */
public final class KafkasAssignors {
    private KafkasAssignors() {
    }

    public static void main(String[] classes) {
        String here = KafkasAssignors.class.getPackageName() + ".";
        new AgentBuilder.Default().
            type(namedOneOf(here + "UniformAssignor", here + "RangeAssignor", here + "SimpleAssignor")).
            transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Assign.class).on(named("assign")))).
            installOn(ByteBuddyAgent.install());
        Suite.run(classes);
    }

    public static class Assign {
        @Advice.OnMethodEnter
        public static void enter(
            @Advice.Origin("#t") String assignor,
            @Advice.Argument(0) GroupSpec spec,
            @Advice.Argument(1) SubscribedTopicDescriber topics
        ) {
            asked(assignor, spec, topics);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Return GroupAssignment given, @Advice.Thrown Throwable thrown) {
            if (thrown == null) gave(given);
            else line("refused", thrown.getClass().getSimpleName());
        }
    }

    public static void asked(String assignor, GroupSpec spec, SubscribedTopicDescriber topics) {
        Set<Uuid> named = new LinkedHashSet<>();
        List<String> members = new ArrayList<>();
        for (String id : spec.memberIds()) {
            Set<Uuid> subscribed = spec.memberSubscription(id).subscribedTopicIds();
            named.addAll(subscribed);
            members.add(id + "|" + spec.memberSubscription(id).instanceId().orElse("-") + "|"
                + subscribed.stream().map(Uuid::toString).collect(Collectors.joining(",")) + "|"
                + shown(spec.memberAssignment(id).partitions()));
        }
        String counts = named.stream().map(id -> id + "=" + topics.numPartitions(id)).collect(Collectors.joining(";"));
        Object assignable = spec instanceof GroupSpecImpl ? field(spec, "topicPartitionAllowedMap") : Optional.empty();
        line("assign", assignor.substring(assignor.lastIndexOf('.') + 1), spec.subscriptionType(), counts, String.join(";", members),
            ((Optional<?>) assignable).map(some -> shown((Map<?, ?>) some)).orElse("all"));
    }

    public static void gave(GroupAssignment given) {
        line("gave", given.members().entrySet().stream().map(one -> one.getKey() + "|" + shown(one.getValue().partitions())).
            collect(Collectors.joining(";")));
    }

    private static String shown(Map<?, ?> partitions) {
        return partitions.entrySet().stream().map(one -> one.getKey() + ":" + ((Collection<?>) one.getValue()).stream().
            map(String::valueOf).collect(Collectors.joining("."))).collect(Collectors.joining(","));
    }
}
