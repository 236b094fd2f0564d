--@new
--@nosplit
-- INCLUDE of keys: shown, named, kept through changes of the table
CREATE TABLE ms_held (a int, b int, c int, d box, CONSTRAINT ms_cover PRIMARY KEY (a, b) INCLUDE (c, d));
SELECT pg_get_constraintdef(oid), conname, conkey FROM pg_constraint WHERE conrelid = 'ms_held'::regclass;
SELECT indnatts, indnkeyatts, indkey, indclass, indoption, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'ms_held'::regclass;
SELECT attname FROM pg_attribute WHERE attrelid = 'ms_cover'::regclass ORDER BY attnum;
INSERT INTO ms_held VALUES (1, 2, 3, NULL);
INSERT INTO ms_held VALUES (1, 2, 4, NULL);
INSERT INTO ms_held VALUES (1, 2, 9, NULL) ON CONFLICT (a, b) DO UPDATE SET c = EXCLUDED.c RETURNING *;
ALTER TABLE ms_held RENAME COLUMN c TO "C 3";
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'ms_held'::regclass;
CREATE TABLE ms_like (LIKE ms_held INCLUDING ALL);
SELECT indexdef FROM pg_indexes WHERE tablename = 'ms_like';
ALTER TABLE ms_held DROP COLUMN "C 3";
SELECT count(*) FROM pg_constraint WHERE conrelid = 'ms_held'::regclass;
ALTER TABLE ms_held ADD UNIQUE (b) INCLUDE (a, d), ADD PRIMARY KEY (a) INCLUDE (d);
ALTER TABLE ms_held ADD UNIQUE (b) INCLUDE (nope);
ALTER TABLE ms_held ADD UNIQUE NULLS NOT DISTINCT (b) INCLUDE (b, a, a) DEFERRABLE;
CREATE UNIQUE INDEX ms_later ON ms_held (b) INCLUDE (a);
ALTER TABLE ms_held ADD CONSTRAINT ms_taken UNIQUE USING INDEX ms_later;
CREATE INDEX ON ms_held (a, a, b) INCLUDE (a);
CREATE UNIQUE INDEX ON ms_held ((a + b)) INCLUDE (d);
SELECT indexdef FROM pg_indexes WHERE tablename = 'ms_held' ORDER BY indexname;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'ms_held'::regclass ORDER BY 1;
ALTER TABLE ms_held DROP COLUMN d;
SELECT indexdef FROM pg_indexes WHERE tablename = 'ms_held' ORDER BY indexname;
CREATE TABLE ms_two (a int, b int, UNIQUE (a) INCLUDE (b), UNIQUE (a), UNIQUE (a) INCLUDE (b));
SELECT indexdef FROM pg_indexes WHERE tablename = 'ms_two' ORDER BY indexname;
CREATE TABLE ms_column (a int PRIMARY KEY INCLUDE (b), b int);
CREATE TABLE ms_parent (id int, v int, PRIMARY KEY (id) INCLUDE (v));
CREATE TABLE ms_child (p int REFERENCES ms_parent);
INSERT INTO ms_child VALUES (1);
ALTER TABLE ms_parent DROP COLUMN v;
DROP TABLE ms_held, ms_like, ms_two, ms_child, ms_parent;

-- what is told before names are looked up
BEGIN;
CREATE INDEX CONCURRENTLY ms_i ON ms_nothing (a);
ROLLBACK;
BEGIN;
DROP INDEX CONCURRENTLY ms_i;
ROLLBACK;
DROP INDEX CONCURRENTLY ms_i, ms_j;
DROP INDEX CONCURRENTLY ms_i CASCADE;
BEGIN READ ONLY;
DROP VIEW ms_nothing;
ROLLBACK;
BEGIN READ ONLY;
ALTER TABLE ms_nothing ADD COLUMN a int;
ROLLBACK;
BEGIN READ ONLY;
COMMENT ON TABLE ms_nothing IS 'x';
ROLLBACK;

-- AND CHAIN hands on what the block was begun with, if it failed too
SET default_transaction_read_only = on;
START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE, DEFERRABLE;
SELECT 1 / 0;
COMMIT AND CHAIN;
SHOW transaction_read_only;
SHOW transaction_deferrable;
ROLLBACK AND CHAIN;
SHOW transaction_read_only;
SHOW transaction_deferrable;
ROLLBACK;
SET default_transaction_read_only = off;

