//! Postgres's pg_type, pg_cast, pg_operator, pg_proc, pg_aggregate, as exported from PostgreSQL 15.
