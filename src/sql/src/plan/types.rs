//! Plans as data: one variant a statement.

use super::source::FormatPlan;
use crate::ast::{DiscardKind, FetchDirection, ForeignAction, ObjectKind, OnCommit, ShowKind, TransactionMode};
use crate::catalog::{FullName, ObjectRef};
use crate::hir::{Hir, HirRec, HirScalar};
use crate::parse::ParsedStatement;
use expr::ColumnOrder;
use plan::{Finishing, LocalId};
use repr::encoding::Encoding;
use repr::{ColType, GlobalId, RelDesc, SqlError, SqlType, Value};

/// What a statement means.
#[derive(Clone, Debug)]
pub enum Plan {
    Select(Box<SelectPlan>),
    Subscribe(Box<SubscribePlan>),
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    Merge(Box<MergePlan>),
    /// A statement that writes in the sight of WITH, or whose WITH writes.
    With(Box<WithPlan>),
    Truncate {
        tables: Vec<GlobalId>,
        restart_identity: bool,
        cascade: bool,
    },
    CopyTo(Box<CopyToPlan>),
    CopyFrom(Box<CopyFromPlan>),

    CreateTable(Box<CreateTablePlan>),
    CreateTableAs(Box<CreateTableAsPlan>),
    /// AS EXECUTE: the name of the prepared statement stands for the query.
    CreateTableExecute {
        create: Box<crate::ast::CreateTableAs<String>>,
        args: Vec<HirScalar>,
    },
    CreateView(Box<CreateViewPlan>),
    CreateMaterializedView(Box<CreateViewPlan>),
    CreateIndex(Box<CreateIndexPlan>),
    /// `elements`: what is made in it, in an order that works.
    CreateSchema {
        name: String,
        if_not_exists: bool,
        owner: Option<String>,
        elements: Vec<ParsedStatement>,
    },
    /// ALTER VIEW … ALTER COLUMN SET, DROP DEFAULT: column and text.
    AlterViewDefaults {
        view: ObjectRef,
        defaults: Vec<(usize, Option<String>)>,
        tag: &'static str,
    },
    /// ALTER VIEW SET, RESET: `check_option` as it is then, and of the other options those that are set or, without a value, taken away.
    AlterViewOptions {
        view: ObjectRef,
        check: Option<crate::catalog::CheckOption>,
        flags: Vec<(String, Option<String>)>,
    },
    CreateDatabase {
        name: String,
        if_not_exists: bool,
    },
    CreateType {
        name: FullName,
        body: TypePlan,
    },
    AlterType(Box<AlterTypePlan>),
    /// `value` is a constant expression of type text or bytea.
    CreateSecret {
        name: FullName,
        if_not_exists: bool,
        value: HirScalar,
    },
    CreateConnection(Box<CreateConnectionPlan>),
    CreateSource(Box<super::source::CreateSourcePlan>),
    CreateTableFromSource(Box<super::source::CreateTableFromSourcePlan>),
    CreateSink(Box<CreateSinkPlan>),
    CreateSubscription {
        name: FullName,
        if_not_exists: bool,
        relation: GlobalId,
        options: Vec<(String, String)>,
    },
    ValidateConnection(ObjectRef),
    ReplayErrors {
        source: GlobalId,
    },
    /// `at` is a constant expression, as in AS OF.
    Acknowledge {
        subscription: ObjectRef,
        at: HirScalar,
    },
    Drop(Box<DropPlan>),
    AlterTable(Box<AlterTablePlan>),
    CreateSequence(Box<CreateSequencePlan>),
    AlterSequence(Box<AlterSequencePlan>),
    AlterRenameConstraint {
        table: GlobalId,
        from: String,
        to: String,
    },
    /// Only of an object that exists; `IF EXISTS` on none gives [`Plan::Nothing`].
    AlterRename {
        kind: ObjectKind,
        object: ObjectRef,
        to: String,
    },
    AlterRenameSchema {
        from: String,
        to: String,
    },
    AlterRenameColumn {
        kind: ObjectKind,
        relation: GlobalId,
        column: usize,
        to: String,
    },
    AlterSetSchema {
        kind: ObjectKind,
        object: ObjectRef,
        schema: String,
    },
    /// `value` None: RESET.
    AlterOptions {
        kind: ObjectKind,
        object: ObjectRef,
        options: Vec<(String, Option<String>)>,
    },
    AlterSecret {
        secret: ObjectRef,
        value: String,
    },
    /// The object is there; there is one owner.
    AlterOwner {
        kind: ObjectKind,
        owner: String,
    },
    /// COMMENT ON; `text` None removes it.
    Comment {
        on: Commented,
        text: Option<String>,
    },

