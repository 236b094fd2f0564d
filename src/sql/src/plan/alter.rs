//! ALTER TABLE: each change bound over the table as the changes before it have left it.
//!
//! The statement's plan holds the changes as written; the catalog's owner keeps a draft of the table, binds one change after the other
//! with [`bind`], and applies it to the draft and to the rows. Not here: rows, and what depends on the table.

use super::kept::is_no_default;
use super::scope::Clause;
use super::sequence::check_identity_type;
use super::*;
use crate::ast::{self, ObjectKind, TableAction};
use crate::catalog::{ObjectRef, Relation, RelationKind};
use crate::hir::HirScalar;
use crate::parse::ParsedStatement;
use ::expr::catalog::CastContext;
use repr::{ColType, RelDesc};

/// One change, with all names resolved.
#[derive(Debug)]
pub enum TableStep {
    /// IF EXISTS, IF NOT EXISTS with nothing to do.
    Nothing(SqlError),
    /// Columns behind the others (`shape.desc` beyond the table's own), constraints beside the others.
    Extend(Box<TableShape>),
    DropColumn {
        column: usize,
        cascade: bool,
    },
    DropConstraint {
        name: String,
        cascade: bool,
    },
    /// The rows that are there are tested by a constraint that is NOT VALID.
    Validate {
        name: String,
    },
    /// DEFERRABLE and the like of a foreign key.
    Foreign {
        name: String,
        when: ast::ConstraintTime,
    },
    Default {
        column: usize,
        text: Option<String>,
    },
    NotNull {
        column: usize,
        set: bool,
    },
    /// `using`: the new value over the old row.
    Type {
        column: usize,
        ty: ColType,
        collation: Option<String>,
        using: HirScalar,
    },
    AddIdentity(ColumnSequence),
    SetIdentity {
        column: usize,
        always: Option<bool>,
        options: Box<ast::SequenceOptions>,
    },
    DropIdentity {
        column: usize,
    },
    DropExpression {
        column: usize,
    },
    /// What is of PostgreSQL's files alone. Parameters are shown again; one without a value is reset.
    Storage(Vec<(String, Option<String>)>),
}

/// The order in which Postgres makes changes of one statement: what goes first, then types, then what comes. A column goes behind the
/// types, since what the new values are made from may be in it.
pub fn pass(a: &TableAction) -> u8 {
    match a {
        TableAction::DropConstraint { .. } | TableAction::DropDefault(_) | TableAction::DropNotNull(_) => 0,
        TableAction::DropIdentity { .. } | TableAction::DropExpression { .. } => 0,
        TableAction::SetType { .. } => 1,
        TableAction::DropColumn { .. } => 2,
        TableAction::AddColumn { .. } => 3,
        TableAction::AddConstraint(c) if matches!(c.kind, ast::ConstraintKind::Check(..)) => 6,
        TableAction::AddConstraint(c) if matches!(c.kind, ast::ConstraintKind::ForeignKey(..)) => 7,
        TableAction::AddConstraint(_) => 5,
        TableAction::ValidateConstraint(_) | TableAction::AlterConstraint(..) => 8,
        _ => 4,
    }
}

/// Binds a change over the table as it is now.
pub fn bind(action: &TableAction, statement: &ParsedStatement, table: &Relation, catalog: &dyn SqlCatalog) -> Result<TableStep, SqlError> {
    Binder::new(catalog).table_step(action, statement, table)
}

