//! Whether an expression looks at a field of a variable, wherever in it that is.

use crate::ast::{Expr, Kind, Literal};

/// Whether `variable.field`, `variable.?field` or `has(variable.field)` stands anywhere below a node.
pub(crate) fn selects(root: &Expr, variable: &str, field: &str) -> bool {
    let mut open = vec![root];
    while let Some(expr) = open.pop() {
        if is_selection(expr, variable, field) {
            return true;
        }
        push_children(expr, &mut open);
    }
    false
}

fn is_selection(expr: &Expr, variable: &str, field: &str) -> bool {
    match &expr.kind {
        Kind::Select(select) => {
            &*select.field == field && select.operand.as_ident() == Some(variable)
        }
        Kind::Call(call) if &*call.function == "_?._" => match call.args.as_slice() {
            [operand, Expr { kind: Kind::Literal(Literal::String(name)), .. }] => {
                &**name == field && operand.as_ident() == Some(variable)
            }
            _ => false,
        },
        _ => false,
    }
}

fn push_children<'a>(expr: &'a Expr, open: &mut Vec<&'a Expr>) {
    match &expr.kind {
        Kind::Unreadable | Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select(select) => open.push(&select.operand),
        Kind::Call(call) => open.extend(call.target.iter().chain(&call.args)),
        Kind::List(elements) => open.extend(elements.iter().map(|element| &element.value)),
        Kind::Map(entries) => {
            open.extend(entries.iter().flat_map(|entry| [&entry.key, &entry.value]));
        }
        Kind::Struct(made) => open.extend(made.fields.iter().map(|field| &field.value)),
        Kind::Comprehension(of) => {
            open.extend([&of.range, &of.init, &of.condition, &of.step, &of.result]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Env, Shape, ShapeKind};

    #[test]
    fn a_field_is_found_wherever_an_expression_looks_at_it() {
        let env = Env::kubernetes().variable("claims", Shape::map(Shape::new(ShapeKind::Dyn)));
        for (text, expected) in [
            ("claims.email", true),
            ("claims.?email.orValue('')", true),
            ("has(claims.email) ? 'a' : 'b'", true),
            ("['x'].all(x, x == claims.email)", true),
            ("{'a': [claims.email.size()]}", true),
            ("claims.email_verified", false),
            ("claims.other.email", false),
            ("'claims.email'", false),
        ] {
            let compiled = env.check(text).unwrap();
            assert_eq!(compiled.selects("claims", "email"), expected, "{text}");
        }
    }
}