    /// With the tag.
    Begin(&'static str, Vec<TransactionMode>),
    SetTransaction {
        session: bool,
        modes: Vec<TransactionMode>,
    },
    /// Names of constraints (None: ALL), and whether they wait for the commit.
    SetConstraints {
        names: Option<Vec<String>>,
        deferred: bool,
    },
    Commit {
        chain: bool,
    },
    PrepareTransaction,
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    ReleaseSavepoint(String),
    RollbackTo(String),
    /// `value` None: SET … TO DEFAULT. Several values are joined by `, ` as Postgres does, each quoted where it must be.
    SetVariable {
        local: bool,
        name: String,
        value: Option<String>,
    },
    ResetVariable(String),
    ResetAll,
    Discard(DiscardKind),
    /// One text column named as the variable is; `all`: name, setting, description.
    ShowVariable(String),
    ShowAll,
    Show(ShowPlan),
    /// Two text columns, name and create_sql.
    ShowCreate {
        kind: ObjectKind,
        object: ObjectRef,
    },

    /// The statement is described when the session runs this.
    Prepare {
        /// The whole statement.
        text: String,
        name: String,
        types: Vec<Option<SqlType>>,
        statement: ParsedStatement,
    },
    /// `args` are constant expressions, not yet cast to the prepared statement's parameter types (see [`super::coerce_argument`]).
    Execute {
        name: String,
        args: Vec<HirScalar>,
    },
    /// None: ALL.
    Deallocate(Option<String>),
    Declare {
        /// The whole statement.
        text: String,
        name: String,
        hold: bool,
        /// SCROLL, NO SCROLL, or neither.
        scroll: Option<bool>,
        binary: bool,
        query: Box<Plan>,
    },
    Fetch {
        name: String,
        direction: FetchDirection,
        is_move: bool,
        timeout_micros: Option<i64>,
    },
    /// DO.
    Do(Box<crate::ast::block::Block>),
    /// LOCK TABLE: nothing but that it stands in a block.
    Lock,
    /// None: ALL.
    Close(Option<String>),
    Explain(Box<ExplainPlan>),
    /// A statement that has nothing to do (IF EXISTS, IF NOT EXISTS): its command tag and notice.
    Nothing {
        tag: &'static str,
        notice: Option<SqlError>,
    },
}

/// A query that is read once.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectPlan {
    /// The result's rows without order; after `finishing` the columns are `desc`'s.
    pub hir: Hir,
    pub finishing: Finishing,
    /// The order in which the rows come by themselves, where `finishing` asks for none: LIMIT of a relation goes by it.
    pub natural: Vec<ColumnOrder>,
    pub desc: RelDesc,
    pub as_of: Option<AsOfPlan>,
    /// Catalog relations that it reads, views among them.
    pub depends_on: Vec<GlobalId>,
    /// `FOR UPDATE` or its like, if it says so.
    pub locking: Option<&'static str>,
}

