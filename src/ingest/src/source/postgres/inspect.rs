//! Looking at the upstream database: connecting, what must be set there, which tables a publication has.

use super::lsn::{Followed, Lsn};
use super::tls::Tls;
use crate::spec::{Connector, UpstreamTable};
use repr::error::state;
use repr::{ColType, RelDesc, SqlError, SqlType};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls};

/// The oldest server whose replication stream has what is used here (`messages`).
const VERSION_MIN: i32 = 140_000;
/// How long the server may take to let us in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Where and as whom to connect.
#[derive(Clone)]
pub struct Target {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    pub publication: String,
    pub slot: String,
    pub tls: Tls,
}

impl Target {
    /// Errors: not a Postgres connector; SSL options that cannot be.
    pub fn of(connector: &Connector) -> Result<Target, SqlError> {
        let Connector::Postgres { host, port, user, password, database, ssl_mode, certificates, publication, slot } = connector else {
            return Err(SqlError::internal("not a PostgreSQL connector"));
        };
        let tls = Tls::new(ssl_mode, certificates)?;
        let (host, port, user, password) = (host.clone(), *port, user.clone(), password.clone());
        Ok(Target { host, port, user, password, database: database.clone(), publication: publication.clone(), slot: slot.clone(), tls })
    }

    pub fn connection_error(&self, why: &str) -> SqlError {
        SqlError::new(state::CONNECTION_FAILURE, format!("could not connect to PostgreSQL at {}:{}: {why}", self.host, self.port))
    }

    /// A connection for queries, whose values print as they do in the replication stream.
    pub async fn connect(&self) -> Result<Client, SqlError> {
        let mut config = Config::new();
        config.user(&self.user).dbname(&self.database).application_name("riverdelta").ssl_mode(tokio_postgres::config::SslMode::Disable);
        config.options(SESSION_OPTIONS);
        if let Some(password) = &self.password {
            config.password(password);
        }
        // The stream is encrypted already, where it is.
        let stream = self.tls.connect(&self.host, self.port).await.map_err(|why| self.connection_error(&why))?;
        let login = tokio::time::timeout(LOGIN_TIMEOUT, config.connect_raw(stream, NoTls)).await;
        let login = login.map_err(|_| self.connection_error("the server does not answer"))?;
        let (client, connection) = login.map_err(|e| self.connection_error(&error_text(&e)))?;
        tokio::spawn(async move {
            if let Err(e) = connection.await {
                tracing::debug!(error = %e, "connection to PostgreSQL ended");
            }
        });
        Ok(client)
    }
}

/// Text forms that do not depend on the server's or the role's settings.
pub const SESSION_OPTIONS: &str =
    "-c datestyle=ISO,MDY -c intervalstyle=postgres -c timezone=UTC -c extra_float_digits=1 -c bytea_output=hex -c statement_timeout=0 -c idle_in_transaction_session_timeout=0";

/// The server's own words if there are any.
pub fn error_text(e: &tokio_postgres::Error) -> String {
    match e.as_db_error() {
        Some(db) => db.message().to_owned(),
        None => {
            let cause = std::error::Error::source(e).map(|s| format!(": {s}")).unwrap_or_default();
            format!("{e}{cause}")
        }
    }
}

pub fn query_error(e: tokio_postgres::Error) -> SqlError {
    SqlError::new(state::CONNECTION_FAILURE, format!("PostgreSQL reports: {}", error_text(&e)))
}

fn setting(message: String, hint: String) -> SqlError {
    SqlError::new(repr::SqlState::new("55000"), message).with_hint(hint)
}

/// A table as the publication publishes it.
#[derive(Clone, Debug)]
pub struct Published {
    pub table: UpstreamTable,
    pub oid: u32,
    /// Rows of it alone, or of its partitions too.
    pub is_partitioned: bool,
    pub row_filter: Option<String>,
}

