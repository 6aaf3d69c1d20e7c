import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URLEncoder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.velocity.VelocityContext;
import org.apache.velocity.app.VelocityEngine;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Renders the request template in a file, as API Gateway does, with Apache Velocity.
 * Each line of the input is one request: NAME=TYPE:VALUE, separated by blanks, the value
 * in base64. A name is one of $context, or "body". Each line of the output is the result
 * in base64.
 */
public class Render {
    /** What API Gateway documents of $util: functions that take a string. */
    public static class Util {
        public String urlEncode(String s) {
            return URLEncoder.encode(s, UTF_8);
        }

        public String base64Encode(String s) {
            return Base64.getEncoder().encodeToString(s.getBytes(UTF_8));
        }
    }

    /** A value of a type that is no string, as a node of a JSON tree is. */
    public static class Node {
        private final String text;

        Node(String text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text;
        }
    }

    static Object value(String type, String text) {
        return switch (type) {
            case "Null" -> null;
            case "String" -> text;
            case "Node" -> new Node(text);
            case "Long" -> Long.valueOf(text);
            case "BigInteger" -> new BigInteger(text);
            case "BigDecimal" -> new BigDecimal(text);
            case "Double" -> Double.valueOf(text);
            default -> throw new IllegalArgumentException("unknown type " + type);
        };
    }

    public static void main(String[] args) throws Exception {
        String template = Files.readString(Path.of(args[0]));
        VelocityEngine engine = new VelocityEngine();
        if (args[1].startsWith("1.")) {
            engine.setProperty("runtime.log.logsystem.class", "org.apache.velocity.runtime.log.NullLogChute");
        }
        engine.init();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> context = new HashMap<>();
            Map<String, Object> input = new HashMap<>();
            for (String field : line.split(" ")) {
                String[] named = field.split("=", 2);
                String[] typed = named[1].split(":", 2);
                String text = new String(Base64.getDecoder().decode(typed[1]), UTF_8);
                (named[0].equals("body") ? input : context).put(named[0], value(typed[0], text));
            }
            VelocityContext all = new VelocityContext();
            all.put("context", context);
            all.put("input", input);
            all.put("util", new Util());
            StringWriter out = new StringWriter();
            try {
                engine.evaluate(all, out, "template", template);
            } catch (RuntimeException e) {
                out.write(" failed: " + e);
            }
            System.out.println(Base64.getEncoder().encodeToString(out.toString().getBytes(UTF_8)));
        }
    }
}
