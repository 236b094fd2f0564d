//! `pg_constraint`: keys, checks and foreign keys as rows and as text.

use super::names::quote_if_needed;
use super::pg::{columns_in, constraint_oid, key_index, namespace_oid};
use super::Names;
use crate::catalog::{deferral_words, Catalog, Item, ItemKind};
use expr::CatalogView;
use repr::{SqlType, Value};

/// `pg_get_constraintdef`.
pub fn constraint_definition(c: &Catalog, constraint: u32, pretty: bool, names: &Names) -> Option<String> {
    let k = constraints(c).into_iter().find(|k| k.oid == constraint)?;
    let child = c.item(repr::GlobalId(u64::from(k.relation)));
    let columns = |i: &Item| k.columns.iter().map(|c| quote_if_needed(&i.desc.names[*c])).collect::<Vec<_>>().join(", ");
    let not_valid = if k.valid { "" } else { " NOT VALID" };
    let definition = match (k.what, child) {
        (Constrained::Check(text), Some(_)) => format!("CHECK ({})", names.expression(&text, k.relation, pretty)),
        (Constrained::Check(text), None) => format!("CHECK ({})", names.domain_condition(k.domain, &text, pretty)),
        (Constrained::Key { primary, key }, Some(i)) => {
            let word = if primary { "PRIMARY KEY" } else { "UNIQUE" };
            let nulls = if key.equal_nulls { "NULLS NOT DISTINCT " } else { "" };
            let held: Vec<String> = key.include.iter().map(|c| quote_if_needed(&i.desc.names[*c])).collect();
            let include = if held.is_empty() { String::new() } else { format!(" INCLUDE ({})", held.join(", ")) };
            format!("{word} {nulls}({}){include}{}", columns(i), deferral_words(key.deferrable, key.deferred))
        }
        (Constrained::Foreign(f), Some(i)) => foreign_definition(c, i, &f, names),
        _ => return None,
    };
    Some(definition + not_valid)
}

pub struct ConstraintRow {
    pub oid: u32,
    pub name: String,
    pub namespace: u32,
    pub what: Constrained,
    /// The index that it uses; 0 for none.
    pub index: u32,
    /// What it is of: a relation or a domain; 0 for the other.
    pub relation: u32,
    pub domain: u32,
    pub columns: Vec<usize>,
    /// Not NOT VALID.
    pub valid: bool,
}

pub enum Constrained {
    Key { primary: bool, key: crate::catalog::Constraint },
    Check(String),
    Foreign(crate::catalog::ForeignKey),
}

impl ConstraintRow {
    /// `pg_constraint.contype`.
    pub fn kind(&self) -> &'static str {
        match &self.what {
            Constrained::Key { primary: true, .. } => "p",
            Constrained::Key { .. } => "u",
            Constrained::Check(_) => "c",
            Constrained::Foreign(_) => "f",
        }
    }

    /// Whether it is DEFERRABLE, and INITIALLY DEFERRED.
    pub fn deferral(&self) -> (bool, bool) {
        match &self.what {
            Constrained::Key { key, .. } => (key.deferrable, key.deferred),
            Constrained::Foreign(f) => (f.deferrable, f.deferred),
            Constrained::Check(_) => (false, false),
        }
    }

    /// The columns that it is about, those that a condition names in their order.
    pub fn named_columns(&self, c: &Catalog) -> Vec<usize> {
        let Constrained::Check(check) = &self.what else { return self.columns.clone() };
        c.item(repr::GlobalId(u64::from(self.relation))).map_or_else(Vec::new, |i| columns_in(check, &i.desc))
    }

    /// Operators of a foreign key, for each of its columns that of the types of the parent's column and of its own.
    pub(super) fn equalities(&self, c: &Catalog, of: impl Fn(&SqlType, &SqlType) -> u32) -> Value {
        let Some(f) = self.foreign() else { return Value::Null };
        let (Some(parent), Some(child)) = (c.item(f.parent), c.item(repr::GlobalId(u64::from(self.relation)))) else { return Value::Null };
        let pairs = f.parent_columns.iter().zip(&self.columns).map(|(p, k)| of(&parent.desc.types[*p].ty, &child.desc.types[*k].ty));
        Value::array(pairs.map(Value::UInt4).collect())
    }

    pub fn foreign(&self) -> Option<&crate::catalog::ForeignKey> {
        match &self.what {
            Constrained::Foreign(f) => Some(f),
            _ => None,
        }
    }
}

