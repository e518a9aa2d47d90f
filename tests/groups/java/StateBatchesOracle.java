package org.apache.kafka.coordinator.share;

import org.apache.kafka.server.share.persister.PersisterStateBatch;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/**
 * Lays batches of a share partition over former ones, as Kafka's share coordinator does. A line is the start offset,
 * the former batches and the newer ones, as first:last:state:count with semicolons, or "-"; the answer is such a list.
 */
public final class StateBatchesOracle {
    private StateBatchesOracle() { }

    public static void main(String[] arguments) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = input.readLine()) != null) {
            String[] words = line.split(" ");
            List<PersisterStateBatch> combined = new PersisterStateBatchCombiner(
                batches(words[1]), batches(words[2]), Long.parseLong(words[0])).combineStateBatches();
            List<String> rows = new ArrayList<>();
            for (PersisterStateBatch one : combined) {
                rows.add(one.firstOffset() + ":" + one.lastOffset() + ":" + one.deliveryState() + ":" + one.deliveryCount());
            }
            System.out.println(rows.isEmpty() ? "-" : String.join(";", rows));
            System.out.flush();
        }
    }

    private static List<PersisterStateBatch> batches(String text) {
        List<PersisterStateBatch> found = new ArrayList<>();
        for (String row : text.equals("-") ? new String[0] : text.split(";")) {
            String[] fields = row.split(":");
            found.add(new PersisterStateBatch(Long.parseLong(fields[0]), Long.parseLong(fields[1]),
                Byte.parseByte(fields[2]), Short.parseShort(fields[3])));
        }
        return found;
    }
}
