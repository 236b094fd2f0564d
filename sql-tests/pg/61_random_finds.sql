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
