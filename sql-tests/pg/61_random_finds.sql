-- What random queries and sessions have found.

--@nosplit
-- A key that is taken comes before WITH CHECK OPTION, row by row.
CREATE TABLE rf_a (id int PRIMARY KEY, n int);
CREATE VIEW rf_v AS SELECT id, n FROM rf_a WHERE n >= 0 WITH CHECK OPTION;
INSERT INTO rf_v VALUES (1, 1), (2, 2);
INSERT INTO rf_v VALUES (1, -1);
INSERT INTO rf_v VALUES (3, 0), (1, -1), (4, -1);
INSERT INTO rf_v VALUES (3, 0), (4, -1), (1, 1);
INSERT INTO rf_v VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = -1;
INSERT INTO rf_v VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET (id, n) = (2, -1);
UPDATE rf_v SET id = 2, n = -1 WHERE id = 1;
UPDATE rf_v SET n = -1 WHERE id = 1;
SELECT * FROM rf_a ORDER BY id;
DROP VIEW rf_v;
DROP TABLE rf_a;

-- A row constructor that is cast is its fields beside a query, a value of the type is one column.
CREATE TYPE rf_pair AS (a int, b numeric);
SELECT ROW(1, 1.0)::rf_pair IN (SELECT 1, 1.00), ROW(1, '2')::rf_pair >= ALL (SELECT 1, 2), (ROW(1, NULL)::rf_pair) NOT IN (SELECT 1, 2);
SELECT ROW(1, 1.0)::rf_pair IN (SELECT ROW(1, 1.00)::rf_pair);
SELECT x IN (SELECT ROW(1, 1.00)::rf_pair) FROM (SELECT ROW(1, 1.0)::rf_pair AS x) q;
SELECT x IN (SELECT 1, 1.00) FROM (SELECT ROW(1, 1.0)::rf_pair AS x) q;
SELECT NULL::rf_pair IN (SELECT ROW(1, 1.00)::rf_pair);
DROP TYPE rf_pair;

-- NO SCROLL also where nothing lies behind; MOVE 0 only looks.
BEGIN;
DECLARE rf_c NO SCROLL CURSOR FOR SELECT x FROM generate_series(1, 5) x;
MOVE BACKWARD ALL IN rf_c;
FETCH 0 FROM rf_c;
SAVEPOINT s;
MOVE PRIOR IN rf_c;
ROLLBACK;
BEGIN;
DECLARE rf_c NO SCROLL CURSOR FOR SELECT x FROM generate_series(1, 5) x;
FETCH RELATIVE -1 FROM rf_c;
ROLLBACK;
BEGIN;
DECLARE rf_c NO SCROLL CURSOR FOR SELECT x FROM generate_series(1, 5) x;
FETCH BACKWARD 0 FROM rf_c;
ROLLBACK;
BEGIN;
DECLARE rf_c NO SCROLL CURSOR FOR SELECT x FROM generate_series(1, 5) x;
FETCH BACKWARD ALL FROM rf_c;
ROLLBACK;
BEGIN;
DECLARE rf_c NO SCROLL CURSOR FOR SELECT x FROM generate_series(1, 5) x;
FETCH 2 FROM rf_c;
MOVE 0 IN rf_c;
MOVE BACKWARD 0 IN rf_c;
FETCH 0 FROM rf_c;
ROLLBACK;
BEGIN;
DECLARE rf_c SCROLL CURSOR FOR SELECT x FROM generate_series(1, 5) x;
FETCH BACKWARD 0 FROM rf_c;
MOVE PRIOR IN rf_c;
FETCH RELATIVE -1 FROM rf_c;
FETCH 2 FROM rf_c;
FETCH BACKWARD 0 FROM rf_c;
MOVE ALL IN rf_c;
FETCH BACKWARD 0 FROM rf_c;
FETCH PRIOR FROM rf_c;
COMMIT;

