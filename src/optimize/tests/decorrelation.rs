//! Law: decorrelated == nested loops, and optimized == decorrelated, on random queries over tiny tables.

mod support;

use optimize::{optimize, OptimizeCtx};
use support::random::{tables, Queries, Rng, Scope};
use support::{consolidate, ctx, hir_eval, lir_eval, mir_eval};

fn text(mir: &plan::Mir) -> String {
    let names = optimize::explain::Names { relation: &|g| format!("{g}"), columns: &|_| ["a", "b", "c"].map(String::from).to_vec() };
    optimize::explain::explain_mir(mir, &names)
}

fn check(seed: u64) -> Result<bool, String> {
    let mut rng = Rng::new(seed);
    let tables = tables(&mut rng);
    let fuel = 1 + rng.below(4);
    let mut queries = Queries { rng: &mut rng, next_local: 0 };
    let hir = queries.relation(fuel, &Scope::default());
    let types = hir.types();
    let expected = hir_eval::eval(&hir, &tables);
    let lowered = sql::lower(hir.clone()).map_err(|e| format!("seed {seed}: {e}\n{hir:#?}"))?;
    let got = mir_eval::eval(&lowered, &tables);
    let ctx = ctx();
    let octx = OptimizeCtx { one_off: true, ctx: &ctx, names: &|g| format!("{g}"), grows: &|_| false, disable: false };
    let optimized = optimize(lowered.clone(), &octx).map_err(|e| format!("seed {seed}: {e}"))?;
    if std::env::var("SHOW").is_ok() {
        println!("{}\n=>\n{}", text(&lowered), text(&optimized));
    }
    let then = mir_eval::eval(&optimized, &tables);
    let Ok(expected) = expected else {
        return Ok(false);
    };
    let expected = consolidate(expected, &types);
    // Uncorrelated subqueries are evaluated even if nothing reaches them.
    let unreached = |e: &repr::SqlError| e.code == repr::error::state::CARDINALITY_VIOLATION;
    match got {
        Ok(got) if got == expected => {}
        Err(e) if unreached(&e) => return Ok(false),
        Ok(got) => return Err(format!("seed {seed}: lowered differs\n{}\n{tables:?}\nexpected {expected:?}\ngot {got:?}", text(&lowered))),
        Err(e) => return Err(format!("seed {seed}: lowered fails with {e}\n{}", text(&lowered))),
    }
    let key = |c: usize| vec![expr::Scalar::Column(c)];
    let indexes = |g: repr::GlobalId| match g.0 {
        2 => vec![(repr::GlobalId(20), key(1)), (repr::GlobalId(21), vec![expr::Scalar::Column(2), expr::Scalar::Column(0)])],
        3 => vec![(repr::GlobalId(30), key(0))],
        _ => vec![],
    };
    let lir = optimize::plan_dataflow(&optimized, &octx, &indexes).map_err(|e| format!("seed {seed}: {e}"))?.lir;
    match lir_eval::eval(&lir, &tables) {
        Ok(rows) if rows == expected => {}
        Err(_) if then.is_err() => {}
        other => {
            let names = optimize::explain::Names { relation: &|g| format!("{g}"), columns: &|_| vec![] };
            let physical = optimize::explain::explain_lir(&lir, &[], &names);
            return Err(format!("seed {seed}: physical differs\n{}\n=>\n{physical}\n{tables:?}\nexpected {expected:?}\ngot {other:?}", text(&optimized)));
        }
    }
    match then {
        Ok(then) if then == expected => Ok(true),
        Ok(then) => {
            Err(format!("seed {seed}: optimized differs\n{}\n=>\n{}\n{tables:?}\nexpected {expected:?}\ngot {then:?}", text(&lowered), text(&optimized)))
        }
        Err(e) => Err(format!("seed {seed}: optimized fails with {e}\n{}\n=>\n{}", text(&lowered), text(&optimized))),
    }
}

#[test]
fn decorrelated_and_optimized_equal_nested_loops() {
    let from: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let n: u64 = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1500);
    let mut judged = 0;
    for seed in from..from + n {
        match std::panic::catch_unwind(|| check(seed)) {
            Ok(Ok(yes)) => judged += u64::from(yes),
            Ok(Err(e)) => panic!("{e}"),
            Err(_) => panic!("seed {seed} panics"),
        }
    }
    assert!(judged * 3 > n, "too few queries without error: {judged} of {n}");
}
