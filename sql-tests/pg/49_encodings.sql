-- conversions between encodings
SELECT convert_to('aé€', 'LATIN9'), convert_to('naïve', 'LATIN1'), convert_to('naïve', 'iso-8859-1'), convert_to('Привет', 'KOI8R'), convert_to('Привет', 'WIN1251'), convert_to('日本語', 'EUC_JP'), convert_to('日本語', 'SJIS'), convert_to('中文', 'GBK'), convert_to('中文', 'BIG5'), convert_to('한국', 'UHC'), convert_to('ı', 'LATIN5');
SELECT convert_from('\x61e9a4', 'LATIN9'), convert_from('\xe9', 'windows-1252'), convert_from('\xf0d2c9d7c5d4', 'koi8'), convert_from('\xc6fccbdc', 'EUC_JP'), convert_from('\x93fa967b', 'SJIS'), convert_from('\xd6d0', 'GB18030'), convert_from('\x8fabb1', 'EUC_JP');
SELECT convert_to('€', 'LATIN1');
SELECT convert_to('日', 'KOI8R');
SELECT convert_from('\x81', 'WIN1252');
SELECT convert_from('\xa4', 'EUC_JP');
SELECT convert_from('\xff', 'UTF8');
SELECT convert_from('\x61', 'klingon');
SELECT convert_to('a', 'klingon');
SELECT convert('\xe9', 'LATIN1', 'UTF8'), convert('\xc3a9', 'UTF8', 'LATIN1'), convert('\x93fa', 'SJIS', 'EUC_JP'), length('\xc3a9'::bytea, 'UTF8'), length('\x93fa61'::bytea, 'SJIS');
SELECT pg_client_encoding(), getdatabaseencoding();
--@nosplit
SET client_encoding = 'iso 8859-15';
SHOW client_encoding;
SELECT pg_client_encoding();
SET client_encoding = 'klingon';
SET NAMES 'win1252';
SHOW client_encoding;
RESET client_encoding;
SHOW client_encoding;
--@split
CREATE RECURSIVE VIEW upto (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM upto WHERE n < 4;
SELECT * FROM upto ORDER BY n;
CREATE OR REPLACE TEMP RECURSIVE VIEW upto2 (n, m) AS SELECT 1, 'x' UNION ALL SELECT n + 1, m || 'x' FROM upto2 WHERE n < 3;
SELECT * FROM upto2 ORDER BY n;
DROP VIEW upto, upto2;
SELECT regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x), regr_avgx(y, x), regr_avgy(y, x), corr(y, x), regr_slope(y, x), covar_pop(y, x) FROM (VALUES (1.0::float8, 'NaN'::float8), (2, 3)) v(y, x);
SELECT regr_sxx(y, x), regr_syy(y, x), regr_avgx(y, x), regr_avgy(y, x), regr_r2(y, x), regr_intercept(y, x) FROM (VALUES ('Infinity'::float8, 1.0::float8), (2, 1)) v(y, x);
SELECT corr(y, x) FROM (VALUES (1e200::float8, 1e200::float8), (-1e200, 1e200)) v(y, x);
CREATE TABLE us (k int4, a int);
CREATE TABLE them (k int8, b int);
INSERT INTO us VALUES (1, 10), (2, 20);
INSERT INTO them VALUES (2, 5), (3, 6);
SELECT k FROM us LEFT JOIN them USING (k) GROUP BY us.k ORDER BY 1;
SELECT k, count(*) FROM us FULL JOIN them USING (k) GROUP BY k ORDER BY 1;
SELECT k, a, b FROM us FULL JOIN them USING (k) ORDER BY k;
SELECT k + 1, sum(a) FROM us JOIN them USING (k) GROUP BY us.k;
DROP TABLE us, them;