/// Server settings, publication and its tables.
/// Errors: what must be set or made upstream, with the statement that does it.
pub async fn inspect(client: &Client, target: &Target) -> Result<Vec<Published>, SqlError> {
    let version: i32 = client.query_one_scalar("SELECT current_setting('server_version_num')::int4", &[]).await.map_err(query_error)?;
    if version < VERSION_MIN {
        return Err(SqlError::unsupported("a PostgreSQL server older than version 14", "upgrade the upstream server"));
    }
    let wal_level: String = client.query_one_scalar("SELECT current_setting('wal_level')", &[]).await.map_err(query_error)?;
    if wal_level != "logical" {
        let hint = "run ALTER SYSTEM SET wal_level = logical upstream and restart that server".to_owned();
        return Err(setting(format!("wal_level of the upstream database is \"{wal_level}\", but must be \"logical\""), hint));
    }
    let may: bool = client
        .query_one_scalar(
            "SELECT rolsuper OR rolreplication OR pg_has_role(current_user, oid, 'member') AND rolsuper FROM pg_roles WHERE rolname = current_user",
            &[],
        )
        .await
        .map_err(query_error)?;
    if !may {
        // Managed services give replication by roles of their own, so this is only said if it is also refused there.
        let managed: bool = client
            .query_one_scalar("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname IN ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin') AND pg_has_role(current_user, oid, 'member'))", &[])
            .await
            .map_err(query_error)?;
        if !managed {
            let hint = format!("run ALTER ROLE {} REPLICATION upstream", quote(&target.user));
            return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("upstream role \"{}\" may not replicate", target.user)).with_hint(hint));
        }
    }
    // Only the connection is looked at.
    if target.publication.is_empty() {
        return Ok(Vec::new());
    }
    let exists: bool =
        client.query_one_scalar("SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1)", &[&target.publication]).await.map_err(query_error)?;
    if !exists {
        let hint = format!("run CREATE PUBLICATION {} FOR ALL TABLES upstream, or name the tables", quote(&target.publication));
        return Err(SqlError::new(
            state::UNDEFINED_OBJECT,
            format!("publication \"{}\" does not exist in upstream database \"{}\"", target.publication, target.database),
        )
        .with_hint(hint));
    }
    tables(client, target, version).await
}

async fn tables(client: &Client, target: &Target, version: i32) -> Result<Vec<Published>, SqlError> {
    // Column lists and row filters came with version 15.
    let extra = if version >= 150_000 { "p.attnames::text[], p.rowfilter" } else { "NULL::text[], NULL::text" };
    let sql = format!(
        "SELECT n.nspname::text, c.relname::text, c.oid, c.relkind = 'p', {extra}
         FROM pg_publication_tables p JOIN pg_namespace n ON n.nspname = p.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
         WHERE p.pubname = $1 ORDER BY 1, 2"
    );
    let mut out = Vec::new();
    for row in client.query(&sql, &[&target.publication]).await.map_err(query_error)? {
        let oid: u32 = row.get(2);
        let listed: Option<Vec<String>> = row.get(4);
        let desc = describe(client, oid, listed.as_deref()).await?;
        let table = UpstreamTable { schema: row.get(0), name: row.get(1), desc };
        out.push(Published { table, oid, is_partitioned: row.get(3), row_filter: row.get(5) });
    }
    Ok(out)
}

/// What a publication publishes now: kinds of changes (`i`, `u`, `d`, `t`), and for each table its oid and row filter.
pub async fn published_now(client: &Client, publication: &str) -> Result<Option<(String, BTreeMap<String, Followed>)>, tokio_postgres::Error> {
    let sql = "SELECT concat(CASE WHEN pubinsert THEN 'i' END, CASE WHEN pubupdate THEN 'u' END, CASE WHEN pubdelete THEN 'd' END, CASE WHEN pubtruncate THEN 't' END)
               FROM pg_publication WHERE pubname = $1";
    let Some(row) = client.query_opt(sql, &[&publication]).await? else { return Ok(None) };
    let version: i32 = client.query_one_scalar("SELECT current_setting('server_version_num')::int4", &[]).await?;
    let filter = if version >= 150_000 { "p.rowfilter" } else { "NULL::text" };
    let sql = format!(
        "SELECT p.schemaname || '.' || p.tablename, c.oid, {filter}
         FROM pg_publication_tables p JOIN pg_namespace n ON n.nspname = p.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
         WHERE p.pubname = $1"
    );
    let tables = client.query(&sql, &[&publication]).await?;
    let tables = tables.iter().map(|r| (r.get(0), Followed { oid: r.get(1), filter: r.get(2) })).collect();
    Ok(Some((row.get(0), tables)))
}