-- settings: free names, and those of VACUUM
SET ms."bad-name" = 42;
SET "ms.1x" = 3;
SET ms_nodot = 1;
SET ms.a$1.b = 'x';
SHOW ms.a$1.b;
RESET ms.a$1.b;
SHOW ms.a$1.b;
BEGIN;
SET LOCAL ms.inside = 1;
ROLLBACK;
SELECT current_setting('ms.inside', true);
SET vacuum_cost_delay = '10s';
SET vacuum_cost_delay = '900us';
SHOW vacuum_cost_delay;
SET vacuum_cost_delay = 40;
SHOW vacuum_cost_delay;
RESET vacuum_cost_delay;
SET seq_page_cost = 'NaN';
SET default_with_oids = f;
SET default_with_oids = t;

-- names of types that no value has
SELECT 'internal'::regtype, 'cstring[]'::regtype, 'anyelement'::regtype, '"any"'::regtype, to_regtype('pg_catalog.trigger'), to_regtype('ms_none');
SELECT count(*) FROM pg_proc WHERE prorettype = 'event_trigger'::regtype;
SELECT proargtypes::regtype[] FROM pg_proc WHERE proname = 'lower' ORDER BY oid LIMIT 1;

-- rows whose fields have no order
CREATE TYPE ms_place AS (at point, n int);
CREATE TABLE ms_places (p ms_place);
INSERT INTO ms_places VALUES ('("(1,2)",3)'), ('("(4,5)",6)');
SELECT p FROM ms_places ORDER BY p;
SELECT DISTINCT p FROM ms_places;
SELECT p, count(*) FROM ms_places GROUP BY p;
SELECT max(p::text) FROM ms_places;
SELECT row(1, '(1,2)')::ms_place IS NULL;
SELECT a.p < b.p FROM ms_places a, ms_places b;
SELECT a.p <> b.p FROM ms_places a, ms_places b;
SELECT a.p *= b.p FROM ms_places a, ms_places b ORDER BY 1;
SELECT array_agg(p) = array_agg(p) FROM ms_places;
DROP TABLE ms_places;
SELECT ROW('ABC', 'DEF') ~<=~ ROW('DEF', 'ABC') AS a, ROW('ABC', 'DEF') ~>~ ROW('ABC', 'DEE') AS b, ROW('a', 'b') ~~ ROW('a', 'b') AS c;
SELECT ROW('ABC', 'DEF') ~<=~ ROW('DEF', 'ABC') AS a, ROW('ABC', 'DEF') ~>~ ROW('ABC', 'DEE') AS b;
CREATE TABLE ms_pair (a int, b text);
INSERT INTO ms_pair VALUES (1, 'x'), (2, 'y'), (3, 'z');
SELECT * FROM ms_pair p WHERE p IN (row(1, 'x')::ms_pair, '(3,z)') ORDER BY a;
SELECT * FROM ms_pair p WHERE p NOT IN ('(3,z)', row(1, 'x')::ms_pair, NULL) ORDER BY a;
SELECT * FROM ms_pair p WHERE p IN (row(1, 'x')::ms_pair, '(3,z');
SELECT q.a, q.b = row(2), q.c = array[row(3)] FROM unnest(array[row(1, row(2), array[row(3)]), row(2, row(3), array[row(4)])]) AS q(a int, b record, c record[]);
SELECT * FROM unnest(array[row(1, 2)]) AS q(a int, b text);
DROP TABLE ms_pair;

-- the values of SET are read before its columns
CREATE TABLE ms_set (a int);
UPDATE ms_set SET nope = wrong;
UPDATE ms_set SET a = wrong;
UPDATE ms_set SET nope = 1;
CREATE TABLE ms_set (a int NOT NUL);
CREATE MATERIALIZED VIEW ms_kept AS SELECT 1 AS a;
SELECT * FROM ms_kept FOR UPDATE;
SELECT * FROM ms_set, ms_kept k FOR SHARE OF k;
SELECT * FROM ms_set, ms_kept k FOR SHARE OF ms_set;
DROP MATERIALIZED VIEW ms_kept;
DROP TABLE ms_set;
CREATE TEMP TABLE ms_own (a int);
SELECT pg_my_temp_schema()::regnamespace::text ~ '^pg_temp_', pg_is_other_temp_schema(pg_my_temp_schema()), pg_is_other_temp_schema('pg_catalog'::regnamespace);
DROP TABLE ms_own;

