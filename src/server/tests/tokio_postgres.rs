//! A Rust program with `tokio-postgres` against the binary: statements, types, transactions, portals, COPY, cancel, errors.

use futures::{pin_mut, SinkExt, StreamExt, TryStreamExt};
use std::process::{Child, Command};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

/// The server, in a directory of its own; both go at the end.
struct Server {
    child: Child,
    dir: std::path::PathBuf,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map(|a| a.port()).expect("a free port")
}

fn start() -> Server {
    let dir = std::env::temp_dir().join(format!("riverdelta-tokio-postgres-{}", std::process::id()));
    let port = free_port();
    let child = Command::new(env!("CARGO_BIN_EXE_riverdelta"))
        .args(["serve", "--workers", "2", "--data-dir"])
        .arg(&dir)
        .args(["--pg-listen", &format!("127.0.0.1:{port}"), "--http-listen", &format!("127.0.0.1:{}", free_port())])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the binary starts");
    Server { child, dir, port }
}

async fn connect(server: &Server) -> Client {
    let mut config = Config::new();
    config.host("127.0.0.1").port(server.port).user("riverdelta").dbname("riverdelta");
    for _ in 0..300 {
        if let Ok((client, connection)) = config.connect(NoTls).await {
            tokio::spawn(connection);
            return client;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server does not answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_does_what_programs_do() -> Result<(), tokio_postgres::Error> {
    let server = start();
    let mut db = connect(&server).await;
    db.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, n int8, f float8, ok bool, raw bytea, tags text[]); CREATE INDEX t_n ON t (n)")
        .await?;

    let insert = db.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7)").await?;
    for i in 0..100_i32 {
        let (name, raw, tags) = (format!("n{i}"), vec![i as u8, 0, 255], vec![Some("a".to_owned()), None]);
        assert_eq!(db.execute(&insert, &[&i, &name, &i64::from(i), &(f64::from(i) / 3.0), &(i % 2 == 0), &raw, &tags]).await?, 1);
    }
    let row = db.query_one("SELECT * FROM t WHERE id = $1", &[&7_i32]).await?;
    assert_eq!((row.get::<_, i32>("id"), row.get::<_, &str>("name"), row.get::<_, i64>("n")), (7, "n7", 7));
    assert_eq!((row.get::<_, f64>("f"), row.get::<_, bool>("ok"), row.get::<_, Vec<u8>>("raw")), (7.0 / 3.0, false, vec![7, 0, 255]));
    assert_eq!(row.get::<_, Vec<Option<String>>>("tags"), vec![Some("a".to_owned()), None]);
    assert_eq!(db.query("SELECT id FROM t WHERE id = ANY($1) ORDER BY id", &[&vec![3, 1, 2]]).await?.len(), 3);
    assert!(db.query_opt("SELECT 1 FROM t WHERE id = $1", &[&-1_i32]).await?.is_none());

    // Queries in flight at once on one connection.
    let (a, b) = tokio::try_join!(db.query_one("SELECT count(*) FROM t", &[]), db.query_one("SELECT sum(n)::int8 FROM t WHERE n < $1", &[&10_i64]))?;
    assert_eq!((a.get::<_, i64>(0), b.get::<_, i64>(0)), (100, 45));

    // A portal in a transaction, a savepoint, and nothing left of what was rolled back.
    let mut tx = db.transaction().await?;
    let statement = tx.prepare("SELECT id FROM t ORDER BY id").await?;
    let portal = tx.bind(&statement, &[]).await?;
    let mut seen = Vec::new();
    loop {
        let rows = tx.query_portal(&portal, 30).await?;
        if rows.is_empty() {
            break;
        }
        seen.extend(rows.iter().map(|r| r.get::<_, i32>(0)));
    }
    assert_eq!(seen, (0..100).collect::<Vec<i32>>());
    let sp = tx.savepoint("sp").await?;
    let error = sp.execute("INSERT INTO t (id, name) VALUES (1, 'again')", &[]).await.unwrap_err();
    let db_error = error.as_db_error().expect("an error of the database");
    assert_eq!((db_error.code(), db_error.table(), db_error.constraint()), (&SqlState::UNIQUE_VIOLATION, Some("t"), Some("t_pkey")));
    sp.rollback().await?;
    tx.execute("DELETE FROM t", &[]).await?;
    tx.rollback().await?;
    assert_eq!(db.query_one("SELECT count(*) FROM t", &[]).await?.get::<_, i64>(0), 100);

    let sink = db.copy_in("COPY t (id, name) FROM STDIN").await?;
    pin_mut!(sink);
    sink.send(bytes::Bytes::from_static(b"200\ttwo hundred\n201\ttwo")).await?;
    sink.send(bytes::Bytes::from_static(b" hundred and one\n")).await?;
    assert_eq!(sink.finish().await?, 2);
    let out: Vec<bytes::Bytes> = db.copy_out("COPY (SELECT id, name FROM t WHERE id >= 200 ORDER BY id) TO STDOUT").await?.try_collect().await?;
    assert_eq!(out.concat(), b"200\ttwo hundred\n201\ttwo hundred and one\n");

    // A subscription is a stream of rows; a cancel ends it.
    let cancel = db.cancel_token();
    let rows = db.query_raw("SUBSCRIBE (SELECT id FROM t WHERE id >= 200)", Vec::<i32>::new()).await?;
    pin_mut!(rows);
    assert!(rows.next().await.expect("a row").is_ok());
    assert!(rows.next().await.expect("a row").is_ok());
    cancel.cancel_query(NoTls).await?;
    let end = rows.next().await.expect("the error").unwrap_err();
    assert_eq!(end.code(), Some(&SqlState::QUERY_CANCELED));
    assert_eq!(db.query("SELEC 1", &[]).await.unwrap_err().code(), Some(&SqlState::SYNTAX_ERROR));
    assert_eq!(db.simple_query("SELECT 1; SELECT 2").await?.len(), 6);
    Ok(())
}
