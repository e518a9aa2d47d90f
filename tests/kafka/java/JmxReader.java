import com.sun.tools.attach.VirtualMachine;
import java.util.TreeSet;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Prints the attributes of a running JVM's mbeans. Its arguments are the process id and patterns of names. Each line
 * has name, attribute and value with tabs between them. An attribute that cannot be read is left out.
 */
public final class JmxReader {
    public static void main(String[] arguments) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(arguments[0]);
        String address = machine.startLocalManagementAgent();
        machine.detach();
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection beans = connector.getMBeanServerConnection();
            for (int i = 1; i < arguments.length; i++) {
                for (ObjectName name : new TreeSet<>(beans.queryNames(new ObjectName(arguments[i]), null))) {
                    for (MBeanAttributeInfo attribute : beans.getMBeanInfo(name).getAttributes()) {
                        print(beans, name, attribute.getName());
                    }
                }
            }
        }
    }

    private static void print(MBeanServerConnection beans, ObjectName name, String attribute) {
        try {
            Object value = beans.getAttribute(name, attribute);
            System.out.println(name + "\t" + attribute + "\t" + value);
        } catch (Exception unreadable) {
            // It cannot be read.
        }
    }
}