/// Columns that are computed over a query's finished rows.
#[derive(Clone, Debug)]
pub struct Late {
    /// Positions in the result, and what they are over a row as it comes.
    pub columns: Vec<(usize, HirScalar)>,
    /// Of a row as it comes: the result's columns, then what only the expressions read.
    pub types: Vec<ColType>,
    /// How many columns the result has.
    pub keep: usize,
    /// OFFSET: rows that are computed and not sent.
    pub skip: u64,
}

/// Whether an expression asks a sequence, and can be computed over a row alone.
fn asks_sequence(e: &HirScalar) -> bool {
    let mut found = false;
    super::walk::rewrite(&mut e.clone(), 0, &mut |s, _| {
        found |= matches!(s, HirScalar::Call { func, .. } if matches!(func.name, "nextval" | "setval"));
        !found
    });
    found && !crate::has_subquery(e)
}

/// Whether a column of a query's rows asks a sequence.
pub fn is_asked(hir: &Hir, column: usize) -> bool {
    match hir {
        Hir::Let { body, .. } | Hir::LetRec { body, .. } => is_asked(body, column),
        Hir::Project { input, outputs } => is_asked(input, outputs[column]),
        Hir::Map { input, scalars } => column.checked_sub(input.arity()).is_some_and(|i| asks_sequence(&scalars[i])),
        _ => false,
    }
}

impl SelectPlan {
    /// Takes the items of the select list that ask sequences for values out of the query: they are computed for the rows that are sent, in
    /// their order, as in Postgres, which computes them above the sorting and the limit.
    pub fn take_late(&mut self) -> Option<Late> {
        fn top(hir: &mut Hir) -> &mut Hir {
            match hir {
                Hir::Let { body, .. } | Hir::LetRec { body, .. } => top(body),
                other => other,
            }
        }
        let top = top(&mut self.hir);
        if matches!(top, Hir::Map { scalars, .. } if scalars.iter().any(asks_sequence)) {
            let input = Box::new(std::mem::replace(top, Hir::Constant { rows: vec![], types: vec![] }));
            *top = Hir::Project { outputs: (0..input.arity()).collect(), input };
        }
        let Hir::Project { input, outputs } = top else { return None };
        let Hir::Map { input: base, scalars } = &mut **input else { return None };
        let n = base.arity();
        if scalars.iter_mut().any(|s| super::walk::reads(s, |c| c >= n)) {
            return None;
        }
        let project = &mut self.finishing.project;
        let keep = project.len();
        let mut columns = Vec::new();
        for place in 0..keep {
            let out = outputs[project[place]];
            let sorted = self.finishing.order_by.iter().any(|o| outputs[o.column] == out);
            let once = project.iter().filter(|p| outputs[**p] == out).count() == 1;
            if let Some(e) = out.checked_sub(n).filter(|_| once && !sorted).map(|i| &mut scalars[i]).filter(|e| asks_sequence(e)) {
                let ty = e.typ().with_nullable(true);
                columns.push((place, std::mem::replace(e, HirScalar::Literal(Value::Null, ty))));
            }
        }
        // What they read comes with the rows.
        let find = |list: &mut Vec<usize>, item: usize| {
            list.iter().position(|x| *x == item).unwrap_or_else(|| {
                list.push(item);
                list.len() - 1
            })
        };
        for (_, e) in &mut columns {
            super::walk::rewrite(e, 0, &mut |s, d| {
                if let HirScalar::Column(c, _) = s {
                    if c.level == d {
                        let output = find(outputs, c.column);
                        c.column = find(project, output);
                    }
                }
                true
            });
        }
        let types = self.hir.types();
        let types = self.finishing.project.iter().map(|p| types[*p].clone()).collect();
        if columns.is_empty() {
            return None;
        }
        let skip = std::mem::take(&mut self.finishing.offset);
        self.finishing.limit = self.finishing.limit.map(|n| n.saturating_add(skip));
        Some(Late { columns, types, keep, skip })
    }