/// Where upstream's log ends now. `None`: it did not say.
pub async fn log_end(client: &Client) -> Option<Lsn> {
    let sql = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END)::text";
    client.query_one_scalar::<String, str>(sql, &[]).await.ok()?.parse().ok()
}

/// Columns (generated ones are not replicated) and primary key.
async fn describe(client: &Client, oid: u32, listed: Option<&[String]>) -> Result<RelDesc, SqlError> {
    // A domain may be over another one.
    let sql = "SELECT a.attname::text, b.oid, b.typmod, a.attnotnull FROM pg_attribute a CROSS JOIN LATERAL (
                   WITH RECURSIVE b (oid, typmod, depth) AS (SELECT a.atttypid, a.atttypmod, 0 UNION ALL
                       SELECT t.typbasetype, t.typtypmod, depth + 1 FROM b JOIN pg_type t ON t.oid = b.oid WHERE t.typtype = 'd')
                   SELECT oid, typmod FROM b ORDER BY depth DESC LIMIT 1) b
               WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum";
    let mut desc = RelDesc::default();
    for row in client.query(sql, &[&oid]).await.map_err(query_error)? {
        let name: String = row.get(0);
        if listed.is_some_and(|l| !l.contains(&name)) {
            continue;
        }
        let (type_oid, typmod, not_null): (u32, i32, bool) = (row.get(1), row.get(2), row.get(3));
        let ty = our_type(type_oid);
        let typmod = if ty == SqlType::Text { -1 } else { typmod };
        desc.names.push(name);
        desc.types.push(ColType { ty, typmod, nullable: !not_null });
    }
    let names = primary_key(client, oid).await.map_err(query_error)?;
    let key: Option<Vec<usize>> = names.iter().map(|n| desc.names.iter().position(|m| m == n)).collect();
    desc.keys.extend(key.filter(|k| !k.is_empty()));
    Ok(desc)
}

/// Columns of a table's primary key, in its order; empty if it has none.
pub async fn primary_key(client: &Client, oid: u32) -> Result<Vec<String>, tokio_postgres::Error> {
    let sql = "SELECT a.attname::text FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, pos)
               JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE i.indrelid = $1 AND i.indisprimary AND k.pos <= i.indnkeyatts ORDER BY k.pos";
    Ok(client.query(sql, &[&oid]).await?.iter().map(|r| r.get(0)).collect())
}

/// Whether a unique index, not of a part of the rows, is on exactly these columns of a table: an index with generated columns is announced without them.
pub async fn is_unique(client: &Client, oid: u32, columns: &[String]) -> Result<bool, tokio_postgres::Error> {
    let sql = "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = $1 AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
               AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE \"C\") FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, pos)
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.pos <= i.indnkeyatts) = $2::text[])";
    let mut columns = columns.to_vec();
    columns.sort();
    client.query_one_scalar(sql, &[&oid, &columns]).await
}

/// Waits until what a transaction has changed is seen by others: it is in the log, and so in the stream, a moment before.
pub async fn until_visible(client: &Client, xid: u32) -> Result<(), tokio_postgres::Error> {
    let sql = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND granted AND transactionid::text = $1)";
    while client.query_one_scalar::<bool, str>(sql, &[&xid.to_string()]).await? {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// The type that values of an upstream type are kept in: text for types we do not have, and for names that only mean something there.
pub fn our_type(oid: u32) -> SqlType {
    fn is_known(ty: &SqlType) -> bool {
        match ty {
            SqlType::Reg(_) | SqlType::Record(_) | SqlType::Unknown | SqlType::Void | SqlType::JsonPath | SqlType::AclItem => false,
            SqlType::Array(e) => is_known(e),
            _ => true,
        }
    }
    SqlType::from_oid(oid).filter(is_known).unwrap_or(SqlType::Text)
}

/// An identifier in double quotes.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