impl Binder<'_> {
    pub fn alter_table(&self, p: &ParsedStatement, a: &ast::AlterTable) -> Result<Plan, SqlError> {
        let Some(rel) = self.catalog.resolve_relation(&a.name.parts).map_err(|e| e.at(a.name.pos))? else {
            if a.if_exists {
                let notice = SqlError::new(repr::SqlState::new("00000"), format!("relation \"{}\" does not exist, skipping", a.name));
                return Ok(Plan::Nothing { tag: "ALTER TABLE", notice: Some(notice) });
            }
            return Err(self.unpointed(self.undefined_relation(&a.name), &a.name));
        };
        let refused = |what: &str| {
            let m = format!("ALTER action {} cannot be performed on relation \"{}\"", a.actions.first().map_or("", words), rel.name.name);
            SqlError::new(state::WRONG_OBJECT_TYPE, m).with_detail(format!("This operation is not supported for {what}."))
        };
        match rel.kind {
            RelationKind::Table => {}
            RelationKind::Builtin => return Err(self.any_object(ObjectKind::Table, &a.name).err().unwrap_or_else(|| refused("system relations"))),
            RelationKind::View(_) if a.actions.iter().all(|x| matches!(x, TableAction::SetDefault(..) | TableAction::DropDefault(_))) => {
                return self.view_defaults(p, a, &rel);
            }
            RelationKind::View(_) => return Err(refused("views")),
            RelationKind::MaterializedView => return Err(refused("materialized views")),
            RelationKind::Source | RelationKind::Tables => return Err(refused("relations that a source feeds")),
            RelationKind::Sequence => return Err(refused("sequences")),
            RelationKind::Other => return Err(refused("indexes")),
        }
        let table = ObjectRef { id: rel.id, name: rel.name.clone() };
        let mut actions = a.actions.clone();
        actions.sort_by_key(pass);
        let statement = ParsedStatement { text: p.text.clone(), offset: p.offset, statement: p.statement.clone(), notices: Vec::new() };
        Ok(Plan::AlterTable(Box::new(AlterTablePlan { table, actions, statement })))
    }

    /// ALTER VIEW … ALTER COLUMN SET DEFAULT, DROP DEFAULT.
    fn view_defaults(&self, p: &ParsedStatement, a: &ast::AlterTable, rel: &Relation) -> Result<Plan, SqlError> {
        let mut defaults = Vec::new();
        for action in &a.actions {
            defaults.push(match action {
                TableAction::SetDefault(c, e, span) => {
                    let column = self.known_column(rel, c)?;
                    let ty = rel.desc.types[column].clone().with_nullable(true);
                    (column, if is_no_default(e, &ty) { None } else { Some(self.default_text(&c.name, &ty, e, p.slice(*span))?.0) })
                }
                TableAction::DropDefault(c) => (self.known_column(rel, c)?, None),
                _ => return Err(SqlError::internal("a change of a view that is none of a default")),
            });
        }
        let view = ObjectRef { id: rel.id, name: rel.name.clone() };
        Ok(Plan::AlterViewDefaults { view, defaults, tag: if a.of_view { "ALTER VIEW" } else { "ALTER TABLE" } })
    }

    /// Errors: 42703, 42704, 42809 and 22023 for what PostgreSQL would not take.
    fn storage_change(&self, change: &ast::StorageChange, rel: &Relation) -> Result<(), SqlError> {
        let table = &rel.name.name;
        let index = |name: &ast::Ident| {
            let parts = [rel.name.schema.clone(), name.name.clone()];
            let own = self.catalog.resolve_object(ObjectKind::Index, &parts).is_some_and(|o| rel.def.indexes.contains(&o.id));
            let missing = || SqlError::new(state::UNDEFINED_OBJECT, format!("index \"{}\" for table \"{table}\" does not exist", name.name));
            (own || rel.unique.iter().any(|u| u.0 == name.name)).then_some(()).ok_or_else(missing)
        };
        match change {
            ast::StorageChange::Bare | ast::StorageChange::Reset(_) => Ok(()),
            ast::StorageChange::Column(c) => self.known_column(rel, c).map(|_| ()),
            ast::StorageChange::Stored(c, compression, word) => {
                let known: &[&str] = if *compression { &["pglz", "lz4", "default"] } else { &["plain", "external", "extended", "main"] };
                let lower = word.to_ascii_lowercase();
                let unknown = || {
                    let what = if *compression { "compression method" } else { "storage type" };
                    SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid {what} \"{word}\""))
                };
                if !*compression && !known.contains(&lower.as_str()) {
                    return Err(unknown());
                }
                let ty = &rel.desc.types[self.known_column(rel, c)?].ty;
                // What stands in its row alone is of a length that does not change.
                let alone = matches!(ty.base(), SqlType::Enum(_)) || ::expr::catalog::type_by_oid(ty.base().oid()).is_some_and(|t| t.storage == 'p');
                match (alone, *compression) {
                    (true, true) => {
                        Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("column data type {} does not support compression", ty.sql_name())))
                    }
                    (true, false) if lower != "plain" => {
                        Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("column data type {} can only have storage PLAIN", ty.sql_name())))
                    }
                    (false, true) if !known.contains(&lower.as_str()) => Err(unknown()),
                    _ => Ok(()),
                }
            }
            ast::StorageChange::Index(i) => index(i),
            ast::StorageChange::Identity(i) => {
                index(i)?;
                let wrong = |m: String| Err(SqlError::new(state::WRONG_OBJECT_TYPE, m));
                let name = &i.name;
                match rel.unique.iter().find(|u| u.0 == *name) {
                    None => wrong(format!("cannot use non-unique index \"{name}\" as replica identity")),
                    Some(_) if rel.is_deferrable(name) => wrong(format!("cannot use non-immediate index \"{name}\" as replica identity")),
                    Some((_, columns)) => match columns.iter().find(|c| rel.desc.types[**c].nullable) {
                        Some(c) => wrong(format!("index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable", rel.desc.names[*c])),
                        None => Ok(()),
                    },
                }
            }
            ast::StorageChange::Tablespace(t) if t.name != "pg_default" => {
                Err(SqlError::new(state::UNDEFINED_OBJECT, format!("tablespace \"{}\" does not exist", t.name)))
            }
            ast::StorageChange::Tablespace(_) => Ok(()),
            ast::StorageChange::Parameters(options) => super::statement::storage_parameters(options, false),
        }
    }

    fn table_step(&self, action: &TableAction, p: &ParsedStatement, rel: &Relation) -> Result<TableStep, SqlError> {
        let table = &rel.name.name;
        let skipped = |m: String| Ok(TableStep::Nothing(SqlError::new(repr::SqlState::new("00000"), m)));
        match action {
            TableAction::Storage(s) => {
                self.storage_change(s, rel)?;
                Ok(TableStep::Storage(match s {
                    ast::StorageChange::Parameters(options) => {
                        super::statement::kept_parameters(options).into_iter().map(|(name, v)| (name, Some(v))).collect()
                    }
                    ast::StorageChange::Reset(names) => names.iter().map(|name| (name.clone(), None)).collect(),
                    _ => vec![],
                }))
            }
            TableAction::AddColumn { column, if_not_exists } => {
                if *if_not_exists && rel.desc.names.contains(&column.name.name) {
                    return skipped(format!("column \"{}\" of relation \"{table}\" already exists, skipping", column.name.name));
                }
                Ok(TableStep::Extend(Box::new(self.table_shape(p, table, std::slice::from_ref(column), &[], Some(rel))?)))
            }
            TableAction::AddConstraint(c) => Ok(TableStep::Extend(Box::new(self.table_shape(p, table, &[], std::slice::from_ref(c), Some(rel))?))),
            TableAction::DropColumn { column, if_exists, cascade } => match self.column_of(rel, column) {
                Ok(i) => Ok(TableStep::DropColumn { column: i, cascade: *cascade }),
                Err(_) if *if_exists => skipped(format!("column \"{}\" of relation \"{table}\" does not exist, skipping", column.name)),
                Err(e) => Err(SqlError { position: None, ..e }),
            },
            TableAction::DropConstraint { name, if_exists, cascade } => {
                if has_constraint(rel, name) {
                    return Ok(TableStep::DropConstraint { name: name.name.clone(), cascade: *cascade });
                }
                let e = no_constraint(rel, name);
                if *if_exists {
                    return skipped(format!("{}, skipping", e.message));
                }
                Err(e)
            }
            TableAction::ValidateConstraint(name) => {
                if rel.def.checks.iter().any(|c| c.0 == name.name) || rel.def.foreign.contains(&name.name) {
                    return Ok(TableStep::Validate { name: name.name.clone() });
                }
                if !has_constraint(rel, name) {
                    return Err(no_constraint(rel, name));
                }
                let m = format!("constraint \"{}\" of relation \"{table}\" is not a foreign key or check constraint", name.name);
                Err(SqlError::new(state::WRONG_OBJECT_TYPE, m))
            }
            TableAction::AlterConstraint(name, when) => {
                if rel.def.foreign.contains(&name.name) {
                    return Ok(TableStep::Foreign { name: name.name.clone(), when: *when });
                }
                if !has_constraint(rel, name) {
                    return Err(no_constraint(rel, name));
                }
                Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("constraint \"{}\" of relation \"{table}\" is not a foreign key constraint", name.name)))
            }
            TableAction::SetDefault(c, e, span) => {
                let column = self.plain_column(rel, c)?;
                let ty = &rel.desc.types[column];
                let text = if is_no_default(e, ty) { None } else { Some(self.default_text(&c.name, ty, e, p.slice(*span))?.0) };
                Ok(TableStep::Default { column, text })
            }
            TableAction::DropDefault(c) => Ok(TableStep::Default { column: self.plain_column(rel, c)?, text: None }),
            TableAction::SetNotNull(c) => Ok(TableStep::NotNull { column: self.known_column(rel, c)?, set: true }),
            TableAction::DropNotNull(c) => {
                let column = self.known_column(rel, c)?;
                if rel.def.has_primary_key && rel.unique.first().is_some_and(|u| u.1.contains(&column)) {
                    return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, format!("column \"{}\" is in a primary key", c.name)));
                }
                if rel.identity(column).is_some() {
                    let m = format!("column \"{}\" of relation \"{table}\" is an identity column", c.name);
                    return Err(SqlError::new(state::SYNTAX_ERROR, m));
                }
                Ok(TableStep::NotNull { column, set: false })
            }
            TableAction::SetType { column: c, ty, using } => {
                let column = self.known_column(rel, c)?;
                let collation = super::types_of::kept_collation(ty);
                let ty = self.resolve_type(ty)?.with_nullable(rel.desc.types[column].nullable);
                if rel.identity(column).is_some() {
                    check_identity_type(&ty.ty)?;
                }
                if rel.is_generated(column) && using.is_some() {
                    let e = SqlError::new(repr::SqlState::new("42611"), "cannot specify USING when altering type of generated column");
                    return Err(e.with_detail(format!("Column \"{}\" is a generated column.", c.name)));
                }
                let env = self.row_env(table, &rel.desc, Clause::Transform);
                let (x, pos) = match using {
                    Some(e) => (self.expr(e, &env)?, e.pos),
                    None => (self.expr(&ast::Expr::new(ast::ExprKind::Column(vec![c.clone()]), c.pos), &env)?, c.pos),
                };
                let what = if using.is_some() { "result of USING clause for column" } else { "column" };
                let x = self.try_coerce(x, &ty, CastContext::Assignment, pos)?.ok_or_else(|| {
                    let m = format!("{what} \"{}\" cannot be cast automatically to type {}", c.name, ty.ty.sql_name());
                    let hint = match using {
                        Some(_) => "You might need to add an explicit cast.".to_owned(),
                        None => format!("You might need to specify \"USING {}::{}\".", quote_ident(&c.name), ty.ty.sql_name()),
                    };
                    SqlError::new(state::DATATYPE_MISMATCH, m).with_hint(hint)
                })?;
                if let Some(Some(default)) = rel.def.defaults.get(column) {
                    let default = bind_default(default, &RelDesc::default(), &rel.desc.types[column], self.catalog)?;
                    if let Ok(None) = self.try_coerce(default, &ty, CastContext::Assignment, pos) {
                        let m = format!("default for column \"{}\" cannot be cast automatically to type {}", c.name, ty.ty.sql_name());
                        return Err(SqlError::new(state::DATATYPE_MISMATCH, m));
                    }
                }
                Ok(TableStep::Type { column, ty, collation, using: x })
            }
            TableAction::AddIdentity(c, identity) => {
                let column = self.known_column(rel, c)?;
                check_identity_type(&rel.desc.types[column].ty)?;
                let wrong = |m: &str| Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("column \"{}\" of relation \"{table}\" {m}", c.name)));
                if rel.desc.types[column].nullable {
                    return wrong("must be declared NOT NULL before identity can be added");
                }
                if rel.identity(column).is_some() {
                    return wrong("is already an identity column");
                }
                if rel.def.defaults.get(column).is_some_and(Option::is_some) {
                    return wrong("already has a default value");
                }
                let spec = self.sequence_spec(&identity.options, &rel.desc.types[column].ty, true)?;
                let name = identity.options.name.as_ref().map(|n| self.new_name(n)).transpose()?;
                Ok(TableStep::AddIdentity(ColumnSequence { column, identity: Some(identity.always), spec, name }))
            }
            TableAction::SetIdentity { column: c, always, options } => {
                let column = self.identity_column(rel, c)?;
                Ok(TableStep::SetIdentity { column, always: *always, options: Box::new(options.clone()) })
            }
            TableAction::DropIdentity { column: c, if_exists } => match self.identity_column(rel, c) {
                Ok(column) => Ok(TableStep::DropIdentity { column }),
                Err(e) if *if_exists && e.code == state::OBJECT_NOT_IN_PREREQUISITE_STATE => skipped(format!("{}, skipping", e.message)),
                Err(e) => Err(e),
            },
            TableAction::DropExpression { column: c, if_exists } => {
                let column = self.known_column(rel, c)?;
                if rel.is_generated(column) {
                    return Ok(TableStep::DropExpression { column });
                }
                let m = format!("column \"{}\" of relation \"{table}\" is not a stored generated column", c.name);
                if *if_exists {
                    return skipped(format!("{m}, skipping"));
                }
                Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m))
            }
        }
    }

    fn known_column(&self, rel: &Relation, c: &ast::Ident) -> Result<usize, SqlError> {
        self.column_of(rel, c).map_err(|e| SqlError { position: None, ..e })
    }

    fn identity_column(&self, rel: &Relation, c: &ast::Ident) -> Result<usize, SqlError> {
        let column = self.known_column(rel, c)?;
        match rel.identity(column) {
            Some(_) => Ok(column),
            None => {
                let m = format!("column \"{}\" of relation \"{}\" is not an identity column", c.name, rel.name.name);
                Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m))
            }
        }
    }

    /// A column whose default may change.
    fn plain_column(&self, rel: &Relation, c: &ast::Ident) -> Result<usize, SqlError> {
        let column = self.known_column(rel, c)?;
        let what = match (rel.identity(column), rel.is_generated(column)) {
            (Some(_), _) => "an identity column",
            (_, true) => "a generated column",
            _ => return Ok(column),
        };
        Err(SqlError::new(state::SYNTAX_ERROR, format!("column \"{}\" of relation \"{}\" is {what}", c.name, rel.name.name)))
    }
}

