//! Overload resolution of functions and operators over Postgres's own catalogs.
//!
//! Follows `parse_func.c` and `parse_oper.c`: exact matches, then candidates that the arguments can be coerced to, narrowed by the
//! number of exact matches, by preferred types, and by guessing the unknown arguments' types.

use super::coerce::is_polymorphic;
use super::types_of::category;
use super::Binder;
use crate::ast::{OpName, Pos};
use crate::hir::HirScalar;
use expr::catalog::{self, pseudo, CastContext, PgOperator, PgProc};
use repr::error::state;
use repr::{SqlError, SqlType};

const PG_CATALOG: u32 = 11;
const UNKNOWN: u32 = pseudo::UNKNOWN;

/// A candidate: something with argument types.
struct Candidate<T> {
    item: T,
    args: Vec<u32>,
}

/// A resolved function.
pub struct Resolved {
    pub proc: &'static PgProc,
    /// The type that each actual argument is coerced to, polymorphic ones resolved.
    pub args: Vec<SqlType>,
    pub ret: SqlType,
    /// Order of the actual arguments: argument `i` of the call is the written argument `order[i]`, or a default.
    pub order: Vec<ArgSource>,
    /// How many trailing arguments form the VARIADIC array.
    pub variadic: Option<(usize, SqlType)>,
    /// The last argument is an array whose elements are the arguments: VARIADIC for a parameter of type "any".
    pub spread: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgSource {
    Written(usize),
    /// Number in `PgProc::defaults`.
    Default(usize),
}

impl Binder<'_> {
    /// Postgres's `func_select_candidate`, with the step before it that drops what the arguments cannot become.
    fn narrow<T>(&self, mut cands: Vec<Candidate<T>>, actual: &[SqlType]) -> Vec<Candidate<T>> {
        if cands.len() <= 1 {
            return cands;
        }
        let oids: Vec<u32> = actual.iter().map(SqlType::oid).collect();
        let known = |i: usize| oids[i] != UNKNOWN;
        // Keep those with the most exact matches on known arguments, if any has one.
        let keep_best = |cands: &mut Vec<Candidate<T>>, score: &dyn Fn(&Candidate<T>) -> usize| {
            let best = cands.iter().map(score).max().unwrap_or(0);
            cands.retain(|c| score(c) == best);
        };
        keep_best(&mut cands, &|c| (0..oids.len()).filter(|i| known(*i) && c.args[*i] == oids[*i]).count());
        if cands.len() == 1 {
            return cands;
        }
        keep_best(&mut cands, &|c| {
            (0..oids.len())
                .filter(|i| known(*i) && (c.args[*i] == oids[*i] || (self.category(&actual[*i]) == category(c.args[*i]) && self.is_preferred(c.args[*i]))))
                .count()
        });
        if cands.len() == 1 {
            return cands;
        }
        let unknowns: Vec<usize> = (0..oids.len()).filter(|i| !known(*i)).collect();
        if unknowns.is_empty() {
            return cands;
        }
        // Guess categories for the unknown arguments: string if any candidate takes one, else the one all agree on.
        let mut slots: Vec<(usize, char, bool)> = Vec::new();
        let mut resolved = true;
        for i in &unknowns {
            let (mut cat, mut preferred, mut conflict) = (None, false, false);
            for c in &cands {
                let k = category(c.args[*i]);
                let p = self.is_preferred(c.args[*i]);
                match cat {
                    None => (cat, preferred) = (Some(k), p),
                    Some(have) if have == k => preferred |= p,
                    Some(_) if k == 'S' => (cat, preferred) = (Some(k), p),
                    Some('S') => {}
                    Some(_) => conflict = true,
                }
            }
            let cat = cat.unwrap_or('X');
            if conflict && cat != 'S' {
                resolved = false;
                break;
            }
            slots.push((*i, cat, preferred));
        }
        if resolved {
            let fits = |c: &Candidate<T>| {
                slots.iter().all(|(i, cat, preferred)| {
                    let k = category(c.args[*i]);
                    k == *cat && (!*preferred || self.is_preferred(c.args[*i]))
                })
            };
            if cands.iter().any(fits) {
                cands.retain(fits);
            }
            if cands.len() == 1 {
                return cands;
            }
        }
        // If all known arguments have one type, assume the unknown ones have it too.
        let mut knowns = (0..oids.len()).filter(|i| known(*i));
        if let Some(first) = knowns.next() {
            let ty = &actual[first];
            if knowns.all(|i| oids[i] == ty.oid()) {
                let same = vec![ty.clone(); oids.len()];
                let fits = |c: &Candidate<T>| self.matches(&c.args, &same);
                if cands.iter().filter(|c| fits(c)).count() == 1 {
                    cands.retain(fits);
                }
            }
        }
        cands
    }