-- how rows lie: taken, and looked at as PostgreSQL does
CREATE TABLE ms_lie (a int, b text) WITH (fillfactor = 70, autovacuum_enabled = false, toast.vacuum_truncate = true);
CREATE TABLE ms_no (a int) WITH (nope = 1);
ALTER TABLE ms_lie SET (fillfactor = 50), ADD COLUMN c int;
ALTER TABLE ms_lie RESET (fillfactor);
ALTER TABLE ms_lie SET (nope = 1);
CREATE UNIQUE INDEX ms_lie_a ON ms_lie (a);
CREATE INDEX ms_lie_b ON ms_lie (b);
ALTER TABLE ms_lie REPLICA IDENTITY FULL;
ALTER TABLE ms_lie REPLICA IDENTITY USING INDEX ms_lie_a;
ALTER TABLE ms_lie REPLICA IDENTITY USING INDEX ms_lie_b;
ALTER TABLE ms_lie REPLICA IDENTITY USING INDEX ms_none;
ALTER TABLE ms_lie ALTER a SET NOT NULL;
ALTER TABLE ONLY ms_lie REPLICA IDENTITY USING INDEX ms_lie_a;
ALTER TABLE ms_lie CLUSTER ON ms_lie_a;
ALTER TABLE ms_lie CLUSTER ON ms_none;
ALTER TABLE ms_lie SET WITHOUT CLUSTER;
ALTER TABLE ONLY ms_lie ALTER COLUMN a SET STATISTICS 100;
ALTER TABLE ms_lie ALTER nope SET STATISTICS -1;
ALTER TABLE ms_lie ALTER b SET STORAGE EXTERNAL, ALTER b SET COMPRESSION pglz, ALTER b SET (n_distinct = 5);
ALTER TABLE ms_lie SET TABLESPACE pg_default;
ALTER TABLE ms_lie SET TABLESPACE ms_none;
ALTER INDEX ms_lie_a SET (fillfactor = 50);
ALTER INDEX ms_lie_a SET (nope = 50);
ALTER INDEX ms_lie_a RESET (fillfactor);
INSERT INTO ms_lie VALUES (1, 'x', 2), (1, 'y', 3);
SELECT * FROM ms_lie;

-- indexes: collations, order, rows
CREATE INDEX ms_lie_c ON ms_lie (b COLLATE "C" DESC, (b || 'x'));
CREATE UNIQUE INDEX ms_lie_d ON ms_lie (c DESC);
CREATE UNIQUE INDEX ms_lie_e ON ms_lie (c, a NULLS FIRST);
SELECT indexdef FROM pg_indexes WHERE tablename = 'ms_lie' ORDER BY indexname;
SELECT indkey FROM pg_index WHERE indexrelid = 'ms_lie_c'::regclass;
ALTER TABLE ms_lie ADD UNIQUE USING INDEX ms_lie_d;
ALTER TABLE ms_lie ADD UNIQUE USING INDEX ms_lie_e;
CREATE INDEX ON ms_lie ((row(a, b)));
DROP TABLE ms_lie;
CREATE MATERIALIZED VIEW ms_mv AS SELECT 1 AS a;
REFRESH MATERIALIZED VIEW CONCURRENTLY ms_mv WITH NO DATA;
DROP MATERIALIZED VIEW ms_mv;

-- the order of an aggregate with DISTINCT is over what is written
SELECT string_agg(DISTINCT x, ',' ORDER BY x::text) FROM (VALUES ('a'::varchar)) v(x);
SELECT string_agg(DISTINCT x::text, ',' ORDER BY x) FROM (VALUES ('a'::varchar)) v(x);
SELECT string_agg(DISTINCT x::text, ',' ORDER BY x::text DESC) FROM (VALUES ('a'::varchar), ('b')) v(x);
SELECT string_agg(DISTINCT x, ',' ORDER BY x DESC) FROM (VALUES ('a'::varchar), ('b')) v(x);
SELECT count(DISTINCT x ORDER BY x) FROM (VALUES (1), (1), (2)) v(x);
SELECT count(*) > 300 FROM pg_timezone_names;
SELECT * FROM pg_timezone_names WHERE name = 'Asia/Tokyo';

