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
