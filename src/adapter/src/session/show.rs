//! SHOW: settings, objects, CREATE statements.

use super::query::{columns, rows_response};
use super::{Response, Session};
use crate::catalog::{Item, ItemKind};
use expr::CatalogView;
use repr::error::state;
use repr::{SqlError, SqlType, Value};
use sql::ast::ShowKind;
use sql::catalog::ObjectRef;
use sql::plan::{quote_ident, ShowPlan};

impl Session {
    pub(super) fn show_variable(&self, name: &str) -> Result<Response, SqlError> {
        let value = self.settings.get(name)?;
        let shown = self.settings.all().into_iter().find(|s| s.0.eq_ignore_ascii_case(name)).map_or_else(|| name.to_string(), |s| s.0);
        Ok(rows_response(columns(&[(&shown, SqlType::Text)]), vec![vec![Value::Text(value)]], "SHOW"))
    }

    pub(super) fn show_all(&self) -> Response {
        let rows = self.settings.all().into_iter().map(|(n, v, d)| vec![Value::Text(n), Value::Text(v), Value::Text(d)]).collect();
        rows_response(columns(&[("name", SqlType::Text), ("setting", SqlType::Text), ("description", SqlType::Text)]), rows, "SHOW")
    }

    pub(super) fn show_create(&self, object: &ObjectRef) -> Result<Response, SqlError> {
        let item = self.table(object.id)?;
        if item.sql.is_empty() {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" has no CREATE statement of its own", item.name)));
        }
        let name = || format!("{}.{}", quote_ident(&item.schema), quote_ident(&item.name));
        let names = || item.desc.names.iter().map(|n| quote_ident(n)).collect::<Vec<_>>().join(", ");
        // As objects are called now.
        let known = crate::builtin::Names::new(self.catalog(), vec!["public".into()], Vec::new());
        let mut sql = match &item.kind {
            ItemKind::View { query, check, .. } => {
                let check = check.map(|c| format!(" WITH {} CHECK OPTION", c.word().to_uppercase()));
                let flags = item.options.iter().map(|(n, v)| format!("{n} = {}", quote_ident(v))).collect::<Vec<_>>().join(", ");
                let flags = if flags.is_empty() { flags } else { format!(" WITH ({flags})") };
                format!("CREATE VIEW {} ({}){flags} AS {query}{}", name(), names(), check.unwrap_or_default())
            }
            ItemKind::MaterializedView { query, quarantine } => {
                let options = if *quarantine { " WITH (ON ERROR = 'quarantine')" } else { "" };
                format!("CREATE MATERIALIZED VIEW {} ({}){options} AS {query}", name(), names())
            }
            ItemKind::Index { .. } => known.index_definition(item.oid(), 0, false).unwrap_or_else(|| item.sql.clone()),
            _ => item.sql.clone(),
        };
        if let (ItemKind::Table(t), Some(open)) = (&item.kind, sql.strip_suffix(')').map(str::to_owned)) {
            // Named as the tables referred to are named now.
            let catalog = self.catalog();
            let keys = t
                .foreign
                .iter()
                .map(|f| format!("CONSTRAINT {} {}", crate::planner::quote(&f.name), crate::builtin::foreign_definition(&catalog, &item, f, &known)));
            sql = format!("{})", std::iter::once(open).chain(keys).collect::<Vec<_>>().join(", "));
        }
        let row = vec![Value::Text(format!("{}.{}", item.schema, item.name)), Value::Text(sql)];
        Ok(rows_response(columns(&[("name", SqlType::Text), ("create_sql", SqlType::Text)]), vec![row], "SHOW"))
    }

    pub(super) async fn show(&self, p: ShowPlan) -> Result<Response, SqlError> {
        let catalog = self.catalog();
        let running = if p.kind == ShowKind::Sources { self.introspect().await?.sources } else { Vec::new() };
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let text = |s: &str| Value::text(s);
        let in_scope = |i: &Item| match &p.schema {
            Some(s) => i.schema == *s,
            None => self.settings.search_path().contains(&i.schema) || self.temp_schema.as_ref() == Some(&i.schema),
        };
        let comment = |i: &Item| i.comments.iter().find(|c| c.0 == 0).map_or(Value::Null, |c| Value::text(c.1.clone()));
        match p.kind {
            ShowKind::Schemas => {
                rows.extend(catalog.schemas().map(|s| s.0).chain(crate::builtin::SYSTEM_SCHEMAS.iter().copied()).map(|s| vec![text(s), Value::Null]));
            }
            ShowKind::Databases => rows.push(vec![text(crate::planner::DATABASE), Value::Null]),
            ShowKind::Columns => {
                let id = p.relation.as_ref().ok_or_else(|| SqlError::internal("SHOW COLUMNS without relation"))?.id;
                let item = self.table(id)?;
                for (n, t) in item.desc.names.iter().zip(&item.desc.types) {
                    rows.push(vec![text(n), Value::Bool(t.nullable), Value::Text(expr::func::system::with_typmod(&t.ty, t.typmod)), Value::Null]);
                }
            }
            ShowKind::Indexes => {
                for i in catalog.items() {
                    let ItemKind::Index { on, key, .. } = &i.kind else { continue };
                    let wanted = p.relation.as_ref().map_or_else(|| in_scope(i), |r| r.id == *on);
                    if let (true, Some(base)) = (wanted, catalog.item(*on)) {
                        let key = Value::array(key.iter().map(|k| text(k)).collect());
                        rows.push(vec![text(&i.name), text(&base.name), text("default"), key, comment(i)]);
                    }
                }
            }
            kind => {
                for i in catalog.items().filter(|i| in_scope(i) && shown_as(kind, i)) {
                    rows.push(match (kind, &i.kind) {
                        (ShowKind::Sources, ItemKind::Source(s)) => {
                            let now = running.iter().find(|r| r.id == i.id);
                            let status = now.map_or(Value::Null, |r| text(&r.status));
                            let detail = now.and_then(|r| r.detail.as_deref()).map_or(Value::Null, text);
                            vec![text(&i.name), text(source_type(s)), text("default"), comment(i), status, detail]
                        }
                        (ShowKind::Connections, ItemKind::Connection(c)) => vec![text(&i.name), text(connection_type(c)), comment(i)],
                        (ShowKind::MaterializedViews, _) => vec![text(&i.name), text("default"), comment(i)],
                        (ShowKind::Objects, _) => vec![text(&i.name), text(i.noun()), comment(i)],
                        _ => vec![text(&i.name), comment(i)],
                    });
                }
            }
        }
        if let Some(like) = &p.like {
            let mut kept = Vec::new();
            for r in rows {
                if matches_like(&r[0], like)? {
                    kept.push(r);
                }
            }
            rows = kept;
        }
        rows.sort_by(|a, b| a[0].as_str().cmp(&b[0].as_str()));
        if p.kind == ShowKind::Columns {
            // In the relation's order, not by name.
            let item = p.relation.as_ref().and_then(|r| catalog.item(r.id).cloned());
            if let Some(item) = item {
                rows.sort_by_key(|r| item.desc.names.iter().position(|n| Some(n.as_str()) == r[0].as_str()));
            }
        }
        let n = p.desc.arity();
        rows.iter_mut().for_each(|r| r.resize(n, Value::Null));
        Ok(rows_response(p.desc, rows, "SHOW"))
    }
}

