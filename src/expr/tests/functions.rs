//! Functions as SQL calls them, results as PostgreSQL prints them.

use expr::{catalog, eval_const, func, EvalCtx, Scalar};
use repr::{text, SqlType, Value};

/// Calls the function of this name whose arguments have these types; arguments and result in text form (`-` is NULL).
fn call(name: &str, types: &[&str], args: &[&str]) -> String {
    let ctx = EvalCtx::default();
    let style = ctx.text_style();
    let tys: Vec<SqlType> = types.iter().map(|t| SqlType::from_pg_name(t).expect("type")).collect();
    let oids: Vec<u32> = tys.iter().map(SqlType::oid).collect();
    let p = catalog::procs_by_name(name).find(|p| p.args == oids || (p.variadic != 0 && p.args.len() <= oids.len())).expect("function");
    let f = func::by_oid(p.oid).unwrap_or_else(|| panic!("{name} is not implemented"));
    let ret = SqlType::from_oid(p.ret).expect("result type");
    let values = args.iter().zip(&tys).map(|(a, t)| match *a {
        "-" => Scalar::null(t.clone()),
        a => Scalar::literal(text::from_text(a, t, -1, &style).expect("argument"), t.clone()),
    });
    let e = Scalar::Call { func: f, args: values.collect(), ty: ret.clone().nullable() };
    match eval_const(&e, &ctx) {
        Ok(Value::Null) => "-".into(),
        Ok(v) => text::to_text(&v, &ret, &style),
        Err(e) => format!("{:?} {}", e.code, e.message),
    }
}

#[test]
fn text_functions() {
    let t = |name, args: &[&str]| call(name, &vec!["text"; args.len()], args);
    assert_eq!(call("substr", &["text", "int4", "int4"], &["hello", "0", "3"]), "he");
    assert_eq!(call("substr", &["text", "int4", "int4"], &["hello", "2", "-1"]), "22011 negative substring length not allowed");
    assert_eq!(call("split_part", &["text", "text", "int4"], &["a,b,c", ",", "-1"]), "c");
    assert_eq!(call("lpad", &["text", "int4", "text"], &["Ünï", "5", "xy"]), "xyÜnï");
    assert_eq!(t("initcap", &["hello wORLD foo_bar x1y"]), "Hello World Foo_Bar X1y");
    assert_eq!(t("upper", &["ß"]), "ß");
    assert_eq!(t("concat_ws", &[",", "a", "-", "b"]), "a,b");
    assert_eq!(t("format", &["%2$s %1$-4s|%1$I %2$L", "a b", "b'c"]), "b'c a b |\"a b\" 'b''c'");
    assert_eq!(t("format", &["%s %s", "a"]), "22023 too few arguments for format()");
}

#[test]
fn patterns() {
    let like = |s: &str, p: &str| call("textlike", &["text", "text"], &[s, p]);
    assert_eq!(like("héllo", "h_l%o"), "t");
    assert_eq!(like("a%c", "a\\%c"), "t");
    assert_eq!(like("ab", "ab\\"), "f");
    assert_eq!(like("abc", "ab\\"), "22025 LIKE pattern must not end with escape character");
    let re = |s: &str, p: &str| call("regexp_match", &["text", "text"], &[s, p]);
    assert_eq!(re("foobar", "foo|foobar"), "{foobar}");
    assert_eq!(re("XY1234Z", "Y*?([0-9]{1,3})"), "{1}");
    assert_eq!(re("XY1234Z", "Y*([0-9]{1,3})"), "{123}");
    assert_eq!(re("abcd", "(ab?)(bcd)?"), "{a,bcd}");
    assert_eq!(re("abc", "("), "2201B invalid regular expression: parentheses () not balanced");
    let rep = |s: &str, p: &str, w: &str| call("regexp_replace", &["text", "text", "text", "text"], &[s, p, w, "g"]);
    assert_eq!(rep("abc", "", "_"), "_a_b_c_");
    assert_eq!(rep("2024-01-15", "(\\d+)-(\\d+)", "\\2/\\1"), "01/2024-15");
    assert_eq!(call("substring", &["text", "text", "text"], &["hello", "%#\"l+#\"%", "#"]), "ll");
    assert_eq!(call("regexp_split_to_array", &["text", "text"], &["the fox", "\\s*"]), "{t,h,e,f,o,x}");
}

#[test]
fn json_paths() {
    let doc = "{\"a\": 1, \"b\": [1, null, \"x\"]}";
    let all = |path: &str| call("jsonb_path_query_array", &["jsonb", "jsonpath", "jsonb", "bool"], &[doc, path, "{\"n\": 0}", "f"]);
    assert_eq!(all("$.b[*] ? (@ > $n)"), "[1]");
    assert_eq!(all("$.b.size()"), "[3]");
    assert_eq!(all("$.**{last}"), "[1, 1, null, \"x\"]");
    assert_eq!(all("strict $.z"), "2203A JSON object does not contain key \"z\"");
    assert_eq!(all("$.b[last - 2 to last] ? (@ == null || @ starts with \"x\")"), "[null, \"x\"]");
    assert_eq!(all("$.a + \"x\""), "22038 right operand of jsonpath operator + is not a single numeric value");
    assert_eq!(all("($.a > \"x\") is unknown"), "[true]");
}
