-- Small things of DDL and of catalogs that were known to differ.
CREATE SCHEMA st_a;
CREATE TYPE st_a.mood AS ENUM ('low', 'mid', 'high');
CREATE TABLE st_a.t (id serial PRIMARY KEY, v text NOT NULL, m st_a.mood DEFAULT 'mid', CONSTRAINT st_chk CHECK (v <> ''));
CREATE INDEX st_low ON st_a.t (lower(v));
CREATE VIEW st_a.v AS SELECT id, v FROM st_a.t WHERE id > 0;
CREATE VIEW st_v AS SELECT count(*) AS n FROM st_a.v;
CREATE TABLE st_c (t int REFERENCES st_a.t);
COMMENT ON SCHEMA st_a IS 'the old one';
INSERT INTO st_a.t (v) VALUES ('a'), ('b');
ALTER SCHEMA st_a RENAME TO st_b;
SELECT * FROM st_b.t ORDER BY 1;
INSERT INTO st_b.t (v) VALUES ('c') RETURNING id, m;
SELECT * FROM st_v;
SELECT * FROM st_a.t;
SELECT pg_get_viewdef('st_v'), pg_get_viewdef('st_b.v');
SELECT indexdef FROM pg_indexes WHERE schemaname = 'st_b' ORDER BY 1;
SELECT obj_description('st_b'::regnamespace, 'pg_namespace');
SELECT column_default FROM information_schema.columns WHERE table_schema = 'st_b' AND table_name = 't' ORDER BY ordinal_position;
INSERT INTO st_c VALUES (9);
ALTER SCHEMA st_b RENAME TO public;
ALTER SCHEMA st_b RENAME TO pg_mine;
ALTER SCHEMA st_none RENAME TO st_x;
BEGIN;
ALTER SCHEMA st_b RENAME TO st_d;
SELECT count(*) FROM st_d.t;
ROLLBACK;
SELECT count(*) FROM st_b.v;
-- labels that came between
ALTER TYPE st_b.mood ADD VALUE 'lower' BEFORE 'low';
ALTER TYPE st_b.mood ADD VALUE 'midhigh' AFTER 'mid';
ALTER TYPE st_b.mood ADD VALUE 'top';
SELECT enumlabel, enumsortorder FROM pg_enum WHERE enumtypid = 'st_b.mood'::regtype ORDER BY enumsortorder;
-- attributes of a type that nothing uses
CREATE TYPE st_addr AS (street text, zip varchar(10), no int);
COMMENT ON COLUMN st_addr.no IS 'number';
ALTER TYPE st_addr ADD ATTRIBUTE city text, DROP ATTRIBUTE zip, ALTER ATTRIBUTE no TYPE bigint;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'st_addr'::regclass AND NOT attisdropped ORDER BY attnum;
SELECT ROW('a', 1, 'b')::st_addr, (ROW('a', 1, 'b')::st_addr).city;
ALTER TYPE st_addr ADD ATTRIBUTE city int;
ALTER TYPE st_addr DROP ATTRIBUTE nix;
ALTER TYPE st_addr DROP ATTRIBUTE IF EXISTS nix;
ALTER TYPE st_addr ALTER ATTRIBUTE nix TYPE int;
ALTER TYPE st_addr ALTER ATTRIBUTE street SET DATA TYPE varchar(5) CASCADE;
ALTER TYPE st_addr ADD ATTRIBUTE x nix;
ALTER TYPE st_b.mood ADD ATTRIBUTE x int;
SELECT ROW('abcdefgh', 1, 'b')::st_addr;
CREATE TABLE st_has (a st_addr);
ALTER TYPE st_addr ALTER ATTRIBUTE street TYPE text;
DROP TABLE st_has;
DROP TYPE st_addr;
-- what a sequence is said to keep ready
CREATE SEQUENCE st_s CACHE 20;
SELECT seqcache FROM pg_sequence WHERE seqrelid = 'st_s'::regclass;
ALTER SEQUENCE st_s CACHE 5;
SELECT cache_size FROM pg_sequences WHERE sequencename = 'st_s';
SELECT (pg_sequence_parameters('st_s'::regclass)).cache_size;
ALTER SEQUENCE st_s INCREMENT 2;
SELECT seqcache, seqincrement FROM pg_sequence WHERE seqrelid = 'st_s'::regclass;
-- what a violated key is called now
CREATE TABLE st_k (id int CONSTRAINT st_k_first PRIMARY KEY, a int, b int);
CREATE UNIQUE INDEX st_k_a ON st_k (a);
CREATE UNIQUE INDEX st_k_b ON st_k ((b + 1));
INSERT INTO st_k VALUES (1, 1, 1);
ALTER INDEX st_k_a RENAME TO st_k_renamed;
ALTER INDEX st_k_b RENAME TO st_k_computed;
ALTER TABLE st_k RENAME CONSTRAINT st_k_first TO st_k_key;
DO $$ DECLARE n text; BEGIN INSERT INTO st_k VALUES (2, 1, 2); EXCEPTION WHEN unique_violation THEN IF sqlerrm NOT LIKE '%"st_k_renamed"' THEN RAISE EXCEPTION '%', sqlerrm; END IF; END $$;
DO $$ BEGIN INSERT INTO st_k VALUES (2, 2, 1); EXCEPTION WHEN unique_violation THEN IF sqlerrm NOT LIKE '%"st_k_computed"' THEN RAISE EXCEPTION '%', sqlerrm; END IF; END $$;
DO $$ BEGIN INSERT INTO st_k VALUES (1, 2, 2); EXCEPTION WHEN unique_violation THEN IF sqlerrm NOT LIKE '%"st_k_key"' THEN RAISE EXCEPTION '%', sqlerrm; END IF; END $$;
-- rows of a table as a type, also in arrays
INSERT INTO st_k VALUES (2, 3, 4);
SELECT array_agg(k ORDER BY id), pg_typeof(array_agg(k)) FROM st_k k;
SELECT 'st_k'::regtype, 'st_k[]'::regtype, '_st_k'::regtype;
SELECT '{"(1,2,3)"}'::st_k[], (('{"(1,2,3)"}'::st_k[])[1]).b;
SELECT t.typname, e.typname FROM pg_type t JOIN pg_type e ON e.oid = t.typelem WHERE t.typname = '_st_k';
SELECT format_type(typarray, NULL) FROM pg_type WHERE typname = 'st_k';
CREATE TABLE st_rows (r st_k, rs st_k[]);
INSERT INTO st_rows SELECT k, ARRAY[k, k] FROM st_k k;
SELECT * FROM st_rows ORDER BY r;
SELECT (rs[1]).a FROM st_rows ORDER BY 1;
SELECT column_name, udt_name, data_type FROM information_schema.columns WHERE table_name = 'st_rows' ORDER BY 1;
DROP TABLE st_k;
DROP TABLE st_rows, st_k;
-- what views and checks read, by column
SELECT a.attname, d.deptype FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE r.ev_class = 'st_b.v'::regclass AND d.refobjid = 'st_b.t'::regclass ORDER BY 1;
SELECT DISTINCT v.relname FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = 'st_b.t'::regclass AND d.refobjsubid > 0;
SELECT a.attname, d.deptype FROM pg_depend d JOIN pg_constraint k ON k.oid = d.objid AND d.classid = 'pg_constraint'::regclass JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE k.conname = 'st_chk' ORDER BY 1;
DROP VIEW st_v;
DROP TABLE st_c;
DROP SEQUENCE st_s;
DROP SCHEMA st_b CASCADE;
-- DO: CASE, cursors, parts of variables, what an error was
--@nosplit
CREATE TABLE st_log (n serial, what text);
DO $$ DECLARE x int := 3; y x%TYPE; BEGIN y := x; CASE WHEN y > 2 THEN INSERT INTO st_log (what) VALUES ('big'); ELSE INSERT INTO st_log (what) VALUES ('small'); END CASE; CASE x + 1 WHEN 1, 2 THEN INSERT INTO st_log (what) VALUES ('a'); WHEN 3, 4 THEN CASE WHEN false THEN NULL; ELSE INSERT INTO st_log (what) VALUES ('b'); END CASE; END CASE; END $$;
DO $$ BEGIN CASE 1 WHEN 2 THEN NULL; END CASE; END $$;
DO $$ BEGIN CASE WHEN NULL THEN NULL; END CASE; END $$;
DO $$ BEGIN CASE END CASE; END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT a + b AS s; x int; BEGIN OPEN c(1, b := 2); FETCH c INTO x; INSERT INTO st_log (what) VALUES (x || ' ' || c::text); MOVE c; INSERT INTO st_log (what) VALUES (FOUND); CLOSE c; FOR r IN c(3, 4) LOOP INSERT INTO st_log (what) VALUES (r.s); END LOOP; END $$;
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c SCROLL FOR SELECT g FROM generate_series(1, 5) g; FETCH LAST FROM c INTO x; INSERT INTO st_log (what) VALUES (x); FETCH PRIOR FROM c INTO x; INSERT INTO st_log (what) VALUES (x); FETCH ABSOLUTE 2 FROM c INTO x; INSERT INTO st_log (what) VALUES (x); FETCH RELATIVE -1 FROM c INTO x; INSERT INTO st_log (what) VALUES (x); FETCH RELATIVE -5 FROM c INTO x; INSERT INTO st_log (what) VALUES (coalesce(x::text, 'none') || FOUND); MOVE FORWARD 3 FROM c; FETCH c INTO x; INSERT INTO st_log (what) VALUES (x); END $$;
DO $$ DECLARE c refcursor; x int; q text := 'SELECT $1 + 1'; BEGIN OPEN c FOR EXECUTE q USING 4; FETCH c INTO x; INSERT INTO st_log (what) VALUES (x); CLOSE c; OPEN c FOR SELECT x * 2; FETCH c INTO x; INSERT INTO st_log (what) VALUES (x); END $$;
DO $$ DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 120) g; n int := 0; BEGIN FOR r IN c LOOP CONTINUE WHEN r.g % 2 = 0; n := n + r.g; EXIT WHEN r.g > 100; END LOOP; INSERT INTO st_log (what) VALUES (n); FOR r IN c LOOP n := r.g; END LOOP; INSERT INTO st_log (what) VALUES (n); END $$;
DO $$ DECLARE c refcursor; x int; BEGIN FETCH c INTO x; END $$;
DO $$ DECLARE c refcursor := 'nn'; x int; BEGIN FETCH c INTO x; END $$;
DO $$ DECLARE c refcursor := 'nn'; BEGIN CLOSE c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; OPEN c; END $$;
DO $$ DECLARE c CURSOR (a int) FOR SELECT a; BEGIN OPEN c; END $$;
DO $$ DECLARE c CURSOR (a int) FOR SELECT a; BEGIN OPEN c(1, 2); END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN FOR r IN c LOOP OPEN c; END LOOP; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR INSERT INTO st_log (what) VALUES ('x'); END $$;
DO $$ DECLARE c int; BEGIN FETCH c INTO c; END $$;
DO $$ DECLARE c refcursor; x int; BEGIN OPEN c FOR SELECT 1; FETCH ALL FROM c INTO x; END $$;
BEGIN;
DO $$ DECLARE c refcursor := 'st_cur'; BEGIN OPEN c FOR SELECT g FROM generate_series(1, 3) g; END $$;
FETCH ALL FROM st_cur;
COMMIT;
DO $$ DECLARE a int[] := '{1,2,3}'; r record; j jsonb := '{"a": 1}'; i int := 2; BEGIN a[i] := 5; a[5] := 7; INSERT INTO st_log (what) VALUES (a::text); SELECT 1 AS x, 'b' AS y INTO r; r.y := 'c'; r.x := r.x + 1; INSERT INTO st_log (what) VALUES (r::text); j['b'] := '2'; INSERT INTO st_log (what) VALUES (j::text); END $$;
DO $$ DECLARE t text; d text; h text; s text; BEGIN RAISE EXCEPTION 'boo' USING DETAIL = 'dd', HINT = 'hh', ERRCODE = '22012', TABLE = 'tt'; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS t = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT, s = RETURNED_SQLSTATE; INSERT INTO st_log (what) VALUES (t || d || h || s); GET STACKED DIAGNOSTICS t = PG_EXCEPTION_CONTEXT, d = CONSTRAINT_NAME, h = TABLE_NAME; INSERT INTO st_log (what) VALUES (t || '<' || d || '>' || h); END $$;
DO $$
DECLARE t text;
BEGIN
  BEGIN
    PERFORM 1 / 0;
  EXCEPTION WHEN division_by_zero THEN
    GET STACKED DIAGNOSTICS t = PG_EXCEPTION_CONTEXT;
    INSERT INTO st_log (what) VALUES (t);
  END;
  BEGIN
    t := 1 / 0;
  EXCEPTION WHEN division_by_zero THEN
    GET STACKED DIAGNOSTICS t = PG_EXCEPTION_CONTEXT;
    INSERT INTO st_log (what) VALUES (t);
  END;
  BEGIN
    IF 1 / 0 = 1 THEN
      NULL;
    END IF;
  EXCEPTION WHEN division_by_zero THEN
    GET STACKED DIAGNOSTICS t = PG_EXCEPTION_CONTEXT;
    INSERT INTO st_log (what) VALUES (t);
  END;
  GET DIAGNOSTICS t = PG_CONTEXT;
  INSERT INTO st_log (what) VALUES (t);