/// `name LIKE pattern`.
fn matches_like(name: &Value, pattern: &str) -> Result<bool, SqlError> {
    const TEXTLIKE: u32 = 850;
    let func = expr::func::by_oid(TEXTLIKE).ok_or_else(|| SqlError::internal("LIKE is missing"))?;
    let text = |v: Value| expr::Scalar::literal(v, SqlType::Text);
    let call = expr::Scalar::Call { func, args: vec![text(name.clone()), text(Value::text(pattern))], ty: SqlType::Bool.not_null() };
    Ok(expr::eval_const(&call, &expr::EvalCtx::default())? == Value::Bool(true))
}

fn shown_as(kind: ShowKind, item: &Item) -> bool {
    match kind {
        ShowKind::Sources => matches!(item.kind, ItemKind::Source(_)),
        ShowKind::Tables => matches!(item.kind, ItemKind::Table(_) | ItemKind::SourceTable { .. }),
        ShowKind::Views => matches!(item.kind, ItemKind::View { .. }),
        ShowKind::MaterializedViews => matches!(item.kind, ItemKind::MaterializedView { .. }),
        ShowKind::Connections => matches!(item.kind, ItemKind::Connection(_)),
        ShowKind::Secrets => matches!(item.kind, ItemKind::Secret { .. }),
        ShowKind::Types => matches!(item.kind, ItemKind::Type(_) | ItemKind::Domain(_)),
        ShowKind::Objects => !matches!(item.kind, ItemKind::Errors { .. } | ItemKind::ViewErrors { .. }),
        _ => false,
    }
}

fn source_type(source: &crate::catalog::Source) -> &'static str {
    use crate::catalog::SourceConnector;
    match source.connector {
        SourceConnector::Kafka { .. } => "kafka",
        SourceConnector::Postgres { .. } => "postgres",
        SourceConnector::File { .. } => "file",
        SourceConnector::Generator { .. } => "load-generator",
    }
}

fn connection_type(c: &crate::catalog::Connection) -> &'static str {
    match c {
        crate::catalog::Connection::Kafka { .. } => "kafka",
        crate::catalog::Connection::Postgres { .. } => "postgres",
    }
}