-- Isolation and access are set before any query, also one that reads no table.
BEGIN;
SELECT 1;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
ROLLBACK;
BEGIN;
SET LOCAL work_mem = '5MB';
SHOW work_mem;
SET TRANSACTION READ ONLY;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE;
CREATE TEMPORARY TABLE rf_t (k int);
SET TRANSACTION READ ONLY;
SET TRANSACTION READ WRITE;
ROLLBACK;
BEGIN;
PREPARE rf_p AS SELECT 1;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
COMMIT;
DEALLOCATE rf_p;
-- Keys that are NULL match nothing, also where both sides of a join are read from indexes.
CREATE TABLE rf_ia (id int, g int, x int);
CREATE TABLE rf_ib (g int, h int, y int);
INSERT INTO rf_ia VALUES (1, NULL, 1), (2, NULL, 2), (3, 3, 3), (4, 4, NULL);
INSERT INTO rf_ib VALUES (NULL, 1, 9), (NULL, NULL, 8), (3, NULL, 7), (3, 3, 6);
CREATE INDEX ON rf_ia (g);
CREATE INDEX ON rf_ib (g);
CREATE INDEX ON rf_ia (g, x);
CREATE INDEX ON rf_ib (g, h);
SELECT * FROM rf_ia a JOIN rf_ib b ON a.g = b.g ORDER BY a.id, b.y;
SELECT a.*, b.* FROM rf_ia a LEFT JOIN rf_ib b ON a.g = b.g ORDER BY a.id, b.y;
SELECT a.*, b.* FROM rf_ia a FULL JOIN rf_ib b ON a.g = b.g AND a.x = b.h ORDER BY a.id, b.y;
SELECT * FROM rf_ia JOIN rf_ib USING (g) WHERE x < y ORDER BY id, y;
SELECT a.id, b.id FROM rf_ia a JOIN rf_ia b ON a.g = b.g AND a.x < b.x ORDER BY 1, 2;
SELECT a.*, b.* FROM rf_ia a JOIN rf_ib b ON a.g IS NOT DISTINCT FROM b.g ORDER BY a.id, b.y;
SELECT a.*, b.* FROM rf_ia a JOIN rf_ib b ON a.g IS NOT DISTINCT FROM b.g AND a.x = b.h ORDER BY a.id, b.y;
SELECT a.*, b.* FROM rf_ia a JOIN rf_ib b ON a.g = b.g AND a.x IS NOT DISTINCT FROM b.h ORDER BY a.id, b.y;
CREATE MATERIALIZED VIEW rf_im AS SELECT a.id, b.y FROM rf_ia a LEFT JOIN rf_ib b ON a.g = b.g AND b.y > a.x;
SELECT * FROM rf_im ORDER BY id, y;
UPDATE rf_ia a SET x = 100 FROM rf_ia b WHERE a.g = b.g AND a.x < b.x RETURNING a.*;
DELETE FROM rf_ia a USING rf_ib b WHERE a.g = b.g AND b.y > a.x RETURNING a.*, b.*;

-- A row as a value is whatever its relation's rows are: its columns can go, but for those that are taken out of it.
CREATE TABLE rf_row (a int, b int, more int);
INSERT INTO rf_row VALUES (1, 2, 7), (NULL, 3, 8);
CREATE VIEW rf_row_v AS SELECT rf_row AS r, count(rf_row) FROM rf_row GROUP BY rf_row;
CREATE VIEW rf_row_w AS SELECT (r).b, to_jsonb(r) AS j, r::text AS t FROM rf_row_v;
CREATE VIEW rf_row_x AS SELECT x, (x).z FROM rf_row AS x (z);
ALTER TABLE rf_row DROP COLUMN more;
SELECT * FROM rf_row_v ORDER BY 1;
SELECT * FROM rf_row_w ORDER BY 1;
SELECT * FROM rf_row_x ORDER BY 1;
ALTER TABLE rf_row DROP COLUMN b;
ALTER TABLE rf_row DROP COLUMN a;
DROP VIEW rf_row_x;
CREATE VIEW rf_row_y AS SELECT (r).* FROM rf_row_v;
CREATE VIEW rf_row_z AS SELECT a(rf_row) FROM rf_row;
ALTER TABLE rf_row DROP COLUMN a;
DROP VIEW rf_row_z;
DROP VIEW rf_row_y;
ALTER TABLE rf_row DROP COLUMN a;
SELECT * FROM rf_row_w ORDER BY 1;
ALTER TABLE rf_row DROP COLUMN b CASCADE;
SELECT * FROM rf_row_v;

