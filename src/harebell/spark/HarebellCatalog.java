package io.harebell.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The queues of a virtual host as tables: {@code harebell.default.orders} is the queue
 * {@code orders}.
 *
 * <p>Spark makes catalogs by the name of a class of the JVM, so Python cannot be one. This class
 * does nothing but name the queue: schemas, reads and writes are those of the format
 * {@code harebell}, which is Python. Settings {@code spark.sql.catalog.NAME.OPTION} are options of
 * the format for all tables.
 */
public final class HarebellCatalog implements TableCatalog, SupportsNamespaces {
  private static final String FORMAT = "harebell";
  private static final String LISTING = "harebell.catalog.tables";
  private static final String[] DEFAULT = {"default"};
  private String name;
  private Map<String, String> options = Map.of();

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.options = new HashMap<>(options.asCaseSensitiveMap());
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return DEFAULT;
  }

  // --- tables ---------------------------------------------------------------------------------

  @Override
  public Table loadTable(Identifier identifier) {
    String[] namespace = identifier.namespace();
    if (!isDefault(namespace)) {
      throw onlyDefault(namespace, identifier.name());
    }
    Map<String, String> chosen = new HashMap<>(options);
    chosen.put("queue", identifier.name());
    return new QueueTable(name + ".default." + identifier.name(), chosen);
  }

  @Override
  public boolean tableExists(Identifier identifier) {
    return isDefault(identifier.namespace()) && queues(identifier.name()).length == 1;
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
    return Arrays.stream(queues(""))
        .map(queue -> Identifier.of(DEFAULT, queue))
        .toArray(Identifier[]::new);
  }

  /** The queues that the user may read, or the one of a name, as names of columns of the format. */
  private String[] queues(String named) {
    Map<String, String> chosen = new HashMap<>(options);
    chosen.put(LISTING, named);
    return QueueTable.source().inferSchema(new CaseInsensitiveStringMap(chosen)).fieldNames();
  }

  @Override
  public Table createTable(
      Identifier identifier, StructType schema, Transform[] parts, Map<String, String> properties) {
    throw refused("creates no queues", "`harebell queues declare` does");
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) {
    throw refused("changes no queues", "a queue has the columns of the format harebell");
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    throw refused("deletes no queues", "`harebell queues delete` does");
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw refused("renames no queues", "declare another one");
  }

  // --- namespaces -----------------------------------------------------------------------------

  @Override
  public String[][] listNamespaces() {
    return new String[][] {DEFAULT};
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    if (!isDefault(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return Map.of();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    throw refused("creates no namespaces", "it has default, the virtual host of its url");
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw refused("changes no namespaces", "it has default, the virtual host of its url");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw refused("deletes no namespaces", "it has default, the virtual host of its url");
  }

  private UnsupportedOperationException onlyDefault(String[] namespace, String table) {
    String queue = table;
    if (namespace.length > 1 && namespace[0].equalsIgnoreCase(DEFAULT[0])) {
      // A queue with dots in its name, without the quotes.
      String[] parts = Arrays.copyOfRange(namespace, 1, namespace.length);
      queue = String.join(".", parts) + "." + table;
    }
    return new UnsupportedOperationException(
        "the catalog " + name + " has the namespace default only, the virtual host of its url: "
            + "write " + name + ".default.`" + queue + "`");
  }

  private static boolean isDefault(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(DEFAULT[0]);
  }

  private UnsupportedOperationException refused(String what, String instead) {
    return new UnsupportedOperationException("the catalog " + name + " " + what + ": " + instead);
  }

  /** One queue. Every read and write has a source of its own, which Spark fills with its state. */
  private static final class QueueTable implements SupportsRead, SupportsWrite {
    private final String name;
    private final Map<String, String> options;
    private final StructType schema;

    QueueTable(String name, Map<String, String> options) {
      this.name = name;
      this.options = options;
      this.schema = source().inferSchema(new CaseInsensitiveStringMap(options));
    }

    private static PythonDataSourceV2 source() {
      PythonDataSourceV2 made = new PythonDataSourceV2();
      made.setShortName(FORMAT);
      return made;
    }

    private Table table() {
      return source().getTable(schema, new Transform[0], Map.of());
    }

    private CaseInsensitiveStringMap with(CaseInsensitiveStringMap given) {
      Map<String, String> all = new HashMap<>();
      options.forEach((key, value) -> all.put(key.toLowerCase(java.util.Locale.ROOT), value));
      given.forEach((key, value) -> all.put(key.toLowerCase(java.util.Locale.ROOT), value));
      return new CaseInsensitiveStringMap(all);
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public StructType schema() {
      return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(
          TableCapability.BATCH_READ,
          TableCapability.MICRO_BATCH_READ,
          TableCapability.BATCH_WRITE,
          TableCapability.STREAMING_WRITE,
          TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
      return ((SupportsRead) table()).newScanBuilder(with(given));
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo given) {
      CaseInsensitiveStringMap all = with(given.options());
      return ((SupportsWrite) table())
          .newWriteBuilder(
              new LogicalWriteInfo() {
                @Override
                public CaseInsensitiveStringMap options() {
                  return all;
                }

                @Override
                public String queryId() {
                  return given.queryId();
                }

                @Override
                public StructType schema() {
                  return given.schema();
                }
              });
    }
  }
}
