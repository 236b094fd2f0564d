//! Plans as text, reviewed by eye. `REWRITE=1 cargo test -p optimize --test golden` writes them anew.
//!
//! A file of `golden/` is a list of cases: a comment that says what is to be seen, a line `optimize`, `lower`, `physical` (a maintained
//! plan) or `peek`, the query, `----`, the plan. The relations are those of `support/catalog.rs`; `customers` has an index on
//! `id`, `b` one on `k`; `events` only grows.

mod support;

use expr::Scalar;
use optimize::explain::{explain_lir, explain_mir, explain_peek, Names};
use optimize::{optimize, plan_dataflow, plan_peek, OptimizeCtx};
use repr::{GlobalId, SqlError};
use support::catalog::Fixed;

fn indexes(g: GlobalId) -> Vec<(GlobalId, Vec<Scalar>)> {
    match g.0 {
        2 => vec![(GlobalId(102), vec![Scalar::Column(0)])],
        4 => vec![(GlobalId(104), vec![Scalar::Column(0)])],
        _ => vec![],
    }
}

fn plan(mode: &str, query: &str) -> Result<String, SqlError> {
    let catalog = Fixed::new();
    let parsed = sql::parse(query)?;
    let sql::Plan::Select(select) = sql::plan::plan(&parsed[0], &catalog, &[])? else { panic!("no query: {query}") };
    let name = |g: GlobalId| match g.0 {
        102 => "b_k".to_string(),
        104 => "customers_id".to_string(),
        _ => catalog.by_id(g).map_or(format!("{g}"), |r| r.name.name.clone()),
    };
    let columns = |g: GlobalId| catalog.by_id(g).map_or(vec![], |r| r.desc.names.clone());
    let names = Names { relation: &name, columns: &columns };
    let ctx = support::ctx();
    let octx = OptimizeCtx { one_off: mode == "peek", ctx: &ctx, names: &name, grows: &|g| g.0 == 6, disable: mode == "lower" };
    let finishing = select.finishing.clone();
    let hir = if mode == "peek" { select.hir } else { select.into_relation() };
    let mir = optimize(sql::lower(hir)?, &octx)?;
    Ok(match mode {
        "physical" => {
            let d = plan_dataflow(&mir, &octx, &indexes)?;
            let notices: String = d.notices.iter().map(|n| format!("NOTICE: {n}\n")).collect();
            explain_lir(&d.lir, &d.imports, &names) + &notices
        }
        "peek" => {
            let p = plan_peek(&mir, finishing, &octx, &indexes)?;
            explain_peek(&p.plan, &p.imports, &names)
        }
        _ => explain_mir(&mir, &names),
    })
}

#[test]
fn plans_are_as_written() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let rewrite = std::env::var("REWRITE").is_ok();
    let mut files: Vec<_> = std::fs::read_dir(&dir).expect("the folder is there").map(|e| e.expect("readable").path()).collect();
    files.sort();
    let mut differences = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let mut out = Vec::new();
        for case in text.split("\n\n\n") {
            let (head, old) = case.split_once("\n----").unwrap_or((case, ""));
            let body: Vec<&str> = head.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
            let Some((mode, query)) = body.split_first() else { continue };
            let new = match plan(mode, &query.join("\n")) {
                Ok(text) => text,
                Err(e) => format!("ERROR {}: {e}\n", e.code.as_str()),
            };
            if new.trim_end() != old.trim() {
                differences += &format!("{}\n{head}\n---- expected\n{old}\n---- got\n{new}\n", file.display());
            }
            out.push(format!("{}\n----\n{}", head.trim(), new.trim_end()));
        }
        if rewrite {
            std::fs::write(&file, out.join("\n\n\n") + "\n").expect("writable");
        }
    }
    assert!(rewrite || differences.is_empty(), "{differences}");
}
