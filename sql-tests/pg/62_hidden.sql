-- What may be said once is refused when it is said twice, or against itself.
--@new
--@nosplit
CREATE TABLE hs_once (a int, b text, c int);
CREATE TABLE hs_two_keys (a int PRIMARY KEY PRIMARY KEY);
CREATE TABLE hs_two_keys (a int CONSTRAINT p PRIMARY KEY CONSTRAINT q PRIMARY KEY);
CREATE TABLE hs_two_keys (a int PRIMARY KEY, PRIMARY KEY (a));
ALTER TABLE hs_once ADD COLUMN d int PRIMARY KEY PRIMARY KEY;
CREATE TABLE hs_unique (a int UNIQUE PRIMARY KEY UNIQUE);
CREATE TABLE hs_collated (a text COLLATE "C" COLLATE "POSIX");
CREATE TABLE hs_filled (a int) WITH (fillfactor = 10, fillfactor = 20);
CREATE TABLE hs_filled (a int) WITH (fillfactor = 5, fillfactor = 20);
CREATE TABLE hs_filled (a int) WITH (fillfactor = 10, toast.autovacuum_enabled, autovacuum_enabled);
ALTER TABLE hs_once SET (fillfactor = 50, fillfactor = 60);
CREATE INDEX ON hs_once (a) WITH (fillfactor = 50, fillfactor = 60);
CREATE VIEW hs_barrier WITH (security_barrier, security_barrier = false) AS SELECT 1 AS a;
CREATE VIEW hs_checked WITH (check_option = local, check_option = cascaded) AS SELECT * FROM hs_once;
CREATE VIEW hs_checked WITH (check_option = local) AS SELECT * FROM hs_once WITH CASCADED CHECK OPTION;
CREATE VIEW hs_checked WITH (check_option = local, security_invoker) AS SELECT * FROM hs_once;
ALTER VIEW hs_checked SET (security_barrier, security_barrier);
ALTER VIEW hs_checked RESET (security_barrier, security_barrier);
-- domains
CREATE DOMAIN hs_null AS int NOT NULL NULL;
CREATE DOMAIN hs_null AS int NULL CHECK (VALUE > 0) NOT NULL;
CREATE DOMAIN hs_null AS int NOT NULL NOT NULL;
CREATE DOMAIN hs_null_too AS int NULL DEFAULT 1 NULL;
CREATE DOMAIN hs_default AS int DEFAULT 1 DEFAULT 1;
CREATE DOMAIN hs_default AS int CONSTRAINT named DEFAULT 7;
CREATE DOMAIN hs_collation AS text COLLATE "C" COLLATE "C";
CREATE DOMAIN hs_named AS int CONSTRAINT x CHECK (VALUE > 0) CONSTRAINT x CHECK (VALUE > 1);
CREATE DOMAIN hs_named AS int CHECK (VALUE > 0) CONSTRAINT hs_named_check CHECK (VALUE > 1);
CREATE DOMAIN hs_named AS int CONSTRAINT hs_named_check CHECK (VALUE > 0) CHECK (VALUE > 1);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname LIKE 'hs\_named%' ORDER BY conname;
CREATE DOMAIN hs_refused AS int UNIQUE;
CREATE DOMAIN hs_refused AS int PRIMARY KEY;
CREATE DOMAIN hs_refused AS int REFERENCES hs_once (a);
CREATE TABLE hs_domains (a hs_default, b hs_null_too);
INSERT INTO hs_domains DEFAULT VALUES RETURNING *;