-- A column of a subquery that nothing reads is not evaluated, wherever it stands.
CREATE TABLE rf_un (a int, b int);
INSERT INTO rf_un VALUES (1, 0), (2, 1), (3, NULL);
SELECT a FROM (SELECT a, 1 / b AS x FROM rf_un ORDER BY a LIMIT 2) q;
SELECT a FROM (SELECT a, 1 / b AS x, count(*) OVER () AS n FROM rf_un) q ORDER BY a;
SELECT a FROM (SELECT a, count(1 / b) OVER () AS n FROM rf_un) q ORDER BY a;
SELECT a, r FROM (SELECT a, 1 / b AS x, row_number() OVER (ORDER BY a DESC) AS r FROM rf_un) q ORDER BY a;
SELECT q.a, e.a FROM (SELECT a, 1 / b AS x FROM rf_un) q LEFT JOIN rf_un e ON e.a = 1 ORDER BY 1;
SELECT q.a, e.a FROM (SELECT a, 1 / b AS x FROM rf_un) q FULL JOIN rf_un e ON e.a = q.a ORDER BY 1;
SELECT e.a FROM rf_un e LEFT JOIN (SELECT a, 1 / b AS x FROM rf_un) q ON e.a < 3 AND q.a > e.a ORDER BY 1;
SELECT a FROM (SELECT a, sum(1 / b) AS x FROM rf_un GROUP BY a) q ORDER BY a;
SELECT n FROM (SELECT count(*) AS n, sum(1 / b) AS x FROM rf_un) q;
SELECT a FROM (SELECT DISTINCT ON (a) a, 1 / b AS x FROM rf_un ORDER BY a) q;
SELECT a FROM (SELECT a, 1 / b AS x FROM rf_un ORDER BY x LIMIT 1) q;
SELECT a FROM (SELECT DISTINCT a, 1 / b AS x FROM rf_un) q;
SELECT a FROM (SELECT a, 1 / b AS x FROM rf_un UNION SELECT 1, 2) q;
SELECT a FROM (SELECT a, 1 / b AS x FROM rf_un EXCEPT SELECT 1, 2) q;
SELECT a FROM (SELECT a, 1 / b AS x FROM rf_un UNION ALL SELECT 1, 2) q ORDER BY a;
WITH c AS (SELECT a, 1 / b AS x FROM rf_un) SELECT a FROM c ORDER BY a;
SELECT a FROM rf_un e WHERE EXISTS (SELECT 1 / b FROM rf_un) ORDER BY a;
SELECT a, (SELECT y FROM (SELECT i.a AS y, 1 / i.b AS x FROM rf_un i WHERE i.a >= e.a ORDER BY i.a LIMIT 1) q) FROM rf_un e ORDER BY a;
SELECT a, y FROM rf_un e, LATERAL (SELECT i.a AS y, e.a / i.b AS x FROM rf_un i WHERE i.a > e.a ORDER BY i.a LIMIT 1) q ORDER BY a;
CREATE VIEW rf_un_v AS SELECT a, 1 / b AS x FROM rf_un ORDER BY a OFFSET 1;
SELECT a FROM rf_un_v;
SELECT x FROM rf_un_v;
SELECT a FROM (SELECT a, (1 / 0) AS x FROM rf_un LIMIT 3) q ORDER BY a;
SELECT count(*) FROM (SELECT 1 / b FROM rf_un LIMIT 3) q;
SELECT count(*) FROM (SELECT 1 / b AS x, lag(a) OVER (ORDER BY a) AS y FROM rf_un) q;
