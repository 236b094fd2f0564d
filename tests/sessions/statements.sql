-- Statements of a session: settings, prepared statements, cursors, savepoints, writes of every form, COPY that fails.
create table t (id int primary key, v text, n int default 7);
insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
insert into t (id) values (4) returning *;
insert into t values (1, 'x') on conflict do nothing;
insert into t values (1, 'x') on conflict (id) do update set v = excluded.v || t.v returning id, v;
insert into t values (1, 'x') on conflict (id) do update set v = 'no' where t.n > 100 returning id;
insert into t values (1, 'x') on conflict (v) do nothing;
insert into t values (8, 'p'), (8, 'q') on conflict (id) do update set v = excluded.v;
insert into t values (9, 'p'), (9, 'q') on conflict (id) do nothing;
select * from t order by id;
create table u (id int, w text);
insert into u values (1, 'one'), (2, 'two'), (2, 'zwei'), (99, 'none');
update t set v = u.w from u where t.id = u.id and u.id = 1 returning t.*, u.w;
update t set (v, n) = ('both', 0) where id = 2;
update t set n = n + 1, id = id where id < 3 returning id, n;
update t set nope = 1;
update t set id = 1 where id = 2;
delete from t using u where t.id = u.id and w = 'zwei' returning t.id, w;
delete from t where id = 9 returning *;
select * from t order by id;
truncate u;
select count(*) from u;
create table c as select id, v from t where id < 4 with no data;
select * from c;
create table d (a, b) as select 1, 'x'::text;
select * from d;
create temporary view tv as select 1 as one;
select * from tv;
drop view tv;
alter table t rename to t2;
select count(*) from t2;
alter table t2 rename column v to vv;
select vv from t2 where id = 1;
alter table t2 rename to t;
alter table if exists nope rename to x;
set application_name = 'me';
show application_name;
begin;
set local application_name = 'inside';
show application_name;
commit;
show application_name;
begin;
set application_name = 'gone';
rollback;
show application_name;
reset application_name;
set nope = 1;
set datestyle = 'German';
select date '2024-02-29';
reset all;
select date '2024-02-29';
set timezone = 'Nowhere/Land';
set extra_float_digits = 99;
discard all;
prepare p (int) as select id, vv from t where id = $1;
execute p (1);
execute p (1, 2);
prepare p as select 1;
prepare q as select $1::int + $2;
execute q (1, 2);
deallocate p;
execute p (1);
deallocate nope;
deallocate all;
begin;
declare cur cursor for select id from t order by id;
fetch 1 from cur;
fetch next cur;
move 1 in cur;
fetch all cur;
fetch 1 cur;
close cur;
close cur;
rollback;
declare nocur cursor for select 1;
begin;
declare held cursor with hold for select id from t order by id;
fetch 1 held;
commit;
fetch 1 held;
close held;
fetch 1 held;
begin;
savepoint a;
insert into t values (50, 's');
savepoint b;
insert into t values (51, 's');
select 1 / 0;
select 1;
rollback to b;
select id from t where id >= 50 order by id;
release b;
rollback to a;
select id from t where id >= 50 order by id;
rollback to nope;
commit;
savepoint outside;
release savepoint outside;
begin; begin; commit;
commit;
rollback;
begin isolation level serializable read only; insert into t values (77); rollback;
start transaction read write; commit and chain; select 1; rollback and chain; rollback;
begin; set transaction isolation level repeatable read; show transaction_isolation; commit;
select 1\; select 2\; select 3;
insert into t values (60)\; select 1 / 0;
select count(*) from t where id = 60;
begin\; insert into t values (61)\; commit\; select 1 / 0;
select count(*) from t where id = 61;
copy t from stdin;
70	x	1
71	y	z
72	q	3
\.
copy t from stdin;
70	x
\.
copy t from stdin;
70	x	1	extra
\.
copy t (id, vv) from stdin with (format csv, header);
id,vv
70,"quo""ted"
71,
\.
copy t (id) from stdin csv;
73
\.
copy (select * from t where id >= 70 order by id) to stdout;
copy (select * from t where id >= 70 order by id) to stdout with (format csv, null 'NUL', delimiter ';');
copy t (id, n) from stdin with (format csv);
80,
81,x
\.
copy t (id, n) from stdin with (null 'NUL', delimiter '|');
80|NUL
\.
select * from t where id >= 70 order by id;
comment on table t is 'the table';
comment on column t.vv is 'the column';
select obj_description('t'::regclass), col_description('t'::regclass, 2), obj_description('t'::regclass, 'pg_class');
comment on table t is null;
select obj_description('t'::regclass);
select has_table_privilege('t', 'select'), has_schema_privilege('public', 'usage'), has_column_privilege('t', 'id', 'select'), has_database_privilege(current_database(), 'connect');
select format_type(23, -1), format_type(1700, 655366), format_type(1043, 24), format_type(1007, null), format_type(0, null), format_type(99999999, null);
select 'nope'::regclass;
select to_regclass('nope'), to_regclass('t'), to_regtype('int4');
values (1, 'x'), (2, 'y') order by 1 desc limit 1;
table t order by id limit 1;
vacuum t;
analyze t;
unlisten *;
create table n (a int, constraint k check (a > 0), constraint k check (a < 5));
create table n (a int, b text);
insert into n values (generate_series(1, 3), 'x');
insert into n (b) values (unnest(array['p', 'q']));
insert into n values (generate_series(1, 3), default);
select * from n order by a, b;
select 1e-50::float4;
select 1e-400::numeric::float8;
copy (select 1) to stdout (format binary, header);
copy (select 1) to stdout (format binary, null 'x');
start transaction;
commit;
create temp table own (a int);
insert into pg_temp.own values (1);
select * from pg_temp.own;
drop table pg_temp.own;
select * from pg_temp.own;
