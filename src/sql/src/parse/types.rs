//! Type names.

use super::cursor::Parser;
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

/// Keywords that begin a type with its own syntax.
pub fn is_type_keyword(w: &str) -> bool {
    matches!(
        w,
        "int"
            | "integer"
            | "smallint"
            | "bigint"
            | "real"
            | "float"
            | "decimal"
            | "dec"
            | "numeric"
            | "boolean"
            | "bit"
            | "character"
            | "char"
            | "varchar"
            | "national"
            | "nchar"
            | "timestamp"
            | "time"
            | "interval"
            | "setof"
    )
}

impl TypeName {
    pub fn named(names: Vec<String>, pos: Pos) -> TypeName {
        TypeName { names, modifiers: Vec::new(), dims: 0, lists: 0, map_of: None, setof: false, collation: None, pos }
    }
    /// One of Postgres's own types by its `pg_type` name.
    pub fn system(name: &str, pos: Pos) -> TypeName {
        TypeName::named(vec!["pg_catalog".into(), name.into()], pos)
    }
}

impl Parser<'_> {
    /// A type, and COLLATE behind it.
    pub fn collated_type(&mut self) -> Result<TypeName, SqlError> {
        let mut ty = self.type_name()?;
        let pos = self.pos();
        if self.eat_kw("collate") {
            self.collation_of(&mut ty, pos)?;
        }
        Ok(ty)
    }

    /// The name behind COLLATE (at `pos`) of a type. Errors: 42601 for a second one.
    pub(super) fn collation_of(&mut self, ty: &mut TypeName, pos: Pos) -> Result<(), SqlError> {
        if ty.collation.replace(self.object_name()?).is_some() {
            return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, "multiple COLLATE clauses not allowed").at(pos));
        }
        Ok(())
    }

    pub fn type_name(&mut self) -> Result<TypeName, SqlError> {
        let setof = self.eat_kw("setof");
        let mut ty = self.simple_type()?;
        ty.setof = setof;
        if self.eat_kw("array") {
            ty.dims = 1;
            if self.eat_punct("[") {
                self.integer()?;
                self.expect_punct("]")?;
            }
            return Ok(ty);
        }
        while self.is_punct("[") && (self.is_punct_at(1, "]") || (matches!(self.tok_at(1), Tok::Number(_)) && self.is_punct_at(2, "]"))) {
            self.next();
            if !self.is_punct("]") {
                self.integer()?;
            }
            self.expect_punct("]")?;
            ty.dims += 1;
        }
        while ty.dims == 0 && self.is_kw("list") {
            self.next();
            ty.lists += 1;
        }
        Ok(ty)
    }

    /// A type without array bounds.
    pub fn simple_type(&mut self) -> Result<TypeName, SqlError> {
        let pos = self.pos();
        let system = |name: &str| TypeName::system(name, pos);
        if let Tok::Word(w) = self.tok().clone() {
            let simple = match w.as_str() {
                "int" | "integer" => Some("int4"),
                "smallint" => Some("int2"),
                "bigint" => Some("int8"),
                "real" => Some("float4"),
                "boolean" => Some("bool"),
                _ => None,
            };
            if let Some(name) = simple {
                self.next();
                return Ok(system(name));
            }
            match w.as_str() {
                "float" => {
                    self.next();
                    let mut name = "float8";
                    if self.is_punct("(") {
                        match self.parens(Self::integer)? {
                            0 => {
                                return Err(
                                    SqlError::new(repr::error::state::INVALID_PARAMETER_VALUE, "precision for type float must be at least 1 bit").at(pos)
                                )
                            }
                            1..=24 => name = "float4",
                            25..=53 => {}
                            _ => {
                                return Err(
                                    SqlError::new(repr::error::state::INVALID_PARAMETER_VALUE, "precision for type float must be less than 54 bits").at(pos)
                                )
                            }
                        }
                    }
                    return Ok(system(name));
                }
                "double" if self.is_kw_at(1, "precision") => {
                    self.next();
                    self.next();
                    return Ok(system("float8"));
                }
                "decimal" | "dec" | "numeric" => {
                    self.next();
                    let modifiers = self.modifiers()?;
                    return Ok(TypeName { modifiers, ..system("numeric") });
                }
                "bit" => {
                    self.next();
                    let name = if self.eat_kw("varying") { "varbit" } else { "bit" };
                    let mut modifiers = self.modifiers()?;
                    if name == "bit" && modifiers.is_empty() {
                        // bit alone is bit(1).
                        modifiers.push(Expr::new(ExprKind::Number("1".into()), pos));
                    }
                    return Ok(TypeName { modifiers, ..system(name) });
                }
                "character" | "char" | "nchar" | "national" | "varchar" => return self.character_type(&w, pos),
                "timestamp" | "time" => {
                    self.next();
                    let modifiers = self.length()?;
                    let zoned = if self.is_kws(&["with", "time", "zone"]) {
                        self.expect_kws(&["with", "time", "zone"])?;
                        true
                    } else {
                        self.eat_kws(&["without", "time", "zone"]);
                        false
                    };
                    return Ok(TypeName { modifiers, ..system(&if zoned { format!("{w}tz") } else { w }) });
                }
                "interval" => {
                    self.next();
                    let mut modifiers = self.length()?;
                    if modifiers.is_empty() {
                        modifiers = self.interval_fields()?;
                    } else {
                        modifiers.insert(0, Expr::new(ExprKind::Number("32767".into()), pos));
                    }
                    return Ok(TypeName { modifiers, ..system("interval") });
                }
                "map" if self.is_punct_at(1, "[") => {
                    self.next();
                    self.next();
                    self.type_name()?;
                    self.expect_punct("=>")?;
                    let value = self.type_name()?;
                    self.expect_punct("]")?;
                    return Ok(TypeName { map_of: Some(Box::new(value)), ..TypeName::named(vec!["map".into()], pos) });
                }
                _ => {}
            }
        }
        if !self.is_func_name() {
            return Err(self.error());
        }
        let mut names = vec![self.col_label()?.name];
        while self.is_punct(".") {
            self.next();
            names.push(self.col_label()?.name);
        }
        if self.is_op("%") && self.is_kw_at(1, "type") {
            return Err(SqlError::unsupported("%TYPE", "write the type's name"));
        }
        let modifiers = self.modifiers()?;
        Ok(TypeName { modifiers, ..TypeName::named(names, pos) })
    }

    fn character_type(&mut self, w: &str, pos: Pos) -> Result<TypeName, SqlError> {
        self.next();
        if w == "national" && !self.eat_kw("character") && !self.eat_kw("char") {
            return Err(self.error());
        }
        let varying = w == "varchar" || self.eat_kw("varying");
        let mut modifiers = self.length()?;
        if !varying && modifiers.is_empty() {
            // char alone is char(1).
            modifiers.push(Expr::new(ExprKind::Number("1".into()), pos));
        }
        Ok(TypeName { modifiers, ..TypeName::system(if varying { "varchar" } else { "bpchar" }, pos) })
    }

    /// The one modifier of types with their own syntax, which is a plain integer.
    fn length(&mut self) -> Result<Vec<Expr>, SqlError> {
        if !self.eat_punct("(") {
            return Ok(Vec::new());
        }
        let pos = self.pos();
        let n = match self.tok() {
            Tok::Number(n) if n.parse::<i32>().is_ok() => n.clone(),
            _ => return Err(self.error()),
        };
        self.next();
        self.expect_punct(")")?;
        Ok(vec![Expr::new(ExprKind::Number(n), pos)])
    }

    fn modifiers(&mut self) -> Result<Vec<Expr>, SqlError> {
        if self.is_punct("(") {
            return self.parens(Self::expr_list);
        }
        Ok(Vec::new())
    }

    /// YEAR TO MONTH, DAY, SECOND(3), …: the mask and precision that `intervaltypmodin` takes.
    pub fn interval_fields(&mut self) -> Result<Vec<Expr>, SqlError> {
        const ORDER: [(&str, i32); 6] = [("year", 2), ("month", 1), ("day", 3), ("hour", 10), ("minute", 11), ("second", 12)];
        let pos = self.pos();
        let field = |p: &Self| match p.tok() {
            Tok::Word(w) => ORDER.iter().position(|o| o.0 == w),
            _ => None,
        };
        let Some(first) = field(self) else { return Ok(Vec::new()) };
        self.next();
        let mut last = first;
        if self.is_kw("to") {
            let mark = self.mark();
            self.next();
            match field(self) {
                Some(to) if to > first && (first > 0 || to == 1) && first != 1 => {
                    self.next();
                    last = to;
                }
                _ => {
                    self.reset(mark);
                    return Err(self.error());
                }
            }
        }
        let mask: i32 = ORDER[first..=last].iter().map(|o| 1 << o.1).sum();
        let mut out = vec![Expr::new(ExprKind::Number(mask.to_string()), pos)];
        if last == 5 && self.is_punct("(") {
            let n = self.parens(Self::integer)?;
            out.push(Expr::new(ExprKind::Number(n.to_string()), pos));
        }
        Ok(out)
    }
}