/// The key that a foreign key refers to.
pub fn parent_key<'c>(c: &'c Catalog, f: &crate::catalog::ForeignKey) -> Option<&'c crate::catalog::Constraint> {
    let ItemKind::Table(t) = &c.item(f.parent)?.kind else { return None };
    let is_key = |k: &&crate::catalog::Constraint| k.columns.len() == f.parent_columns.len() && k.columns.iter().all(|x| f.parent_columns.contains(x));
    t.primary_key.iter().chain(&t.unique).find(is_key)
}

/// The index of that key.
fn parent_index(c: &Catalog, f: &crate::catalog::ForeignKey) -> u32 {
    let (Some(parent), Some(key)) = (c.item(f.parent), parent_key(c, f)) else { return 0 };
    key_index(c, &parent.schema, &key.name).unwrap_or(0)
}

/// As `pg_get_constraintdef` shows it.
pub fn foreign_definition(c: &Catalog, child: &Item, f: &crate::catalog::ForeignKey, known: &Names) -> String {
    let names = |i: &Item, columns: &[usize]| columns.iter().map(|c| quote_if_needed(&i.desc.names[*c])).collect::<Vec<_>>().join(", ");
    let Some(parent) = c.item(f.parent) else { return String::new() };
    let shown = known.shown(&parent.schema, &parent.name);
    let mut out = format!("FOREIGN KEY ({}) REFERENCES {shown}({})", names(child, &f.columns), names(parent, &f.parent_columns));
    let words = |a: char| match a {
        'r' => "RESTRICT",
        'c' => "CASCADE",
        'n' => "SET NULL",
        'd' => "SET DEFAULT",
        _ => "",
    };
    if f.full {
        out += " MATCH FULL";
    }
    for (when, action) in [("UPDATE", f.on_update), ("DELETE", f.on_delete)] {
        if action != 'a' {
            out += &format!(" ON {when} {}", words(action));
        }
    }
    if !f.set_columns.is_empty() {
        out += &format!(" ({})", names(child, &f.set_columns));
    }
    out + deferral_words(f.deferrable, f.deferred)
}

/// `pg_constraint.oid` of a table's primary key.
pub fn primary_key_oid(table: &Item) -> u32 {
    constraint_oid(table, 0)
}

pub fn constraints(c: &Catalog) -> Vec<ConstraintRow> {
    let mut out = Vec::new();
    for i in c.items() {
        let namespace = namespace_oid(c, &i.schema).unwrap_or(0);
        let (relation, domain) = if matches!(i.kind, ItemKind::Domain(_)) { (0, i.oid()) } else { (i.oid(), 0) };
        let mut add = |n: usize, name: &str, what, index, columns: Vec<usize>| {
            let valid = !matches!(&i.kind, ItemKind::Table(t) if t.unchecked.iter().any(|u| u == name));
            out.push(ConstraintRow { oid: constraint_oid(i, n), name: name.to_owned(), namespace, what, index, relation, domain, columns, valid });
        };
        match &i.kind {
            ItemKind::Domain(d) => d.checks.iter().enumerate().for_each(|(n, (name, check))| add(n, name, Constrained::Check(check.clone()), 0, vec![])),
            ItemKind::Table(t) => {
                let mut n = 0;
                for k in t.constraints() {
                    if !k.index {
                        let primary = t.primary_key.as_ref().is_some_and(|p| std::ptr::eq(p, k));
                        add(n, &k.name, Constrained::Key { primary, key: k.clone() }, constraint_oid(i, n), k.columns.clone());
                    }
                    n += 1;
                }
                for (name, check) in &t.checks {
                    add(n, name, Constrained::Check(check.clone()), 0, vec![]);
                    n += 1;
                }
                for f in &t.foreign {
                    add(n, &f.name, Constrained::Foreign(f.clone()), parent_index(c, f), f.columns.clone());
                    n += 1;
                }
            }
            _ => {}
        }
    }
    out
}