    /// The query as a relation with exactly `desc`'s columns, LIMIT included: what a view maintains. Its order, which says nothing about
    /// a relation's rows, is still there to be found (`ordered`).
    pub fn into_relation(self) -> Hir {
        let SelectPlan { hir, finishing, natural, .. } = self;
        let Finishing { mut order_by, limit, offset, project } = finishing;
        if order_by.is_empty() && (limit.is_some() || offset > 0) {
            order_by = natural;
        }
        let limited = if limit.is_some() || offset > 0 || !order_by.is_empty() {
            let int8 = |n: u64| HirScalar::Literal(Value::Int8(i64::try_from(n).unwrap_or(i64::MAX)), SqlType::Int8.not_null());
            Hir::TopK {
                input: Box::new(hir),
                group_key: Vec::new(),
                order_by,
                limit: limit.map(int8),
                offset: (offset > 0).then(|| int8(offset)),
                with_ties: false,
            }
        } else {
            hir
        };
        if project.len() == limited.arity() && project.iter().enumerate().all(|(i, p)| i == *p) {
            return limited;
        }
        Hir::Project { input: Box::new(limited), outputs: project }
    }
}

/// AS OF: a constant expression of type numeric, timestamp or timestamptz (`mz_timestamp` is numeric here: milliseconds since 1970).
#[derive(Clone, Debug, PartialEq)]
pub struct AsOfPlan {
    pub at_least: bool,
    pub time: HirScalar,
}

