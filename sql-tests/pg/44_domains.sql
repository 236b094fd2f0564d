--@nosplit
-- domains: casts and columns
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN name5 AS varchar(5) NOT NULL DEFAULT 'abc';
CREATE DOMAIN posint2 AS posint CHECK (VALUE < 100);
CREATE DOMAIN ints AS int[] CHECK (cardinality(VALUE) < 3);
SELECT 5::posint, '7'::posint, 5::posint + 1, NULL::posint, 5.4::posint, 5::posint2, '{1,2}'::ints, ('{1,2}'::ints)[1];
SELECT (-5)::posint;
SELECT '0'::posint;
SELECT 'x'::posint;
SELECT 500::posint2;
SELECT (-1)::posint2;
SELECT NULL::name5;
SELECT 'abcdefgh'::name5;
SELECT '{1,2,3}'::ints;
SELECT CAST(id AS posint) FROM emp WHERE id < 3 ORDER BY id;
SELECT CAST(-id AS posint) FROM emp;
CREATE TABLE dt (id posint, n name5, c posint2 DEFAULT 5);
INSERT INTO dt (id) VALUES (1);
INSERT INTO dt VALUES (-1, 'x');
INSERT INTO dt VALUES (1, NULL);
INSERT INTO dt VALUES (1, 'toolong');
INSERT INTO dt VALUES (1, 'ok', 100);
INSERT INTO dt VALUES (NULL, 'ok', NULL);
SELECT * FROM dt ORDER BY id;
UPDATE dt SET id = -1;
UPDATE dt SET c = c + 1 WHERE c IS NOT NULL;
SELECT id + 1, n || 'x', c FROM dt ORDER BY id;
SELECT sum(id), max(n) FROM dt;
DROP DOMAIN posint;
DROP TABLE dt;
DROP DOMAIN posint2;
DROP DOMAIN IF EXISTS nope;
DROP DOMAIN nope;
CREATE DOMAIN bad AS nope;
CREATE DOMAIN posint AS int;
DROP DOMAIN posint, name5, ints;

--@new
