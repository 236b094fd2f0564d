--@nosplit
-- expressions of tables as the catalogs show them
CREATE TABLE shown (
  a int DEFAULT 5 CHECK (a > 0), b text DEFAULT 'x' CHECK (b <> '' AND length(b) < 9), c numeric(8,2) DEFAULT 0 CHECK (c BETWEEN 0 AND 100), d date DEFAULT '2020-1-2',
  e timestamptz DEFAULT now(), f timestamp DEFAULT current_timestamp, g bool DEFAULT true CHECK (g IS NOT NULL OR a = 1), h jsonb DEFAULT '{}', i int[] DEFAULT '{1,2}',
  j varchar(5) DEFAULT 'abc' CHECK (j IN ('x', 'abc')), k float8 DEFAULT 1.5, l bigint DEFAULT -1, m interval DEFAULT '1 day', n text DEFAULT upper('q') || 'r', o uuid,
  p int CHECK (p IN (1, 2, 3)), q int CHECK (NOT (q < 0)), r text CHECK (r LIKE 'a%'), s int DEFAULT greatest(1, 2), t text DEFAULT coalesce(NULL, 'z'),
  u int GENERATED ALWAYS AS (a * 2 + 1) STORED, v text GENERATED ALWAYS AS (lower(b) || '!') STORED);
SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = 'shown'::regclass ORDER BY attnum;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shown'::regclass ORDER BY conname;
SELECT column_name, column_default, generation_expression FROM information_schema.columns WHERE table_name = 'shown' ORDER BY ordinal_position;
INSERT INTO shown (p) VALUES (1);
INSERT INTO shown (p) VALUES (4);
INSERT INTO shown (j) VALUES ('y');
INSERT INTO shown (c) VALUES (100.01);
SELECT a, b, c, d, g, h, i, j, k, l, m, n, s, t, u, v FROM shown;
ALTER TABLE shown ALTER COLUMN a SET DEFAULT 3 + 4, ADD CONSTRAINT late CHECK (a < 1000 OR b IS NULL);
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'shown'::regclass AND adnum = 1;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shown'::regclass AND conname = 'late';
ALTER TABLE shown RENAME COLUMN a TO aa;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shown'::regclass AND conname = 'late';
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'shown'::regclass AND adnum = 21;
INSERT INTO shown (p) VALUES (2) RETURNING aa, u;
DROP TABLE shown;
CREATE DOMAIN shown_d AS int DEFAULT 3 CHECK (VALUE > 0 AND VALUE <> 7);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid = 'shown_d'::regtype;
SELECT typdefault FROM pg_type WHERE typname = 'shown_d';
SELECT 7::shown_d;
DROP DOMAIN shown_d;
--@split

--@nosplit
CREATE TABLE shown2 (a int DEFAULT NULL, b text DEFAULT 'a\b', c int DEFAULT CASE WHEN true THEN 1 ELSE 2 END, d text DEFAULT concat('a', 1), CHECK (a IS DISTINCT FROM 5), CHECK (CASE WHEN a > 0 THEN b IS NULL END));
SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'shown2'::regclass ORDER BY adnum;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shown2'::regclass ORDER BY conname;
CREATE TABLE shown3 (LIKE shown2 INCLUDING ALL);
DROP TABLE shown2;
DROP TABLE shown3;
CREATE DOMAIN shown_k AS text CHECK (VALUE <> '');
CREATE TABLE shown4 (k shown_k PRIMARY KEY, v int);
INSERT INTO shown4 VALUES ('a', 1) ON CONFLICT (k) DO UPDATE SET v = excluded.v;
INSERT INTO shown4 VALUES ('a', 2) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *;
SELECT * FROM shown4 JOIN (SELECT 'a' AS k) x USING (k);
DROP TABLE shown4;
DROP DOMAIN shown_k;
--@split

--@nosplit
CREATE SEQUENCE shown_s;
CREATE TABLE shown5 (a int DEFAULT nextval('shown_s'), b serial);
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'shown5'::regclass AND adnum = 1;
DROP SEQUENCE shown_s;
INSERT INTO shown5 DEFAULT VALUES RETURNING *;
DROP TABLE shown5;
DROP SEQUENCE shown_s;
--@split