#[derive(Clone, Debug)]
pub struct SubscribePlan {
    /// A relation read as it is, when the statement names one that is kept; else None and `query` holds.
    pub relation: Option<GlobalId>,
    pub query: Hir,
    /// Columns of the relation or query.
    pub desc: RelDesc,
    /// Columns sent: mz_timestamp, [mz_progressed], mz_diff or mz_state, then keys and values by the output's form.
    pub result: RelDesc,
    pub as_of: Option<AsOfPlan>,
    pub up_to: Option<HirScalar>,
    pub snapshot: bool,
    pub progress: bool,
    pub output: SubscribeForm,
    pub depends_on: Vec<GlobalId>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SubscribeForm {
    /// mz_timestamp, [mz_progressed], mz_diff, columns.
    Diffs,
    /// As Diffs; rows of one time ordered by columns of (mz_diff ++ columns): index 0 is mz_diff.
    WithinTimestampOrderBy(Vec<expr::ColumnOrder>),
    /// mz_timestamp, [mz_progressed], mz_state, key columns, other columns.
    Upsert { key: Vec<usize> },
    /// mz_timestamp, [mz_progressed], mz_state, key columns, before_*, after_*.
    Debezium { key: Vec<usize> },
}

/// INSERT: `source` yields one row for each table column, in the table's order, cast to its type, defaults filled in.
#[derive(Clone, Debug)]
pub struct InsertPlan {
    pub table: GlobalId,
    pub source: SelectPlan,
    /// Columns that `source` leaves NULL: what goes in there is computed row by row, in the order of the rows.
    pub late: Vec<(usize, HirScalar)>,
    pub on_conflict: Option<ConflictPlan>,
    pub returning: Option<ReturningPlan>,
    /// NOT NULL and CHECK are the writer's to test: [`RowChecks`].
    pub checks: RowChecks,
}

/// The items are carried out in order, each once; all see the tables as they were before the statement, and what items before them returned.
#[derive(Clone, Debug)]
pub struct WithPlan {
    pub items: Vec<WithItem>,
    pub body: Plan,
}

/// In the plans of later items and of the body, `GetLocal` of the id is what the item gives.
#[derive(Clone, Debug)]
pub enum WithItem {
    /// `volatile`: it gives other rows each time, so its rows are taken once.
    Query {
        id: LocalId,
        value: Hir,
        volatile: bool,
    },
    Recursive {
        bindings: Vec<HirRec>,
        limit: Option<u64>,
        return_at_limit: bool,
    },
    Modify {
        id: LocalId,
        plan: Plan,
    },
}

impl WithPlan {
    /// Whether an item writes.
    pub fn modifies(&self) -> bool {
        self.items.iter().any(|i| matches!(i, WithItem::Modify { .. }))
    }
}

/// MERGE: each row of `rows` says what becomes of a row of the table.
#[derive(Clone, Debug)]
pub struct MergePlan {
    pub table: GlobalId,
    pub arity: usize,
    /// Old row ++ (int4) the number of the action, NULL for none ++ new row, NULLs where there is none.
    pub rows: Hir,
    pub actions: Vec<MergeStep>,
    pub checks: RowChecks,
    pub depends_on: Vec<GlobalId>,
}

#[derive(Clone, Debug)]
pub enum MergeStep {
    Nothing,
    Update,
    Delete,
    /// With the defaults that differ from row to row.
    Insert {
        late: Vec<(usize, HirScalar)>,
    },
}

#[derive(Clone, Debug)]
pub struct ConflictPlan {
    pub arbiter: Arbiter,
    pub action: ConflictPlanAction,
}

/// Which unique key decides that a row is there already.
#[derive(Clone, Debug)]
pub enum Arbiter {
    /// Any (only with DO NOTHING).
    Any,
    Columns(Vec<usize>),
    /// A unique index on expressions, or of some rows, by its name.
    Computed(String),
}

#[derive(Clone, Debug)]
pub enum ConflictPlanAction {
    Nothing,
    /// Over existing row ++ excluded row at level 0: the new row, column by column, and the condition.
    Update {
        /// What the view written through computes of both rows: it follows them.
        computed: Vec<Vec<HirScalar>>,
        row: Vec<HirScalar>,
        filter: Option<HirScalar>,
    },
}

/// RETURNING: over the affected row at level 0 (for UPDATE old row ++ new row ++ FROM columns as `rows` yields them).
#[derive(Clone, Debug)]
pub struct ReturningPlan {
    /// What the view written through computes, step by step: it follows the row.
    pub computed: Vec<Vec<HirScalar>>,
    pub exprs: Vec<HirScalar>,
    pub desc: RelDesc,
}

/// What a table demands of each new row, in the order Postgres tests it.
#[derive(Clone, Debug, Default)]
pub struct RowChecks {
    /// Columns that must not be NULL.
    pub not_null: Vec<usize>,
    /// Name, condition over the row at level 0; a violation is FALSE, not NULL.
    pub checks: Vec<(String, HirScalar)>,
    /// Of COPY and of foreign keys' actions: what values are coerced to, which raises if a domain does not admit one.
    pub domains: Vec<HirScalar>,
    /// Generated columns and what computes them from the others, before all tests.
    pub generated: Vec<(usize, HirScalar)>,
    /// The views that the row is written through, from the table outwards; empty if none checks it.
    pub views: Vec<ViewStep>,
}

/// A view over the row of its table.
#[derive(Clone, Debug)]
pub struct ViewStep {
    pub view: String,
    /// Over the row and what the views below compute.
    pub filter: Option<HirScalar>,
    /// Columns that follow.
    pub computed: Vec<HirScalar>,
    /// A new row must satisfy the filter: WITH CHECK OPTION.
    pub checked: bool,
}

/// UPDATE: `rows` yields old row ++ new row (++ the FROM columns that RETURNING reads). Postgres updates a row once, whichever
/// joined row comes first: keep one for each old row.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    pub table: GlobalId,
    pub arity: usize,
    pub rows: Hir,
    pub returning: Option<ReturningPlan>,
    pub checks: RowChecks,
    pub depends_on: Vec<GlobalId>,
}

/// DELETE: `rows` yields the rows to delete (++ the USING columns that RETURNING reads).
#[derive(Clone, Debug)]
pub struct DeletePlan {
    pub table: GlobalId,
    pub arity: usize,
    pub rows: Hir,
    pub returning: Option<ReturningPlan>,
    pub depends_on: Vec<GlobalId>,
}

