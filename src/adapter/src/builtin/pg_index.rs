//! `pg_index`: indexes and the indexes of keys as rows and as text.

use super::names::quote_if_needed;
use super::pg::{class_type, collation, constraint_oid, shown_expression, BTREE_AM, CONSTRAINTS, HASH_AM};
use super::{int, oid, vector, Names, Rows};
use crate::catalog::{Catalog, ItemKind};
use expr::catalog as pgdata;
use expr::CatalogView;
use repr::{ColType, SqlType, Value};

/// An index, of CREATE INDEX or of a key.
pub(super) struct Index {
    pub oid: u32,
    pub name: String,
    pub on: u32,
    /// Positions of the columns; `None` for an expression.
    pub columns: Vec<Option<usize>>,
    texts: Vec<String>,
    /// Columns that it has beside its keys.
    pub include: Vec<usize>,
    unique: bool,
    primary: bool,
    deferrable: bool,
    pub def: crate::catalog::IndexDef,
}

impl Index {
    pub(super) fn method(&self) -> u32 {
        if self.def.hash {
            HASH_AM
        } else {
            BTREE_AM
        }
    }

    /// `pg_index.indkey`: the numbers of its columns, 0 for an expression.
    pub(super) fn numbers(&self) -> Vec<i16> {
        let number = |k: usize| k as i16 + 1;
        self.columns.iter().map(|k| k.map_or(0, number)).chain(self.include.iter().map(|k| number(*k))).collect()
    }

    /// Names and types of what a key or an included column holds, as declared; an expression is called by what it is.
    pub(super) fn attributes(&self, c: &Catalog, names: &Names) -> Vec<(String, ColType)> {
        let Some(base) = c.item(repr::GlobalId(u64::from(self.on))) else { return vec![] };
        let column = |k: usize| (base.desc.names[k].clone(), base.desc.types[k].clone());
        let mut out: Vec<(String, ColType)> = Vec::new();
        for (column_of, text) in self.columns.iter().zip(&self.texts) {
            let (name, ty) = match column_of {
                Some(k) => column(*k),
                None => names.named_type(text, self.on).unwrap_or_else(|| ("expr".into(), SqlType::Text.nullable())),
            };
            let taken = |n: &str| out.iter().any(|o| o.0 == n);
            let free = (1..).map(|k| format!("{name}{k}")).find(|n| !taken(n)).filter(|_| taken(&name));
            out.push((free.unwrap_or(name), ty));
        }
        out.extend(self.include.iter().map(|k| column(*k)));
        out
    }

    /// The types of the keys.
    fn key_types(&self, c: &Catalog, names: &Names) -> Vec<SqlType> {
        let Some(base) = c.item(repr::GlobalId(u64::from(self.on))) else { return vec![] };
        let of = |(k, text): (&Option<usize>, &String)| match k {
            Some(k) => base.desc.types[*k].ty.clone(),
            None => names.named_type(text, self.on).map_or(SqlType::Text, |t| t.1.ty),
        };
        self.columns.iter().zip(&self.texts).map(of).collect()
    }

    /// `pg_index.indclass` of a key: the class that it names, or the default of its type.
    fn class(&self, n: usize, ty: &SqlType) -> u32 {
        let named = self.def.order.get(n).and_then(|o| o.split_whitespace().find(|w| w.ends_with("_ops")));
        let classes = || pgdata::opclasses().iter().filter(|k| k.method == self.method());
        let of = |ty: u32| classes().find(|k| k.is_default && k.in_type == ty).map(|k| k.oid);
        let by_name = |name: &str| classes().find(|k| k.name == name).map(|k| k.oid);
        named.and_then(by_name).or_else(|| of(ty.base().oid())).or_else(|| of(class_type(ty))).unwrap_or(0)
    }

    /// `pg_index.indoption` of a key: 1 DESC, 2 NULLS FIRST.
    fn option(&self, n: usize) -> i16 {
        let order = self.def.order.get(n).map_or("", String::as_str);
        let desc = order.contains(" DESC");
        let first = order.contains("NULLS FIRST") || desc && !order.contains("NULLS LAST");
        i16::from(desc) | i16::from(first) << 1
    }

    /// A key as it is shown, an expression that is no call in brackets.
    fn shown(&self, n: usize, names: &Names, pretty: bool) -> String {
        if self.columns[n].is_some() {
            return self.texts[n].clone();
        }
        shown_expression(&self.texts[n], self.on, names, pretty)
    }

    /// The keys that are no columns.
    fn expressions(&self) -> Vec<&str> {
        self.columns.iter().zip(&self.texts).filter(|(k, _)| k.is_none()).map(|(_, t)| t.as_str()).collect()
    }

