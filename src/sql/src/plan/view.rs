//! CREATE VIEW and the options of views.

use super::statement::{once, plain_options, quote_ident, read_only};
use super::*;
use crate::ast::{self, ObjectName};
use crate::catalog::{CheckOption, ObjectRef};
use crate::parse::ParsedStatement;

impl Binder<'_> {
    pub fn create_view(&self, p: &ParsedStatement, v: &ast::CreateView) -> Result<Plan, SqlError> {
        let name = self.new_name(&v.name)?;
        read_only(
            &v.query,
            match v.materialized {
                true => "materialized views must not use data-modifying statements in WITH",
                false => "views must not contain data-modifying statements in WITH",
            },
        )?;
        if !v.materialized && matches!(&v.query.body, ast::QueryBody::Select(s) if s.into.is_some()) {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "views must not contain SELECT INTO"));
        }
        let plan = self.select_plan(&v.query).map_err(|e| match e.code {
            state::UNDEFINED_PARAMETER if v.materialized && self.params.borrow().values.is_none() => {
                SqlError::new(state::FEATURE_NOT_SUPPORTED, "materialized views may not be defined using bound parameters")
            }
            _ => e,
        })?;
        if plan.as_of.is_some() {
            return Err(SqlError::unsupported("AS OF in a view", "give the time in the query that reads it"));
        }
        let mut desc = plan.desc.clone();
        let too_many = if v.materialized { "too many column names were specified" } else { "CREATE VIEW specifies more column names than columns" };
        self.rename_columns(&mut desc, &v.columns, too_many)?;
        self.distinct_names(&desc)?;
        self.check_column_types(&desc)?;
        let depends_on = plan.depends_on.clone();
        let rests_on = self.rests_on.borrow().iter().copied().collect();
        let hir = plan.into_relation();
        if v.materialized && v.temporary {
            return Err(SqlError::new(state::SYNTAX_ERROR, "materialized views may not be temporary"));
        }
        let mut options = plain_options(&v.options);
        let check = self.check_option(v, &mut options)?;
        once(if v.materialized { "option" } else { "parameter" }, &v.options)?;
        let query_sql = self.qualified_text(p, v.query.span, v.query.pos);
        let columns =
            if v.columns.is_empty() { String::new() } else { format!(" ({})", v.columns.iter().map(|c| quote_ident(&c.name)).collect::<Vec<_>>().join(", ")) };
        let kind = if v.materialized { "MATERIALIZED VIEW" } else { "VIEW" };
        let checked = match check {
            Some(CheckOption::Local) => " WITH LOCAL CHECK OPTION",
            Some(CheckOption::Cascaded) => " WITH CASCADED CHECK OPTION",
            None => "",
        };
        let create_sql = format!("CREATE {kind} {}.{}{columns} AS {query_sql}{checked}", quote_ident(&name.schema), quote_ident(&name.name));
        let plan = Box::new(CreateViewPlan {
            name,
            or_replace: v.or_replace,
            if_not_exists: v.if_not_exists,
            temporary: v.temporary,
            hir,
            desc,
            query_sql,
            create_sql,
            options,
            check,
            depends_on,
            rests_on,
        });
        Ok(if v.materialized { Plan::CreateMaterializedView(plan) } else { Plan::CreateView(plan) })
    }

    /// WITH CHECK OPTION, as a clause or among the options. Errors: 0A000 for a view that cannot be written through, with PostgreSQL's hint.
    fn check_option(&self, v: &ast::CreateView, options: &mut Vec<(String, String)>) -> Result<Option<CheckOption>, SqlError> {
        let mut check = v.check.map(str::to_owned);
        if let (Some(i), false) = (options.iter().position(|o| o.0 == "check_option"), v.materialized) {
            if check.is_some() {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "parameter \"check_option\" specified more than once"));
            }
            check = Some(options.remove(i).1.to_ascii_lowercase());
        }
        check.map(|c| self.checked(&c, &v.query)).transpose()
    }

    /// The option of this name, over a view's query.
    fn checked(&self, option: &str, query: &ast::Query) -> Result<CheckOption, SqlError> {
        let check = match option {
            "local" => CheckOption::Local,
            "cascaded" => CheckOption::Cascaded,
            other => {
                let e = SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for enum option \"check_option\": {other}"));
                return Err(e.with_detail("Valid values are \"local\" and \"cascaded\"."));
            }
        };
        match self.why_not_updatable(query) {
            None => Ok(check),
            Some(why) => {
                let m = "WITH CHECK OPTION is supported only on automatically updatable views";
                Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m).with_hint(why))
            }
        }
    }

    /// ALTER VIEW SET, or RESET where an option has no value. Errors: 22023 for options that a view does not have.
    pub(super) fn alter_view_options(&self, name: &ObjectName, view: ObjectRef, options: Vec<(String, Option<String>)>) -> Result<Plan, SqlError> {
        let rel = self.named_relation(name)?;
        let Some(def) = &rel.view else { return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a view", rel.name.name))) };
        let (mut check, mut flags) = (def.check, Vec::new());
        for (option, value) in options {
            if option == "check_option" {
                check = value.map(|v| self.checked(&v.to_ascii_lowercase(), &crate::parse::parse_query(&def.query)?)).transpose()?;
                continue;
            }
            view_flag(&option, value.as_deref())?;
            flags.push((option, value));
        }
        Ok(Plan::AlterViewOptions { view, check, flags })
    }
}

/// Tests an option of a view that says who may see what. All may see all here, so that it changes nothing. Errors: 22023.
pub fn view_flag(name: &str, value: Option<&str>) -> Result<(), SqlError> {
    if !matches!(name, "security_barrier" | "security_invoker") {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized parameter \"{name}\"")));
    }
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1" | "yes" | "t" | "y" | "false" | "off" | "0" | "no" | "f" | "n") => Ok(()),
        Some(other) => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for boolean option \"{name}\": {other}"))),
    }
}