    fn matches(&self, declared: &[u32], actual: &[SqlType]) -> bool {
        declared.iter().zip(actual).all(|(d, a)| self.can_coerce(a, *d, CastContext::Implicit))
            && (!declared.iter().any(|d| is_polymorphic(*d)) || self.check_polymorphic(declared, actual).is_some())
    }

    /// An infix operator on two types, or a prefix operator (`left` None). Returns its row with the types the arguments are
    /// coerced to and the result type.
    pub fn operator(&self, op: &OpName, left: Option<&SqlType>, right: &SqlType) -> Result<(&'static PgOperator, Option<SqlType>, SqlType, SqlType), SqlError> {
        let name = if op.name == "!=" { "<>" } else { op.name.as_str() };
        let (left, right) = (left.map(SqlType::base), right.base());
        let found = match left {
            Some(l) => self.find_infix(name, l, right),
            None => self.find_prefix(name, right),
        };
        let usable = op.schema.as_deref().is_none_or(|s| s == "pg_catalog");
        match found {
            Found::One(o) if usable => {
                let (declared, actual): (Vec<u32>, Vec<SqlType>) = match left {
                    Some(l) => (vec![o.left, o.right], vec![l.clone(), right.clone()]),
                    None => (vec![o.right], vec![right.clone()]),
                };
                let (mut args, ret) = self.resolve_polymorphic(&declared, o.result, &actual).ok_or_else(|| self.no_operator(op, left, right))?;
                let r = args.pop().unwrap_or(SqlType::Unknown);
                // The operators of arrays that compare elements.
                if let (SqlType::Array(e), pseudo::ANYARRAY, "=" | "<>" | "<" | "<=" | ">" | ">=" | "@>" | "<@" | "&&") = (&r, o.right, name) {
                    if !e.has_order() {
                        let what = if matches!(name, "<" | "<=" | ">" | ">=") { "a comparison function" } else { "an equality operator" };
                        return Err(SqlError::new(state::UNDEFINED_FUNCTION, format!("could not identify {what} for type {}", e.sql_name())).at(op.pos));
                    }
                }
                Ok((o, args.pop(), r, ret))
            }
            Found::Many => Err(SqlError::new(state::AMBIGUOUS_FUNCTION, format!("operator is not unique: {}", spell(op, left, right)))
                .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
                .at(op.pos)),
            _ => Err(self.no_operator(op, left, right)),
        }
    }

    fn no_operator(&self, op: &OpName, left: Option<&SqlType>, right: &SqlType) -> SqlError {
        let hint = if left.is_some() {
            "No operator matches the given name and argument types. You might need to add explicit type casts."
        } else {
            "No operator matches the given name and argument type. You might need to add an explicit type cast."
        };
        SqlError::new(state::UNDEFINED_FUNCTION, format!("operator does not exist: {}", spell(op, left, right))).with_hint(hint).at(op.pos)
    }