-- columns of a view that are one column of its table
CREATE TABLE ms_base (a int PRIMARY KEY, b text);
CREATE VIEW ms_view AS SELECT a, b, a AS again, upper(b) AS up FROM ms_base;
INSERT INTO ms_view VALUES (3, 'x', 3);
INSERT INTO ms_view (a, b) VALUES (3, 'x') RETURNING *;
UPDATE ms_view SET a = 4, again = 5;
INSERT INTO ms_view (a) VALUES (3) ON CONFLICT (a) DO UPDATE SET up = 'y';
INSERT INTO ms_base VALUES (3, 'x') ON CONFLICT (b) DO UPDATE SET a = nope;
INSERT INTO ms_base VALUES (3, 'x') ON CONFLICT (b) DO UPDATE SET b = 'y';
SELECT b.a FROM ms_base b, (SELECT b.a) s;
UPDATE ms_base SET b = s.b FROM (SELECT * FROM ms_view v WHERE v.a = ms_base.a) s;
DROP VIEW ms_view;
CREATE INDEX ms_base_b ON ms_base (b);
DROP INDEX ms_base_pkey;
DROP TABLE ms_base;
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION ALL SELECT f + 1, 2 FROM g WHERE f < 2) SEARCH DEPTH FIRST BY f SET t SELECT * FROM g;
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION ALL SELECT f + 1, t FROM g WHERE f < t) CYCLE f SET c USING c SELECT * FROM g;
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION ALL SELECT f + 1, t FROM g WHERE f < t) SEARCH DEPTH FIRST BY f SET s CYCLE f SET c USING s SELECT * FROM g;
WITH RECURSIVE g(f, t) AS (SELECT 1, 2 UNION ALL SELECT f + 1, t FROM g WHERE f < t) SEARCH DEPTH FIRST BY f SET s CYCLE f SET c USING p SELECT * FROM g;

-- defaults of views
CREATE TABLE ms_def (a int, b text DEFAULT 'of table', c text DEFAULT 'table c', d text, e int GENERATED BY DEFAULT AS IDENTITY);
CREATE VIEW ms_v AS SELECT a, b, d AS dd, upper(c) AS up FROM ms_def;
CREATE VIEW ms_w AS SELECT dd, b, a FROM ms_v WHERE a > 0 WITH CHECK OPTION;
ALTER VIEW ms_v ALTER COLUMN b SET DEFAULT 'of view', ALTER dd SET DEFAULT 1 + 1;
ALTER VIEW ms_v ALTER nope SET DEFAULT 1;
ALTER VIEW ms_v ALTER a SET DEFAULT 'x';
ALTER VIEW ms_v ALTER a SET NOT NULL;
ALTER TABLE ONLY ms_w ALTER COLUMN b SET DEFAULT 'of w';
INSERT INTO ms_def (a) VALUES (1);
INSERT INTO ms_v (a) VALUES (2) RETURNING *;
INSERT INTO ms_v (a, b) VALUES (3, DEFAULT), (4, 'given') RETURNING *;
INSERT INTO ms_v DEFAULT VALUES;
INSERT INTO ms_w (a) VALUES (5) RETURNING *;
INSERT INTO ms_w VALUES (DEFAULT, DEFAULT, 6);
INSERT INTO ms_w (a) SELECT 7;
UPDATE ms_v SET b = DEFAULT, dd = DEFAULT WHERE a = 4;
UPDATE ms_w SET b = DEFAULT WHERE a = 3;
SELECT a, b, c, d, e FROM ms_def ORDER BY e;
SELECT attname, atthasdef FROM pg_attribute WHERE attrelid = 'ms_v'::regclass AND attnum > 0 ORDER BY attnum;
SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'ms_v'::regclass ORDER BY adnum;
SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'ms_v' ORDER BY ordinal_position;
CREATE OR REPLACE VIEW ms_v AS SELECT a, b, d AS dd, upper(c) AS up, e FROM ms_def;
INSERT INTO ms_v (a) VALUES (8) RETURNING a, b, dd, up;
ALTER VIEW ms_v ALTER COLUMN b DROP DEFAULT;
INSERT INTO ms_v (a) VALUES (9) RETURNING a, b, dd, up;
ALTER VIEW ms_v ALTER COLUMN up SET DEFAULT 'x';
INSERT INTO ms_v (a) VALUES (10);
INSERT INTO ms_def (a) VALUES (11) RETURNING b;
CREATE VIEW ms_none AS SELECT count(*) AS n FROM ms_def;
ALTER VIEW ms_none ALTER n SET DEFAULT 5;
DROP TABLE ms_def CASCADE;
