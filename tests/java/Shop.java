// What a Java program does with a database, printed: run against PostgreSQL and against Riverdelta it prints the same.
// java -cp postgresql.jar Shop.java jdbc:postgresql://host:port/database?user=name

import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;

public class Shop {
    static void print(String title, ResultSet rs, String... columns) throws SQLException {
        System.out.println("-- " + title);
        ResultSetMetaData md = rs.getMetaData();
        List<String> lines = new ArrayList<>();
        while (rs.next()) {
            StringBuilder line = new StringBuilder();
            if (columns.length == 0) {
                for (int i = 1; i <= md.getColumnCount(); i++) line.append(i > 1 ? "|" : "").append(rs.getString(i));
            } else {
                for (String c : columns) line.append(line.length() > 0 ? "|" : "").append(rs.getString(c));
            }
            lines.add(line.toString());
        }
        lines.forEach(System.out::println);
        rs.close();
    }

    static void error(String title, SQLException e) {
        System.out.println("-- " + title + ": " + e.getSQLState());
    }

    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection(args[0])) {
            Statement s = c.createStatement();
            s.execute("CREATE TABLE item (id int PRIMARY KEY, name varchar(40) NOT NULL, price numeric(10,2) DEFAULT 1.50, tags text[], made date, at timestamptz, ok boolean, data jsonb, raw bytea, uid uuid, UNIQUE (name))");
            s.execute("CREATE TABLE part (item_id int, n smallint, f8 double precision, f4 real, big bigint, PRIMARY KEY (item_id, n))");
            s.execute("CREATE INDEX part_big ON part (big)");
            s.execute("CREATE VIEW dear AS SELECT id, name FROM item WHERE price > 5");
            s.execute("COMMENT ON TABLE item IS 'things'");
            s.execute("COMMENT ON COLUMN item.name IS 'what it is called'");

            // Prepared statements, enough runs that the driver names them and turns to binary.
            PreparedStatement insert = c.prepareStatement("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?, ?)");
            for (int i = 1; i <= 12; i++) {
                insert.setInt(1, i);
                insert.setString(2, "thing " + i);
                insert.setBigDecimal(3, new BigDecimal(i + ".25"));
                insert.setArray(4, c.createArrayOf("text", new Object[] {"a", null, "c" + i}));
                insert.setObject(5, LocalDate.of(2024, 2, i));
                insert.setObject(6, OffsetDateTime.of(2024, 2, i, 12, 0, 0, 123456000, ZoneOffset.UTC));
                if (i % 3 == 0) insert.setNull(7, Types.BOOLEAN); else insert.setBoolean(7, i % 2 == 0);
                insert.setString(8, "{\"n\": " + i + "}");
                insert.setBytes(9, new byte[] {0, (byte) i, (byte) 255});
                insert.setObject(10, UUID.fromString("00000000-0000-0000-0000-0000000000" + (10 + i)));
                System.out.println(insert.executeUpdate());
            }
            PreparedStatement batch = c.prepareStatement("INSERT INTO part VALUES (?, ?, ?, ?, ?)");
            for (int i = 0; i < 100; i++) {
                batch.setInt(1, i / 10);
                batch.setShort(2, (short) (i % 10));
                batch.setDouble(3, i / 7.0);
                batch.setFloat(4, i / 7.0f);
                batch.setLong(5, 1L << (i % 60));
                batch.addBatch();
            }
            System.out.println(Arrays.stream(batch.executeBatch()).sum());

            PreparedStatement one = c.prepareStatement("SELECT * FROM item WHERE id = ?");
            for (int i = 1; i <= 12; i++) {
                one.setInt(1, i);
                try (ResultSet r = one.executeQuery()) {
                    r.next();
                    System.out.println(r.getInt(1) + " " + r.getString("name") + " " + r.getBigDecimal("price") + " " + Arrays.toString((Object[]) r.getArray("tags").getArray()) + " "
                        + r.getObject("made", LocalDate.class) + " " + r.getObject("at", OffsetDateTime.class).toInstant() + " " + r.getBoolean("ok") + " " + r.wasNull() + " "
                        + r.getString("data") + " " + Arrays.toString(r.getBytes("raw")) + " " + r.getObject("uid"));
                }
            }
            PreparedStatement sums = c.prepareStatement("SELECT item_id, sum(big), avg(f8), max(f4), count(*) FROM part WHERE n = ANY (?) GROUP BY item_id ORDER BY 1");
            for (int i = 0; i < 7; i++) {
                sums.setArray(1, c.createArrayOf("int2", new Object[] {(short) 1, (short) i}));
                print("sums " + i, sums.executeQuery());
            }

            // A cursor: a portal with a fetch size, in a transaction.
            c.setAutoCommit(false);
            PreparedStatement all = c.prepareStatement("SELECT item_id, n FROM part ORDER BY item_id, n");
            all.setFetchSize(7);
            int n = 0, last = -1;
            try (ResultSet r = all.executeQuery()) {
                while (r.next()) { n++; last = r.getInt(1) * 10 + r.getInt(2); }
            }
            System.out.println("cursor " + n + " " + last);
            c.commit();

            // Transactions, savepoints, errors with their fields.
            s.executeUpdate("UPDATE item SET price = 100 WHERE id = 1");
            Savepoint sp = c.setSavepoint("sp");
            try {
                s.executeUpdate("INSERT INTO item (id, name) VALUES (1, 'again')");
            } catch (SQLException e) {
                error("duplicate", e);
                org.postgresql.util.ServerErrorMessage m = ((org.postgresql.util.PSQLException) e).getServerErrorMessage();
                System.out.println(m.getTable() + " " + m.getConstraint() + " " + m.getDetail());
            }
            c.rollback(sp);
            s.executeUpdate("DELETE FROM part WHERE item_id > 5");
            c.rollback();
            print("after rollback", s.executeQuery("SELECT price, (SELECT count(*) FROM part) FROM item WHERE id = 1"));
            c.commit();
            c.setAutoCommit(true);
            for (String bad : new String[] {"SELEC 1", "SELECT nope FROM item", "SELECT * FROM nope", "SELECT 1 / 0", "INSERT INTO item (id) VALUES (99)", "SELECT 'x'::int"}) {
                try { s.execute(bad); System.out.println("no error"); } catch (SQLException e) { error(bad, e); }
            }
            Statement keys = c.createStatement();
            keys.executeUpdate("INSERT INTO item (id, name) VALUES (50, 'k')", Statement.RETURN_GENERATED_KEYS);
            print("generated keys", keys.getGeneratedKeys(), "id", "name", "price");
            System.out.println(s.execute("SELECT 1; SELECT 2") + " " + s.getMoreResults());
            c.setReadOnly(true);
            c.setAutoCommit(false);
            try { s.executeUpdate("DELETE FROM part"); } catch (SQLException e) { error("read only", e); }
            c.rollback();
            c.setAutoCommit(true);
            c.setReadOnly(false);
            s.setQueryTimeout(1);
            try { s.executeQuery("SELECT pg_sleep(30)"); } catch (SQLException e) { error("timeout", e); }
            s.setQueryTimeout(0);

            // Metadata.
            ResultSetMetaData md = s.executeQuery("SELECT id, name, price, tags, at, data FROM item").getMetaData();
            for (int i = 1; i <= md.getColumnCount(); i++)
                System.out.println(md.getColumnName(i) + " " + md.getColumnTypeName(i) + " " + md.getColumnType(i) + " " + md.getPrecision(i) + " " + md.getScale(i) + " " + md.getColumnClassName(i)
                    + " " + md.getTableName(i) + " " + md.isNullable(i));
            ParameterMetaData pm = c.prepareStatement("SELECT * FROM item WHERE id = ? AND name LIKE ? AND price > ?").getParameterMetaData();
            for (int i = 1; i <= pm.getParameterCount(); i++) System.out.println(pm.getParameterTypeName(i));
            DatabaseMetaData d = c.getMetaData();
            System.out.println(d.getDatabaseProductName() + " " + d.getDatabaseMajorVersion() + " " + d.supportsTransactions());
            print("tables", d.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS");
            print("columns", d.getColumns(null, "public", "%", "%"), "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "REMARKS", "COLUMN_DEF",
                "ORDINAL_POSITION", "IS_NULLABLE", "IS_AUTOINCREMENT");
            print("keys", d.getPrimaryKeys(null, "public", "part"), "TABLE_NAME", "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
            print("indexes", d.getIndexInfo(null, "public", "part", false, false), "TABLE_NAME", "NON_UNIQUE", "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC");
            print("unique indexes", d.getIndexInfo(null, "public", "item", true, false), "TABLE_NAME", "NON_UNIQUE", "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME");
            print("imported keys", d.getImportedKeys(null, "public", "part"));
            print("exported keys", d.getExportedKeys(null, "public", "item"));
            print("best row identifier", d.getBestRowIdentifier(null, "public", "item", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME", "TYPE_NAME");
            print("procedures", d.getProcedures(null, "public", "%"));
            print("table types", d.getTableTypes());
            Set<String> types = new TreeSet<>();
            try (ResultSet r = d.getTypeInfo()) { while (r.next()) types.add(r.getString("TYPE_NAME") + " " + r.getInt("DATA_TYPE")); }
            for (String t : new String[] {"int4 4", "text 12", "numeric 2", "timestamptz 93", "jsonb 1111", "_int4 2003", "uuid 1111", "bytea -2"}) System.out.println(t + " " + types.contains(t));
            Set<String> schemas = new TreeSet<>();
            try (ResultSet r = d.getSchemas()) { while (r.next()) schemas.add(r.getString(1)); }
            System.out.println(schemas.contains("public") + " " + schemas.contains("pg_catalog") + " " + schemas.contains("information_schema"));

            // Prepared on the server by now, for a table that another session alters: the driver prepares it again.
            PreparedStatement whole = c.prepareStatement("SELECT * FROM part ORDER BY item_id, n LIMIT 1");
            for (int i = 0; i < 8; i++) whole.executeQuery().close();
            try (Connection other = DriverManager.getConnection(args[0]); Statement alter = other.createStatement()) {
                alter.execute("ALTER TABLE part ADD COLUMN later int DEFAULT 5");
            }
            print("altered", whole.executeQuery(), "later");
        }
    }
}
