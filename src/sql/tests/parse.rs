//! The parser: precedences, positions, statements of our own, depth.

use sql::ast::*;

fn expr(text: &str) -> String {
    let q = format!("SELECT {text}");
    match &sql::parse(&q).expect("parses")[0].statement {
        Statement::Select(q) => match &q.body {
            QueryBody::Select(s) => show(&s.targets[0].expr),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Fully parenthesised.
fn show(e: &Expr) -> String {
    match &*e.kind {
        ExprKind::Binary { op, left, right } => format!("({} {} {})", show(left), op.name, show(right)),
        ExprKind::Unary { op, arg } => format!("({} {})", op.name, show(arg)),
        ExprKind::And(xs) => format!("({})", xs.iter().map(show).collect::<Vec<_>>().join(" and ")),
        ExprKind::Or(xs) => format!("({})", xs.iter().map(show).collect::<Vec<_>>().join(" or ")),
        ExprKind::Not(x) => format!("(not {})", show(x)),
        ExprKind::IsNull { arg, .. } => format!("({} is null)", show(arg)),
        ExprKind::Cast { arg, ty } => format!("{}::{}", show(arg), ty.names.last().unwrap()),
        ExprKind::Column(p) => p.iter().map(|i| i.name.clone()).collect::<Vec<_>>().join("."),
        ExprKind::Number(n) => n.clone(),
        ExprKind::String(s) => format!("'{s}'"),
        ExprKind::Between { arg, low, high, .. } => format!("({} between {} {})", show(arg), show(low), show(high)),
        other => format!("{other:?}"),
    }
}

fn error(text: &str) -> (String, String, u32) {
    let e = sql::parse(text).expect_err(text);
    (e.code.as_str().to_owned(), e.message, e.position.unwrap_or(0))
}

#[test]
fn operators_bind_as_in_postgres() {
    assert_eq!(expr("a + b * c ^ d"), "(a + (b * (c ^ d)))");
    assert_eq!(expr("not a = b and c or d"), "(((not (a = b)) and c) or d)");
    assert_eq!(expr("a < b is null"), "((a < b) is null)");
    assert_eq!(expr("a || b < c"), "((a || b) < c)");
    assert_eq!(expr("a -> b -> c"), "((a -> b) -> c)");
    assert_eq!(expr("- 2 ^ 2"), "(-2 ^ 2)");
    assert_eq!(expr("-a::int"), "(- a::int4)");
    assert_eq!(expr("a between 1 and 2 and c"), "((a between 1 2) and c)");
    assert_eq!(expr("a<-1"), "(a < -1)");
    assert_eq!(expr("a @-1"), "(a @- 1)");
    assert_eq!(expr("2*-3"), "(2 * -3)");
    assert_eq!(expr("'a'\n'b'"), "'ab'");
}

#[test]
fn errors_say_where() {
    let syntax = |at: &str, pos| ("42601".to_owned(), format!("syntax error at or near \"{at}\""), pos);
    assert_eq!(error("SELECT 1 FROM WHERE x"), syntax("WHERE", 15));
    assert_eq!(error("SELEC 1"), syntax("SELEC", 1));
    assert_eq!(error("SELECT 1; SELECT 2 3"), syntax("3", 20));
    assert_eq!(error("SELECT 1 < 2 < 3"), syntax("<", 14));
    assert_eq!(error("SELECT ("), ("42601".into(), "syntax error at end of input".into(), 9));
    assert_eq!(error("SELECT 'é', 'x"), ("42601".into(), "unterminated quoted string at or near \"'x\"".into(), 13));
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n));
    assert!(sql::parse(&deep(500)).is_ok());
    assert_eq!(error(&deep(5_000)).0, "54001");
    assert_eq!(error(&format!("SELECT 1{}", " + 1".repeat(5_000))).0, "54001");
    // Long flat lists are no depth.
    assert!(sql::parse(&format!("SELECT 1 WHERE true{}", " OR true".repeat(20_000))).is_ok());
    // Parentheses that begin like queries are read once.
    let nested = (0..40).fold("1".to_owned(), |x, _| format!("((SELECT {x}) + 1)"));
    assert!(sql::parse(&format!("SELECT {nested}")).is_ok());
}

#[test]
fn our_statements_parse() {
    for text in [
        "CREATE SECRET s AS 'x'",
        "CREATE CONNECTION k TO KAFKA (BROKER 'localhost:9092', SECURITY PROTOCOL = 'SASL_SSL', SASL PASSWORD SECRET s)",
        "CREATE CONNECTION pg TO POSTGRES (HOST 'h', PORT 5432, USER 'u', PASSWORD SECRET s, DATABASE 'd', SSL MODE 'require') WITH (VALIDATE = false)",
        "VALIDATE CONNECTION k",
        "CREATE SOURCE b (auction int8, at timestamptz, WATERMARK FOR at AS at - INTERVAL '4 s') FROM KAFKA CONNECTION k (TOPIC 'bids', START OFFSET (0,10)) \
         KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS k, PARTITION, HEADER 'x' AS y ENVELOPE UPSERT WITH (ON ERROR = 'fail')",
        "CREATE SOURCE shop FROM POSTGRES CONNECTION pg (PUBLICATION 'p') FOR TABLES (public.a, b AS c)",
        "CREATE TABLE items FROM SOURCE shop (REFERENCE public.items)",
        "CREATE SOURCE g FROM LOAD GENERATOR KEY VALUE (TICK INTERVAL '10 ms', KEYS 100)",
        "CREATE SOURCE l (a int) FROM FILE (PATH 'dir/*.log', TAIL true) FORMAT CSV WITH HEADER",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS v (a, b) WITH (RETAIN HISTORY = FOR '1 h') AS SELECT 1, 2",
        "CREATE DEFAULT INDEX ON v",
        "CREATE SINK k2 FROM v INTO KAFKA CONNECTION k (TOPIC 't') KEY (a) FORMAT JSON ENVELOPE UPSERT",
        "SUBSCRIBE TO v AS OF AT LEAST 5 UP TO 9 WITH (SNAPSHOT = false, PROGRESS) WITHIN TIMESTAMP ORDER BY a DESC",
        "SUBSCRIBE (SELECT 1 AS a) ENVELOPE UPSERT (KEY (a))",
        "COPY (SUBSCRIBE v WITH (PROGRESS = true)) TO STDOUT",
        "DECLARE c CURSOR FOR SUBSCRIBE v",
        "FETCH 100 c WITH (timeout = '1s')",
        "CREATE SUBSCRIPTION s FOR v",
        "ACKNOWLEDGE s AT 17",
        "REPLAY ERRORS FOR b",
        "SHOW COLUMNS FROM v LIKE 'a%'",
        "SHOW CREATE MATERIALIZED VIEW v",
        "EXPLAIN PHYSICAL PLAN FOR SELECT 1",
        "EXPLAIN OPTIMIZED PLAN FOR MATERIALIZED VIEW v",
        "SELECT * FROM v AS OF 5",
        "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 10) a (x int) AS (SELECT 1 UNION SELECT x FROM b), b (x int) AS (SELECT x FROM a) SELECT * FROM a",
    ] {
        if let Err(e) = sql::parse(text) {
            panic!("{text}: {e}");
        }
    }
}

#[test]
fn statements_keep_their_text() {
    let s = sql::parse(" SELECT 1 ; ;SELECT 'a;b' -- c\n;").expect("parses");
    assert_eq!(s.iter().map(|s| s.text.as_str()).collect::<Vec<_>>(), ["SELECT 1", "SELECT 'a;b'"]);
}