#[derive(Clone, Debug)]
pub struct CopyToPlan {
    pub source: CopySource,
    pub format: CopyFormat,
    /// None: the client's.
    pub encoding: Option<Encoding>,
    /// None: STDOUT; else a path on the server.
    pub file: Option<String>,
}

#[derive(Clone, Debug)]
pub enum CopySource {
    Select(Box<SelectPlan>),
    /// A statement that writes, and its RETURNING.
    Modify(Box<Plan>),
    Subscribe(Box<SubscribePlan>),
}

#[derive(Clone, Debug)]
pub struct CopyFromPlan {
    pub table: GlobalId,
    /// Columns that the data has, in order; others get `defaults`.
    pub columns: Vec<usize>,
    /// For every table column its default, where it has one.
    pub defaults: Vec<Option<HirScalar>>,
    pub desc: RelDesc,
    pub checks: RowChecks,
    /// Over the row: others are left out.
    pub filter: Option<HirScalar>,
    pub format: CopyFormat,
    /// None: the client's.
    pub encoding: Option<Encoding>,
    pub file: Option<String>,
}

/// Whether COPY data begins with a line of column names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyHeader {
    No,
    Yes,
    /// It must name the columns that are copied.
    Match,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopyFormat {
    Text { delimiter: u8, null: String, header: CopyHeader },
    Csv { delimiter: u8, null: String, header: CopyHeader, quote: u8, escape: u8, force_quote: Vec<usize>, force_not_null: Vec<usize>, force_null: Vec<usize> },
    Binary,
}

#[derive(Clone, Debug)]
pub struct CreateTablePlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub temporary: bool,
    /// Keys: the primary key first, then unique constraints.
    pub desc: RelDesc,
    /// For each column its default's text.
    pub defaults: Vec<Option<String>>,
    /// For each column the text of what computes it, if it is generated.
    pub generated: Vec<Option<String>>,
    /// Columns with a COLLATE of their own, and its name.
    pub collations: Vec<(usize, String)>,
    /// Name and text.
    pub checks: Vec<(String, String)>,
    /// Sequences to be made for columns.
    pub sequences: Vec<ColumnSequence>,
    /// Those that columns are declared with.
    pub domains: Vec<GlobalId>,
    /// Name, columns, and whether it is the primary key.
    pub unique: Vec<(String, Vec<usize>, bool)>,
    pub foreign: Vec<ForeignPlan>,
    /// Names of those in `unique` with NULLS NOT DISTINCT.
    pub equal_nulls: Vec<String>,
    /// Those in `unique` that INCLUDE columns, and which.
    pub include: Vec<(String, Vec<usize>)>,
    /// Those in `unique` that are DEFERRABLE, and whether INITIALLY DEFERRED.
    pub deferral: Vec<(String, bool)>,
    pub on_commit: OnCommit,
    pub options: Vec<(String, String)>,
    /// LIKE … INCLUDING INDEXES and COMMENTS: what stands beside the definition of the table.
    pub like: Vec<LikePlan>,
}

/// A relation whose indexes or comments a table takes: the place of its first column there.
#[derive(Clone, Debug)]
pub struct LikePlan {
    pub rel: GlobalId,
    pub at: usize,
    pub indexes: bool,
    pub comments: bool,
}

/// A foreign key, with all names resolved.
#[derive(Clone, Debug)]
pub struct ForeignPlan {
    pub name: String,
    pub columns: Vec<usize>,
    /// The table referred to; None: the one that refers.
    pub parent: Option<GlobalId>,
    /// For each of `columns` the column it refers to; together they are a unique key.
    pub parent_columns: Vec<usize>,
    pub full: bool,
    pub on_delete: ForeignAction,
    pub on_update: ForeignAction,
    /// What SET NULL and SET DEFAULT set on delete; empty: all of `columns`.
    pub set_columns: Vec<usize>,
    pub deferrable: bool,
    pub deferred: bool,
}

