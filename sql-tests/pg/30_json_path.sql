-- datetime(): ISO 8601 without a template, the template's fields decide with one
SELECT jsonb_path_query('["2019-05-06", "07:08:09", "07:08:09.25+02", "2019-05-06 07:08:09", "2019-05-06T07:08:09.5", "2019-05-06 07:08:09-03:30", "2019-05-06T07:08:09+01"]', '$[*].datetime()');
SELECT jsonb_path_query('["2019-05-06", "07:08:09", "07:08:09.25+02", "2019-05-06 07:08:09", "2019-05-06 07:08:09-03:30"]', '$[*].datetime().type()');
SELECT jsonb_path_query('"06/05/2019"', '$.datetime("dd/mm/yyyy")'), jsonb_path_query('"06/05/2019 17"', '$.datetime("dd/mm/yyyy hh24")'), jsonb_path_query('"5:06 pm"', '$.datetime("hh12:mi am")');
SELECT jsonb_path_query('"06/05/2019 17:30 -04"', '$.datetime("dd/mm/yyyy hh24:mi tzh")'), jsonb_path_query('"17:30 +05:45"', '$.datetime("hh24:mi tzh:tzm").type()');
SELECT jsonb_path_query('"2019 week"', '$.datetime("yyyy \"week\"")'), jsonb_path_query('"17:30:12.3456"', '$.datetime("hh24:mi:ss.ff2")');
SELECT jsonb_path_query('"yesterday"', '$.datetime()'), jsonb_path_query('7', '$.datetime()'), jsonb_path_query('"2019-05-06x"', '$.datetime("yyyy-mm-dd")'), jsonb_path_query('"2019-05"', '$.datetime("yyyy-mm-dd")');
SELECT jsonb_path_query('"2019.05"', '$.datetime("yyyy-mm")'), jsonb_path_query('"2019x05"', '$.datetime("yyyy\"y\"mm")'), jsonb_path_query('"x"', '$.datetime("")'), jsonb_path_query('"2019-14-01"', '$.datetime("yyyy-mm-dd")'), jsonb_path_query('"2019 +02"', '$.datetime("yyyy tzh")');
SELECT jsonb_path_query('"17:30 +17"', '$.datetime("hh24:mi tzh")'), jsonb_path_query('"2019|05"', '$.datetime("yyyy|mm")', silent => true), jsonb_path_query('"2019 EST"', '$.datetime("yyyy tz")');
SELECT jsonb_path_query('["2019-05-06", 3, "x"]', '$[*].datetime()', silent => true);
SELECT jsonb_path_query('{"d": "2019-05-06"}', '$.d.datetime().size()'), jsonb_path_query('{"d": "2019-05-06"}', 'strict $.d.datetime().a'), jsonb_path_query('{"d": "2019-05-06"}', '$.d.datetime() ? (@ > 1)');
-- their order: a day beside a timestamp, a time beside a day, and what needs the time zone
SELECT jsonb_path_query('["2019-05-06", "2019-05-06 00:00:00", "2019-05-06T01:00:00", "2019-05-05"]', '$[*].datetime() ? (@ >= "2019-05-06".datetime())');
SELECT jsonb_path_query('["2019-05-06", "07:08:09"]', '$[*].datetime() ? ((@ == "2019-05-06".datetime()) is unknown)');
SELECT jsonb_path_query('["06:00:00+00", "07:00:00+02", "09:00:00+02:30"]', '$[*].datetime() ? (@ <= "06:00:00+00".datetime())');
SELECT jsonb_path_exists('["2019-05-06 00:30:00+00"]', '$[*].datetime() ? (@ > "2019-05-06".datetime())');
SELECT jsonb_path_exists('["2019-05-06 00:30:00"]', '$[*].datetime() ? (@ > "2019-05-06 00:00:00+00".datetime())', silent => true);
SELECT jsonb_path_match('"08:00:00"', '$.datetime() < "09:00:00+00".datetime()');
SELECT jsonb_path_query_array_tz('["2019-05-06", "2019-05-06 10:00:00", "2019-05-06 10:00:00+09", "2019-05-06T03:00:00-04"]', '$[*].datetime() ? (@ >= "2019-05-06 07:00:00+00".datetime())');
SELECT jsonb_path_match_tz('"08:00:00"', '$.datetime() < "09:00:00+00".datetime()'), jsonb_path_exists_tz('"2019-05-06"', '$.datetime() ? (@ == "2019-05-06T00:00:00".datetime())'), jsonb_path_query_first_tz('["2019-05-06"]', '$[0].datetime() ? (@ < "2019-05-06 12:00:00+00".datetime())');
SELECT * FROM jsonb_path_query_tz('["2019-05-06 10:00:00"]', '$[*].datetime() ? (@ == "2019-05-06 10:00:00+00".datetime())');
SELECT '["2019-05-06 10:00:00"]'::jsonb @? '$[*].datetime() ? (@ > "2019-05-06".datetime())', '"2019-05-06"'::jsonb @@ '$.datetime() == "2019-05-06".datetime()';
-- words, escapes and numbers of the language
SELECT '$.k"'::jsonpath, '"\x61\u0062\u{63}"'::jsonpath, '"\u{1F600}\ud83d\ude00"'::jsonpath, '$.\u0061b'::jsonpath, '$.a;b''c'::jsonpath, '"\q\/\""'::jsonpath, '$."x\ty"'::jsonpath, '$v$w'::jsonpath;
SELECT '"\x6"'::jsonpath, '"\u00g0"'::jsonpath, '"\u{}"'::jsonpath, '"\u{1234567}"'::jsonpath, '"\u0000"'::jsonpath, '"\x00"'::jsonpath, '"\ud83d"'::jsonpath, '"\ude00"'::jsonpath, '"\ud83d\ud83d"'::jsonpath, '"\ud83dx"'::jsonpath, '"\u{110000}"'::jsonpath;
SELECT '1.'::jsonpath, '.5'::jsonpath, '1.e2'::jsonpath, '2..k'::jsonpath, '(2).k'::jsonpath, '(2.).k'::jsonpath, '2.5.k'::jsonpath, '2.k'::jsonpath, '1e3'::jsonpath, '1e-3'::jsonpath, '0.10'::jsonpath, '-7'::jsonpath, '+ 7'::jsonpath;
SELECT '00'::jsonpath, '07'::jsonpath, '000'::jsonpath, '7x'::jsonpath, '7xy'::jsonpath, '7e'::jsonpath, '7e+'::jsonpath, '1.5z'::jsonpath, '1e2f'::jsonpath, '0x1f'::jsonpath, '1_000'::jsonpath;
SELECT 'NULL'::jsonpath, 'null'::jsonpath, 'TRUE'::jsonpath, 'STRICT $'::jsonpath, '$.SIZE()'::jsonpath, '$.Type'::jsonpath, '$[LAST]'::jsonpath, '/* none */'::jsonpath, '/* no end'::jsonpath, '$ /* x */ .a'::jsonpath, '$.**{1 to 99999999999}'::jsonpath, '$.**{1.5}'::jsonpath;
SELECT '(1 > 2) == true'::jsonpath, '1 + (1 > 2)'::jsonpath, '-(1 > 2)'::jsonpath, '!(1)'::jsonpath, 'exists(1 > 2)'::jsonpath, '(1) is unknown'::jsonpath, '$[1 > 2]'::jsonpath, '(1 > 2).type()'::jsonpath, '$ ? (@)'::jsonpath;
SELECT '$ ? (@ like_regex "a(")'::jsonpath, '$ ? (@ like_regex "a(" flag "q")'::jsonpath, '$ ? (@ like_regex "a" flag "x")'::jsonpath, '$ ? (@ like_regex "a" flag "xiq")'::jsonpath, '$ ? (@ like_regex "a" flag "z")'::jsonpath;
SELECT jsonb_path_query('["a.c", "abc", "A.C"]', '$[*] ? (@ like_regex "a.c" flag "qi")'), jsonb_path_query('["a.c", "abc"]', '$[*] ? (@ like_regex "a.c" flag "qx")');
-- ids of keyvalue(), items before an error, what is found first
SELECT jsonb_path_query('{"k": 1, "m": {"x": 2.50, "yy": [true]}}', '$.keyvalue()'), jsonb_path_query('{"k": 12345.678, "m": {"x": 2}, "n": {"y": "z"}}', '$.*.keyvalue()');
SELECT jsonb_path_query('[{"a": 0}, {"b": "text"}, {"c": [1, {"d": 1}]}]', '$[*].keyvalue().id'), jsonb_path_query('{"o": {"p": 1}}', '$.keyvalue().value.keyvalue()'), jsonb_path_query('[]', '$v.keyvalue()', '{"v": {"w": 1e70}}');
SELECT jsonb_path_query('{"a": {"n": -0.00012, "m": 100000000}, "b": {"c": null}}', '$.**.keyvalue().id', silent => true);
SELECT jsonb_path_query('[1, "2", 3]', '$[*].abs()', silent => true), jsonb_path_query_array('[1, "2", 3]', '$[*].abs()', silent => true), jsonb_path_query_first('[1, "2", 3]', '$[*].abs()', silent => true);
SELECT jsonb_path_exists('[1, "x"]', '$[*].abs()'), jsonb_path_exists('[1, "x"]', 'strict $[*].abs()', silent => true), jsonb_path_exists('[1, "x"]', 'strict $[*].abs()'), jsonb_path_match('[true, 1]', '$[*].abs()', silent => true);
SELECT jsonb_path_query('{"a": {"b": 1}}', 'strict $.**.b'), jsonb_path_query('[1, [2, {}], []]', '$.**{last}'), jsonb_path_query('5', '$.**{last}'), jsonb_path_query('[[1]]', '$.**{1 to last}'), jsonb_path_query('[[1]]', '$.**{last to 3}');
SELECT jsonb_path_query('{"a": [1, 2]}', '$ ? (exists(@.a[*] ? (@ > 1))).a[last]'), jsonb_path_query('[3, 4]', '$[last - 1 to last]'), jsonb_path_query('[{"a": [[1]]}]', '$.a.abs()');
-- json as text takes no escape that no text has; a row of unknown type
SELECT '{"a": "\u0000"}'::json ->> 'a', '["\u0000"]'::json ->> 0, '["\u0000"]'::json #>> '{0}', '["\ud83d"]'::json ->> 0, '["\u0041"]'::json ->> 0;
SELECT * FROM json_array_elements_text('["x", "\u0000"]');
SELECT * FROM json_each_text('{"k": "\ude00"}');
SELECT json_populate_record(null::record, '{"a": 1}');
SELECT jsonb_populate_record(null::record, '{"a": 1}');
SELECT json_populate_recordset(null::record, '[{"a": 1}]');
SELECT jsonb_populate_recordset(null::record, '[]');
SELECT json_populate_recordset(row(7, 'y'::text), '[{"f1": 1}, {"f2": "x"}]');
SELECT * FROM jsonb_populate_recordset(null::record, '[{"a": 1}, {"b": "x"}]') AS q(a int, b text);
SELECT * FROM json_populate_record(null::record, '{"a": 1}') AS q(a int, b text);