fn has_constraint(rel: &Relation, name: &ast::Ident) -> bool {
    let key = rel.unique.iter().any(|u| u.0 == name.name) && !rel.def.unique_indexes.contains(&name.name);
    key || rel.def.checks.iter().any(|c| c.0 == name.name) || rel.def.foreign.contains(&name.name)
}

fn no_constraint(rel: &Relation, name: &ast::Ident) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("constraint \"{}\" of relation \"{}\" does not exist", name.name, rel.name.name))
}

/// The words by which errors call a change.
fn words(a: &TableAction) -> &'static str {
    match a {
        TableAction::AddColumn { .. } => "ADD COLUMN",
        TableAction::DropColumn { .. } => "DROP COLUMN",
        TableAction::AddConstraint(_) => "ADD CONSTRAINT",
        TableAction::DropConstraint { .. } => "DROP CONSTRAINT",
        TableAction::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        TableAction::AlterConstraint(..) => "ALTER CONSTRAINT",
        TableAction::SetDefault(..) | TableAction::DropDefault(_) => "ALTER COLUMN ... SET DEFAULT",
        TableAction::SetNotNull(_) => "ALTER COLUMN ... SET NOT NULL",
        TableAction::DropNotNull(_) => "ALTER COLUMN ... DROP NOT NULL",
        TableAction::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        TableAction::AddIdentity(..) => "ALTER COLUMN ... ADD IDENTITY",
        TableAction::SetIdentity { .. } => "ALTER COLUMN ... SET IDENTITY",
        TableAction::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        TableAction::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        TableAction::Storage(_) => "SET",
    }
}