    fn find_infix(&self, name: &str, left: &SqlType, right: &SqlType) -> Found {
        let (l, r) = (left.oid(), right.oid());
        let infix = || catalog::operators_by_name(name).filter(|o| o.kind == 'b');
        // Exact, an unknown side taken for the other's type.
        let (el, er) = (if l == UNKNOWN { r } else { l }, if r == UNKNOWN { l } else { r });
        if let Some(o) = infix().find(|o| o.left == el && o.right == er) {
            return Found::One(o);
        }
        // varchar has no operators of its own, but a literal beside it is text.
        let cands: Vec<Candidate<&'static PgOperator>> =
            infix().map(|o| Candidate { item: o, args: vec![o.left, o.right] }).filter(|c| self.matches(&c.args, &[left.clone(), right.clone()])).collect();
        self.one_of(cands, &[left.clone(), right.clone()])
    }

    fn find_prefix(&self, name: &str, right: &SqlType) -> Found {
        let prefix = || catalog::operators_by_name(name).filter(|o| o.kind == 'l');
        if let Some(o) = prefix().find(|o| o.right == right.oid()) {
            return Found::One(o);
        }
        let cands: Vec<Candidate<&'static PgOperator>> =
            prefix().map(|o| Candidate { item: o, args: vec![o.right] }).filter(|c| self.matches(&c.args, std::slice::from_ref(right))).collect();
        self.one_of(cands, std::slice::from_ref(right))
    }

    fn one_of(&self, cands: Vec<Candidate<&'static PgOperator>>, actual: &[SqlType]) -> Found {
        if cands.is_empty() {
            return Found::None;
        }
        let mut left = self.narrow(cands, actual);
        match left.len() {
            1 => left.pop().map_or(Found::None, |c| Found::One(c.item)),
            0 => Found::None,
            _ => Found::Many,
        }
    }