END $$;
DO $$ DECLARE x text; BEGIN GET STACKED DIAGNOSTICS x = MESSAGE_TEXT; END $$;
DO $$ DECLARE x text; BEGIN GET DIAGNOSTICS x = MESSAGE_TEXT; END $$;
DO $$ DECLARE s int[]; BEGIN FOREACH s SLICE 1 IN ARRAY ARRAY[[1, 2], [3, 4]] LOOP INSERT INTO st_log (what) VALUES (s::text); END LOOP; FOREACH s SLICE 2 IN ARRAY ARRAY[[1, 2], [3, 4]] LOOP INSERT INTO st_log (what) VALUES (s::text); END LOOP; END $$;
DO $$ DECLARE s int[]; BEGIN FOREACH s SLICE 3 IN ARRAY ARRAY[[1, 2], [3, 4]] LOOP NULL; END LOOP; END $$;
SELECT what FROM st_log ORDER BY n;
DROP TABLE st_log;
--@split
CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;
CREATE EXTENSION plpgsql;
RESET search_path;
SHOW search_path;
SELECT current_setting('search_path'), current_schema(), current_schemas(false);
SELECT setting, boot_val FROM pg_settings WHERE name = 'search_path';
-- Rows of types without an equality that an outer join pads
CREATE TABLE st_pad (a int, b int); INSERT INTO st_pad VALUES (1, 2), (1, 2), (3, NULL), (NULL, NULL);
SELECT l.a, count(*), count(r.p) FROM (SELECT a, '[1]'::json AS j FROM st_pad x, generate_series(1, 2)) r0 (p, j) RIGHT JOIN st_pad l ON l.a > 1 LEFT JOIN (SELECT json_build_array() AS p FROM st_pad y, st_pad z) r ON l.b IS NULL GROUP BY l.a;
SELECT count(l.a), count(*), min(r.j::text) FROM st_pad l RIGHT JOIN (SELECT json_build_array() AS j FROM st_pad y, st_pad z) r ON l.b IS NOT NULL;
SELECT count(l.a), count(*), min(r.j::text) FROM st_pad l RIGHT JOIN (SELECT point(1, 2) AS j, polygon '((0,0),(1,1))', path '[(0,0)]', box '(1,1),(0,0)', '$.a'::jsonpath FROM st_pad y, st_pad z WHERE y.a > z.a) r ON l.b > 5;
SELECT count(l.a), count(*), min(r.k::text) FROM st_pad l FULL JOIN (SELECT json_build_array() AS j, json_build_array(y.a, NULL) AS k FROM st_pad y, st_pad z) r ON true;
SELECT count(*) FROM (SELECT json_build_array() AS j, circle '<(0,0),1>' AS c FROM st_pad y, st_pad z) r LEFT JOIN LATERAL (SELECT a FROM st_pad WHERE r.j::text <> b::text) s ON true WHERE EXISTS (SELECT 1 FROM st_pad WHERE b = 2 AND r.j IS NOT NULL);
DROP TABLE st_pad;