#[derive(Clone, Debug)]
pub struct CreateTableAsPlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub desc: RelDesc,
    pub query: SelectPlan,
    pub with_data: bool,
    pub on_commit: OnCommit,
}

/// CREATE [MATERIALIZED] VIEW.
#[derive(Clone, Debug)]
pub struct CreateViewPlan {
    pub name: FullName,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub temporary: bool,
    /// What the view stands for; columns are `desc`'s.
    pub hir: Hir,
    pub desc: RelDesc,
    /// The text of its query, relation names fully qualified: what `pg_get_viewdef` shows and what is bound again at start.
    pub query_sql: String,
    /// The whole statement in that form.
    pub create_sql: String,
    pub options: Vec<(String, String)>,
    pub check: Option<crate::catalog::CheckOption>,
    pub depends_on: Vec<GlobalId>,
    /// Tables whose primary key it rests on: it selects columns that GROUP BY does not name.
    pub rests_on: Vec<GlobalId>,
}

#[derive(Clone, Debug)]
pub struct CreateIndexPlan {
    /// None: the system names it after the relation and `words` (`t_a_idx`, `t_primary_idx`).
    pub name: Option<String>,
    pub words: String,
    pub if_not_exists: bool,
    pub on: GlobalId,
    pub on_name: FullName,
    /// Over the relation's row.
    pub keys: Vec<expr::Scalar>,
    /// The text of each key.
    pub key_sql: Vec<String>,
    /// What stands behind each key: operator class, DESC, NULLS FIRST; for how it is shown.
    pub order_sql: Vec<String>,
    pub include: Vec<String>,
    pub filter_sql: Option<String>,
    /// USING hash.
    pub hash: bool,
    /// NULLS NOT DISTINCT.
    pub equal_nulls: bool,
    pub unique: bool,
    pub options: Vec<(String, String)>,
    pub create_sql: String,
}

#[derive(Clone, Debug)]
pub enum TypePlan {
    Enum(Vec<String>),
    Composite(Vec<(String, ColType)>),
    /// With the name of its multirange.
    Range {
        subtype: SqlType,
        multirange: String,
    },
    /// Its OID is not known yet.
    Domain(repr::types::Domain),
}

/// ALTER TYPE and ALTER DOMAIN.
#[derive(Clone, Debug)]
pub struct AlterTypePlan {
    pub kind: ObjectKind,
    pub object: ObjectRef,
    pub change: TypeChange,
}

/// A change to the attributes of a composite type.
#[derive(Clone, Debug)]
pub enum AttributeChange {
    Add(String, ColType),
    Drop { name: String, if_exists: bool },
    Type(String, ColType),
}

#[derive(Clone, Debug)]
pub enum TypeChange {
    Rename(String),
    /// `place`: before (or after) which label; else last.
    AddValue {
        label: String,
        if_not_exists: bool,
        place: Option<(bool, String)>,
    },
    RenameValue {
        from: String,
        to: String,
    },
    RenameAttribute {
        from: String,
        to: String,
    },
    Attributes(Vec<AttributeChange>),
    /// The domain after the change, and whether the values that there are must satisfy it.
    Domain {
        after: repr::types::Domain,
        test: bool,
    },
}

/// A value in an option list.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionPlan {
    Text(String),
    Secret(ObjectRef),
    Connection(ObjectRef),
}

#[derive(Clone, Debug)]
pub struct CreateConnectionPlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub kind: ConnectionKind,
    /// Lower-case names (`broker`, `security protocol`, `host`) in the order written.
    pub options: Vec<(String, OptionPlan)>,
    /// WITH (VALIDATE = false).
    pub validate: Option<bool>,
    pub create_sql: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    Kafka,
    SchemaRegistry,
    Postgres,
    MySql,
}