    pub(super) fn definition(&self, c: &Catalog, names: &Names, pretty: bool) -> String {
        let Some(base) = c.item(repr::GlobalId(u64::from(self.on))) else { return String::new() };
        let unique = if self.unique { "UNIQUE " } else { "" };
        let on = match pretty {
            true => names.shown(&base.schema, &base.name),
            false => format!("{}.{}", quote_if_needed(&base.schema), quote_if_needed(&base.name)),
        };
        let key = |n: usize| format!("{}{}", self.shown(n, names, pretty), self.def.order.get(n).map_or("", String::as_str));
        let keys: Vec<String> = (0..self.texts.len()).map(key).collect();
        let include = if self.def.include.is_empty() { String::new() } else { format!(" INCLUDE ({})", self.def.include.join(", ")) };
        let filter = self.def.filter.as_ref().map_or_else(String::new, |f| format!(" WHERE {}", names.expression(f, self.on, pretty)));
        let method = if self.def.hash { "hash" } else { "btree" };
        let nulls = if self.def.equal_nulls { " NULLS NOT DISTINCT" } else { "" };
        format!("CREATE {unique}INDEX {} ON {on} USING {method} ({}){include}{nulls}{filter}", quote_if_needed(&self.name), keys.join(", "))
    }
}

pub(super) fn index_list(c: &Catalog) -> Vec<Index> {
    let mut out = Vec::new();
    for i in c.items() {
        match &i.kind {
            ItemKind::Index { on, key, def } => {
                let Some(base) = c.item(*on) else { continue };
                let columns = key.iter().map(|k| base.desc.names.iter().position(|n| k.trim_matches('"') == n)).collect();
                let unique = matches!(&base.kind, ItemKind::Table(t) if t.unique.iter().any(|u| u.index && u.name == i.name) || t.computed_keys.iter().any(|k| k.name == i.name));
                let place = |name: &String| base.desc.names.iter().position(|n| name.trim_matches('"').replace("\"\"", "\"") == *n);
                let include = def.include.iter().filter_map(place).collect();
                out.push(Index {
                    oid: i.oid(),
                    name: i.name.clone(),
                    on: on.0 as u32,
                    columns,
                    texts: key.clone(),
                    include,
                    unique,
                    primary: false,
                    deferrable: false,
                    def: def.clone(),
                });
            }
            ItemKind::Table(t) => {
                for (n, (k, primary)) in t.primary_key.iter().map(|k| (k, true)).chain(t.unique.iter().map(|k| (k, false))).enumerate() {
                    if k.index {
                        continue;
                    }
                    out.push(Index {
                        oid: constraint_oid(i, n),
                        name: k.name.clone(),
                        on: i.oid(),
                        columns: k.columns.iter().map(|c| Some(*c)).collect(),
                        texts: k.columns.iter().map(|c| quote_if_needed(&i.desc.names[*c])).collect(),
                        include: k.include.clone(),
                        unique: true,
                        primary,
                        deferrable: k.deferrable,
                        def: crate::catalog::IndexDef {
                            equal_nulls: k.equal_nulls,
                            include: k.include.iter().map(|c| quote_if_needed(&i.desc.names[*c])).collect(),
                            ..Default::default()
                        },
                    });
                }
            }
            _ => {}
        }
    }
    out
}

/// Each index that is not of a constraint, what it is on, and the columns that it names, from 1.
pub fn index_columns(c: &Catalog) -> Vec<(u32, u32, Vec<usize>)> {
    let own = index_list(c).into_iter().filter(|x| x.oid < CONSTRAINTS);
    own.map(|x| {
        let named: Vec<usize> = x.columns.iter().flatten().map(|k| k + 1).collect();
        (x.oid, x.on, if named.len() < x.columns.len() { vec![0] } else { named })
    })
    .collect()
}

pub(super) fn indexes(c: &Catalog, names: &Names, out: &mut Rows<'_>) {
    for x in index_list(c) {
        let n = x.columns.len();
        let key = x.numbers().into_iter().map(Value::Int2).collect();
        let types = x.key_types(c, names);
        out.add(vec![
            ("indexrelid", oid(x.oid)),
            ("indrelid", oid(x.on)),
            ("indnatts", int((n + x.include.len()) as i64)),
            ("indnkeyatts", int(n as i64)),
            ("indisunique", Value::Bool(x.unique)),
            ("indisprimary", Value::Bool(x.primary)),
            ("indimmediate", Value::Bool(!x.deferrable)),
            ("indisvalid", Value::Bool(true)),
            ("indisready", Value::Bool(true)),
            ("indislive", Value::Bool(true)),
            ("indkey", vector(key)),
            ("indcollation", vector(types.iter().map(|t| Value::UInt4(collation(t))).collect())),
            ("indclass", vector(types.iter().enumerate().map(|(k, t)| Value::UInt4(x.class(k, t))).collect())),
            ("indoption", vector((0..n).map(|k| Value::Int2(x.option(k))).collect())),
            ("indnullsnotdistinct", Value::Bool(x.def.equal_nulls)),
            ("indpred", x.def.filter.clone().map_or(Value::Null, Value::Text)),
            ("indexprs", if x.columns.contains(&None) { Value::Text(x.expressions().join(", ")) } else { Value::Null }),
        ]);
    }
}

/// `pg_get_indexdef(oid, column)`; column 0 is the whole.
pub fn index_definition(c: &Catalog, index: u32, column: i32, pretty: bool, names: &Names) -> Option<String> {
    let x = index_list(c).into_iter().find(|x| x.oid == index)?;
    match usize::try_from(column).ok()? {
        0 => Some(x.definition(c, names, pretty)),
        n if n <= x.texts.len() => Some(x.shown(n - 1, names, pretty)),
        n => x.def.include.get(n - x.texts.len() - 1).cloned(),
    }
}
