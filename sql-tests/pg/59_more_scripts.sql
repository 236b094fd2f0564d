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