#[derive(Clone, Debug)]
pub struct CreateSinkPlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub from: GlobalId,
    pub desc: RelDesc,
    pub kind: ConnectionKind,
    pub connection: ObjectRef,
    pub options: Vec<(String, OptionPlan)>,
    pub key: Vec<usize>,
    pub key_format: Option<FormatPlan>,
    pub format: Option<FormatPlan>,
    /// `upsert`, `debezium`.
    pub envelope: Option<String>,
    pub with: Vec<(String, String)>,
    pub create_sql: String,
}

#[derive(Clone, Debug)]
pub struct DropPlan {
    pub kind: ObjectKind,
    /// Objects that exist.
    pub objects: Vec<ObjectRef>,
    /// For DROP SCHEMA and DROP DATABASE, whose ids only the catalog knows.
    pub names: Vec<String>,
    pub cascade: bool,
    /// One for each name that was not there (IF EXISTS).
    pub notices: Vec<SqlError>,
}

#[derive(Clone, Debug)]
pub struct ShowPlan {
    pub kind: ShowKind,
    /// IN schema.
    pub schema: Option<String>,
    /// SHOW COLUMNS FROM, SHOW INDEXES ON.
    pub relation: Option<ObjectRef>,
    pub like: Option<String>,
    pub desc: RelDesc,
}

#[derive(Clone, Debug)]
pub struct ExplainPlan {
    pub stage: crate::ast::ExplainStage,
    pub analyze: bool,
    /// `text` or `json`, and flags as written.
    pub options: Vec<(String, String)>,
    pub target: ExplainPlanTarget,
}

#[derive(Clone, Debug)]
pub enum ExplainPlanTarget {
    Plan(Box<Plan>),
    /// An object's own plan.
    Object(ObjectRef),
}

/// What `describe` answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    pub params: Vec<SqlType>,
    /// None for statements that return no rows, and for EXECUTE and FETCH, whose result the session knows.
    pub result: Option<RelDesc>,
    /// Of a SELECT, for each column of the result the relation's column that it is; views are looked through.
    pub origins: Vec<Option<(GlobalId, usize)>>,
    /// The relations and other objects that it names, views among them.
    pub depends_on: Vec<GlobalId>,
}

/// ALTER TABLE: the changes as written; the table's owner binds them one after the other ([`super::alter`]).
#[derive(Clone, Debug)]
pub struct AlterTablePlan {
    pub table: ObjectRef,
    pub actions: Vec<crate::ast::TableAction>,
    /// What spans in the actions count in.
    pub statement: ParsedStatement,
}

/// A sequence that a column brings.
#[derive(Clone, Debug)]
pub struct ColumnSequence {
    pub column: usize,
    /// None: serial; else GENERATED ALWAYS (true) or BY DEFAULT.
    pub identity: Option<bool>,
    pub spec: crate::catalog::SequenceSpec,
    pub name: Option<FullName>,
}

#[derive(Clone, Debug)]
pub struct CreateSequencePlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub spec: crate::catalog::SequenceSpec,
    /// OWNED BY: table and column.
    pub owner: Option<(GlobalId, usize)>,
}

#[derive(Clone, Debug)]
pub struct AlterSequencePlan {
    pub sequence: ObjectRef,
    pub options: crate::ast::SequenceOptions,
    /// AS.
    pub ty: Option<SqlType>,
    pub owner: Option<Option<(GlobalId, usize)>>,
}

/// What COMMENT ON is about.
#[derive(Clone, Debug)]
pub enum Commented {
    Object {
        kind: ObjectKind,
        object: ObjectRef,
    },
    Column {
        object: ObjectRef,
        column: usize,
    },
    /// Of a table or a domain.
    Constraint {
        object: ObjectRef,
        name: String,
    },
    /// The index of a key, which is no object of its own: its OID.
    KeyIndex(u32),
    Schema(String),
    /// Not there: a warning tells it.
    Database {
        name: String,
        exists: bool,
    },
}