    /// The `=` (or other comparison) of one type: what DISTINCT, IN, joins USING and CASE compare with.
    pub fn comparison(&self, op: &str, ty: &SqlType, pos: Pos) -> Result<&'static PgOperator, SqlError> {
        let name = OpName { schema: None, name: op.into(), pos };
        self.operator(&name, Some(ty), ty).map(|r| r.0)
    }

    /// The function that a name with these argument types means. `names`: names of the trailing named arguments.
    pub fn function(&self, name: &[&str], actual: &[SqlType], names: &[Option<&str>], variadic_call: bool, pos: Pos) -> Result<Resolved, SqlError> {
        let (schema, fname) = match name {
            [n] => (None, *n),
            [s, n] => (Some(*s), *n),
            [.., s, n] => (Some(*s), *n),
            [] => (None, ""),
        };
        // Parameters of a type take values of a domain over it, as if they were of the type; only polymorphic ones see the domain.
        let based: Vec<SqlType> = actual.iter().map(|t| t.base().clone()).collect();
        let in_schema = |p: &PgProc| match schema {
            None => p.namespace == PG_CATALOG,
            Some("pg_catalog") => p.namespace == PG_CATALOG,
            Some("information_schema") => p.namespace != PG_CATALOG,
            Some(_) => false,
        };
        let all: Vec<&'static PgProc> = catalog::procs_by_name(fname).filter(|p| in_schema(p)).collect();
        let mut cands = Vec::new();
        for p in &all {
            cands.extend(self.arrange(p, actual, names, variadic_call));
        }
        // An exact match of plain arguments wins, a variadic expansion or use of defaults notwithstanding.
        let exact = |c: &Candidate<Arranged>| c.args.iter().zip(actual_in_order(&c.item, &based)).all(|(d, a)| a.is_some_and(|a| *d == a.oid()));
        let mut picked: Vec<Candidate<Arranged>> = Vec::new();
        if let Some(i) = cands.iter().position(|c| exact(c) && c.item.expanded == 0).or_else(|| cands.iter().position(exact)) {
            picked.push(cands.swap_remove(i));
        } else {
            let fits: Vec<Candidate<Arranged>> = cands
                .into_iter()
                .filter(|c| {
                    let given: Vec<SqlType> = actual_in_order(&c.item, actual).map(|a| a.cloned().unwrap_or(SqlType::Unknown)).collect();
                    let n = given.iter().zip(&c.item.order).filter(|(_, o)| matches!(o, ArgSource::Written(_))).count();
                    n == given.len() && self.matches(&c.args, &given) || n < given.len() && self.matches_written(c, actual)
                })
                .collect();
            // Candidates are compared on the written arguments, in written order.
            let by_written: Vec<Candidate<Arranged>> = fits.into_iter().map(|c| Candidate { args: written_types(&c), item: c.item }).collect();
            let mut best = self.narrow(by_written, &based);
            if best.len() > 1 {
                // Without VARIADIC expansion, then with fewer defaults, is better.
                let least = best.iter().map(|c| (c.item.expanded > 0, c.item.defaults())).min();
                best.retain(|c| Some((c.item.expanded > 0, c.item.defaults())) == least);
            }
            picked = best;
        }
        match picked.len() {
            0 => Err(self.no_function(name, actual, names, !all.is_empty(), pos)),
            1 => {
                let c = picked.remove(0);
                self.require_known(&c.item, actual)?;
                self.finish(c.item, actual).ok_or_else(|| self.no_function(name, actual, names, true, pos))
            }
            _ => Err(SqlError::new(state::AMBIGUOUS_FUNCTION, format!("function {} is not unique", self.spell_call(name, actual, names)))
                .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                .at(pos)),
        }
    }

    fn matches_written(&self, c: &Candidate<Arranged>, actual: &[SqlType]) -> bool {
        let pairs: Vec<(u32, SqlType)> = c
            .args
            .iter()
            .zip(&c.item.order)
            .filter_map(|(d, o)| match o {
                ArgSource::Written(i) => actual.get(*i).map(|a| (*d, a.clone())),
                ArgSource::Default(_) => None,
            })
            .collect();
        let (d, a): (Vec<u32>, Vec<SqlType>) = pairs.into_iter().unzip();
        self.matches(&d, &a)
    }

    fn no_function(&self, name: &[&str], actual: &[SqlType], names: &[Option<&str>], _exists: bool, pos: Pos) -> SqlError {
        if let [database, _, _] = name {
            if *database != self.catalog.database() {
                let m = format!("cross-database references are not implemented: {}", name.join("."));
                return SqlError::new(state::FEATURE_NOT_SUPPORTED, m).at(pos);
            }
        }
        if let [.., schema, _] = name {
            if *schema != "information_schema" && !self.catalog.schema_exists(schema) {
                return SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")).at(pos);
            }
        }
        SqlError::new(state::UNDEFINED_FUNCTION, format!("function {} does not exist", self.spell_call(name, actual, names)))
            .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
            .at(pos)
    }

    fn spell_call(&self, name: &[&str], actual: &[SqlType], names: &[Option<&str>]) -> String {
        let args: Vec<String> = actual
            .iter()
            .enumerate()
            .map(|(i, t)| match names.get(i).copied().flatten() {
                Some(n) => format!("{n} => {}", t.sql_name()),
                None => t.sql_name(),
            })
            .collect();
        format!("{}({})", name.join("."), args.join(", "))
    }

    /// The ways in which the written arguments can fill a function's parameters.
    fn arrange(&self, p: &'static PgProc, actual: &[SqlType], names: &[Option<&str>], variadic_call: bool) -> Vec<Candidate<Arranged>> {
        let mut out = Vec::new();
        let nargs = p.args.len();
        let n = actual.len();
        let named = names.iter().filter(|x| x.is_some()).count();
        if named > 0 {
            let positional = n - named;
            let in_names = input_names(p);
            if n > nargs || in_names.len() < nargs || p.variadic == pseudo::ANY {
                return out;
            }
            let mut order: Vec<Option<ArgSource>> = (0..nargs).map(|i| (i < positional).then_some(ArgSource::Written(i))).collect();
            for (i, name) in names.iter().enumerate().skip(positional) {
                let Some(at) = name.and_then(|nm| in_names.iter().position(|x| *x == nm)) else { return out };
                if order[at].is_some() {
                    return out;
                }
                order[at] = Some(ArgSource::Written(i));
            }
            let first_default = nargs - p.defaults.len();
            let mut done = Vec::with_capacity(nargs);
            for (i, o) in order.into_iter().enumerate() {
                match o {
                    Some(o) => done.push(o),
                    None if i >= first_default => done.push(ArgSource::Default(i - first_default)),
                    None => return out,
                }
            }
            out.push(Candidate { args: p.args.clone(), item: Arranged { proc: p, order: done, expanded: 0 } });
            return out;
        }
        let plain = |order: Vec<ArgSource>, args: Vec<u32>, expanded| Candidate { args, item: Arranged { proc: p, order, expanded } };
        if n == nargs && (p.variadic == 0 || variadic_call || p.variadic != pseudo::ANY) && (!variadic_call || p.variadic != 0) {
            // For a variadic function called plainly this is the array passed as such only with VARIADIC.
            if p.variadic == 0 || variadic_call {
                out.push(plain((0..n).map(ArgSource::Written).collect(), p.args.clone(), 0));
            }
        }
        if n < nargs && nargs - n <= p.defaults.len() && p.variadic == 0 && !variadic_call {
            let first_default = nargs - p.defaults.len();
            let order = (0..nargs).map(|i| if i < n { ArgSource::Written(i) } else { ArgSource::Default(i - first_default) }).collect();
            out.push(plain(order, p.args.clone(), 0));
        }
        if p.variadic != 0 && !variadic_call && n + 1 >= nargs {
            let fixed = nargs - 1;
            let extra = n - fixed;
            // At least one argument must go into the array; VARIADIC "any" may take none.
            if extra > 0 {
                let mut args: Vec<u32> = p.args[..fixed].to_vec();
                args.extend(std::iter::repeat_n(p.variadic, extra));
                out.push(plain((0..n).map(ArgSource::Written).collect(), args, extra));
            }
        }
        out
    }

    /// `anyelement` and its kind need one argument whose type is known; `anycompatible` would be text.
    fn require_known(&self, a: &Arranged, actual: &[SqlType]) -> Result<(), SqlError> {
        let family =
            |o: u32| matches!(o, pseudo::ANYELEMENT | pseudo::ANYARRAY | pseudo::ANYNONARRAY | pseudo::ANYENUM | pseudo::ANYRANGE | pseudo::ANYMULTIRANGE);
        let p = a.proc;
        let mut mine = a.order.iter().zip(&p.args).filter(|(_, d)| family(**d)).peekable();
        if mine.peek().is_none() || (a.expanded > 0 && family(p.variadic)) {
            return Ok(());
        }
        let known = mine.any(|(o, _)| !matches!(o, ArgSource::Written(i) if actual.get(*i) == Some(&SqlType::Unknown)));
        if known {
            return Ok(());
        }
        Err(SqlError::new(state::DATATYPE_MISMATCH, "could not determine polymorphic type because input has type unknown"))
    }

    fn finish(&self, a: Arranged, actual: &[SqlType]) -> Option<Resolved> {
        let p = a.proc;
        let mut declared = p.args.clone();
        if a.expanded > 0 {
            declared.pop();
            declared.extend(std::iter::repeat_n(p.variadic, a.expanded));
        }
        let given: Vec<SqlType> = a
            .order
            .iter()
            .zip(&declared)
            .map(|(o, d)| match o {
                ArgSource::Written(i) => actual[*i].clone(),
                ArgSource::Default(_) => self.type_by_oid(*d).unwrap_or(SqlType::Unknown),
            })
            .collect();
        let (args, ret) = self.resolve_polymorphic(&declared, p.ret, &given)?;
        let variadic = if a.expanded > 0 && p.variadic != pseudo::ANY {
            let elem = args.last().cloned()?;
            Some((a.expanded, elem))
        } else {
            None
        };
        let spread = a.expanded == 0 && p.variadic == pseudo::ANY;
        Some(Resolved { proc: p, args, ret, order: a.order, variadic, spread })
    }

    /// `check_generic_type_consistency`: the types the polymorphic parameters stand for.
    pub fn check_polymorphic(&self, declared: &[u32], actual: &[SqlType]) -> Option<Poly> {
        let mut p = Poly::default();
        let mut compatible: Vec<SqlType> = Vec::new();
        for (d, a) in declared.iter().zip(actual) {
            let unknown = *a == SqlType::Unknown;
            match *d {
                pseudo::ANYELEMENT | pseudo::ANYNONARRAY | pseudo::ANYENUM => {
                    p.has_element = true;
                    p.nonarray |= *d == pseudo::ANYNONARRAY;
                    p.is_enum |= *d == pseudo::ANYENUM;
                    if unknown {
                        continue;
                    }
                    if p.elem.as_ref().is_some_and(|e| e != a) {
                        return None;
                    }
                    p.elem = Some(a.clone());
                }
                pseudo::ANYARRAY => {
                    p.has_array = true;
                    if unknown {
                        continue;
                    }
                    let a = a.base();
                    let elem = array_element(a)?;
                    if p.array_elem.as_ref().is_some_and(|e| *e != elem) {
                        return None;
                    }
                    p.array_elem = Some(elem);
                    p.array_type = Some(a.clone());
                }
                pseudo::ANYRANGE | pseudo::ANYMULTIRANGE => {
                    p.has_range = true;
                    if unknown {
                        continue;
                    }
                    let range = range_given(*d == pseudo::ANYMULTIRANGE, a.base())?;
                    if p.range_type.as_ref().is_some_and(|x| *x != range) {
                        return None;
                    }
                    p.range_elem = range.range_elem().cloned();
                    p.range_type = Some(range);
                }
                pseudo::ANYCOMPATIBLE | pseudo::ANYCOMPATIBLENONARRAY => {
                    p.has_compatible = true;
                    if !unknown {
                        compatible.push(a.clone());
                    }
                }
                pseudo::ANYCOMPATIBLEARRAY => {
                    p.has_compatible = true;
                    if !unknown {
                        compatible.push(array_element(a.base())?);
                    }
                }
                pseudo::ANYCOMPATIBLERANGE | pseudo::ANYCOMPATIBLEMULTIRANGE => {
                    p.has_compatible = true;
                    if unknown {
                        continue;
                    }
                    let range = range_given(*d == pseudo::ANYCOMPATIBLEMULTIRANGE, a.base())?;
                    let elem = range.range_elem().cloned()?;
                    p.compatible_fixed = Some(elem.clone());
                    p.range_type = Some(range);
                    compatible.push(elem);
                }
                _ => {}
            }
        }
        // Element, array and range must agree.
        for other in [&p.array_elem, &p.range_elem] {
            match (&p.elem, other) {
                (Some(e), Some(o)) if e != o => return None,
                (None, Some(o)) => p.elem = Some(o.clone()),
                _ => {}
            }
        }
        if let Some(e) = &p.elem {
            if p.nonarray && matches!(e.base(), SqlType::Array(_)) || p.is_enum && !matches!(e, SqlType::Enum(_)) {
                return None;
            }
        }
        if p.has_compatible {
            p.compatible = match &p.compatible_fixed {
                Some(t) => Some(t.clone()),
                None if compatible.is_empty() => None,
                None => {
                    let with_pos: Vec<(SqlType, Pos)> = compatible.iter().map(|t| (t.clone(), 0)).collect();
                    Some(self.common_type(&with_pos, "").ok()?)
                }
            };
            if let Some(c) = &p.compatible {
                // There are no arrays of arrays, and `nonarray` means what it says.
                let array = matches!(c, SqlType::Array(_));
                if array && declared.iter().any(|d| matches!(*d, pseudo::ANYCOMPATIBLEARRAY | pseudo::ANYCOMPATIBLENONARRAY)) {
                    return None;
                }
                if !compatible.iter().all(|t| self.can_coerce(t, c.oid(), CastContext::Implicit)) {
                    return None;
                }
            }
        }
        Some(p)
    }

    /// The types arguments are coerced to and the result, polymorphic ones replaced.
    pub fn resolve_polymorphic(&self, declared: &[u32], ret: u32, actual: &[SqlType]) -> Option<(Vec<SqlType>, SqlType)> {
        let p = self.check_polymorphic(declared, actual)?;
        let text = SqlType::Text;
        let elem = p.elem.clone();
        // Which of several range types over one type is meant, an argument says; else the built-in one.
        let range = |elem: Option<SqlType>| p.range_type.clone().or_else(|| elem.map(|e| SqlType::Range(Box::new(e))));
        let concrete = |oid: u32, given: Option<&SqlType>| -> Option<SqlType> {
            Some(match oid {
                pseudo::ANY => given.cloned().map(|g| if g == SqlType::Unknown { text.clone() } else { g })?,
                // With only unknown arguments, text.
                pseudo::ANYELEMENT | pseudo::ANYNONARRAY => elem.clone().unwrap_or_else(|| text.clone()),
                pseudo::ANYENUM => elem.clone()?,
                pseudo::ANYARRAY => match (&p.array_type, given) {
                    (Some(SqlType::Int2Vector | SqlType::OidVector), Some(g)) => g.clone(),
                    _ => elem.clone().unwrap_or_else(|| text.clone()).array_of(),
                },
                pseudo::ANYRANGE => range(elem.clone())?,
                pseudo::ANYMULTIRANGE => range(elem.clone())?.range_partner(),
                pseudo::ANYCOMPATIBLE | pseudo::ANYCOMPATIBLENONARRAY => p.compatible.clone().unwrap_or_else(|| text.clone()),
                pseudo::ANYCOMPATIBLEARRAY => p.compatible.clone().unwrap_or_else(|| text.clone()).array_of(),
                pseudo::ANYCOMPATIBLERANGE => range(p.compatible.clone())?,
                pseudo::ANYCOMPATIBLEMULTIRANGE => range(p.compatible.clone())?.range_partner(),
                pseudo::RECORD => match given.map(SqlType::base) {
                    Some(g @ SqlType::Record(_)) => g.clone(),
                    _ => SqlType::from_oid(pseudo::RECORD)?,
                },
                pseudo::RECORD_ARRAY => given.cloned().unwrap_or(SqlType::from_oid(pseudo::RECORD)?.array_of()),
                pseudo::CSTRING => text.clone(),
                // The rows of a system relation have a type that only they bring.
                oid => match given {
                    Some(g @ SqlType::Record(r)) if r.oid == oid => g.clone(),
                    _ => self.type_by_oid(oid)?,
                },
            })
        };
        let args = declared.iter().zip(actual).map(|(d, a)| concrete(*d, Some(a))).collect::<Option<Vec<_>>>()?;
        let ret = if is_polymorphic(ret) { concrete(ret, None)? } else { concrete(ret, None).unwrap_or(SqlType::Void) };
        Some((args, ret))
    }

    /// Coerces arguments to the resolved types and gathers a VARIADIC array.
    pub fn coerce_args(&self, r: &Resolved, written: Vec<HirScalar>, positions: &[Pos]) -> Result<Vec<HirScalar>, SqlError> {
        let mut slots: Vec<Option<HirScalar>> = written.into_iter().map(Some).collect();
        let mut out = Vec::with_capacity(r.args.len());
        let of_any = |k: usize| r.proc.args.get(k).or(r.proc.args.last()).is_some_and(|t| *t == pseudo::ANY);
        for (k, (o, ty)) in r.order.iter().zip(&r.args).enumerate() {
            let (e, pos) = match o {
                ArgSource::Written(i) => {
                    let e = slots.get_mut(*i).and_then(Option::take).ok_or_else(|| SqlError::internal("argument used twice"))?;
                    (e, positions.get(*i).copied().unwrap_or(0))
                }
                ArgSource::Default(d) => {
                    let text = r.proc.defaults.get(*d).copied().unwrap_or("NULL");
                    let ast = crate::parse::parse_expr(text)?;
                    (self.expr(&ast, &super::scope::Env::default())?, 0)
                }
            };
            // "any" gives no type.
            out.push(if of_any(k) { self.untyped_or_text(e, pos)? } else { self.coerce_implicit(e, ty, pos)? });
        }
        if let Some((n, elem)) = &r.variadic {
            let elems = out.split_off(out.len() - n);
            out.push(self.internal("array_construct", elems, elem.clone().array_of().not_null())?);
        }
        Ok(out)
    }
}

enum Found {
    None,
    One(&'static PgOperator),
    Many,
}

struct Arranged {
    proc: &'static PgProc,
    order: Vec<ArgSource>,
    /// Arguments that go into the VARIADIC array.
    expanded: usize,
}

impl Arranged {
    fn defaults(&self) -> usize {
        self.order.iter().filter(|o| matches!(o, ArgSource::Default(_))).count()
    }
}

/// What polymorphic parameters stand for.
#[derive(Default)]
pub struct Poly {
    elem: Option<SqlType>,
    array_elem: Option<SqlType>,
    array_type: Option<SqlType>,
    /// The range type that a range, or the ranges of a multirange, have.
    range_type: Option<SqlType>,
    range_elem: Option<SqlType>,
    compatible: Option<SqlType>,
    compatible_fixed: Option<SqlType>,
    has_element: bool,
    has_array: bool,
    has_range: bool,
    has_compatible: bool,
    nonarray: bool,
    is_enum: bool,
}

/// The range type of an argument that is a range, or a multirange of them.
fn range_given(multi: bool, t: &SqlType) -> Option<SqlType> {
    match multi {
        true => t.multirange_elem().map(|_| t.range_partner()),
        false => t.range_elem().map(|_| t.clone()),
    }
}

fn array_element(t: &SqlType) -> Option<SqlType> {
    match t {
        SqlType::Array(e) => Some((**e).clone()),
        SqlType::Int2Vector => Some(SqlType::Int2),
        SqlType::OidVector => Some(SqlType::Oid),
        _ => None,
    }
}

/// The written argument types in the function's parameter order; `None` for defaults.
fn actual_in_order<'x>(a: &'x Arranged, actual: &'x [SqlType]) -> impl Iterator<Item = Option<&'x SqlType>> {
    a.order.iter().map(move |o| match o {
        ArgSource::Written(i) => actual.get(*i),
        ArgSource::Default(_) => None,
    })
}

/// The declared types of the written arguments, in written order.
fn written_types(c: &Candidate<Arranged>) -> Vec<u32> {
    let mut pairs: Vec<(usize, u32)> = c
        .item
        .order
        .iter()
        .zip(&c.args)
        .filter_map(|(o, d)| match o {
            ArgSource::Written(i) => Some((*i, *d)),
            ArgSource::Default(_) => None,
        })
        .collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|p| p.1).collect()
}

/// Names of a function's input parameters.
fn input_names(p: &PgProc) -> Vec<&'static str> {
    match &p.modes {
        Some(modes) => p.arg_names.iter().zip(modes).filter(|(_, m)| matches!(m, 'i' | 'b' | 'v')).map(|(n, _)| *n).collect(),
        None => p.arg_names.clone(),
    }
}

fn spell(op: &OpName, left: Option<&SqlType>, right: &SqlType) -> String {
    let name = op.schema.as_ref().map_or_else(|| op.name.clone(), |s| format!("{s}.{}", op.name));
    match left {
        Some(l) => format!("{} {name} {}", l.sql_name(), right.sql_name()),
        None => format!("{name} {}", right.sql_name()),
    }
}
