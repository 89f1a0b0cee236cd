//! A checked expression: what it may cost, and the program to be made of it.

use crate::ast::{Expr, Kind, Literal};
use crate::checker::{Checked, Reference, check};
use crate::env::Env;
use crate::estimate::{Estimate, estimate};
use crate::parser::parse;
use crate::program::Program;
use crate::shape::Type;
use crate::source::Issues;

/// An expression that was read and checked.
#[derive(Debug)]
pub struct Compiled<'e> {
    checked: Checked,
    env: &'e Env,
    text: Box<str>,
}

impl Env {
    /// Reads and checks an expression.
    pub fn check(&self, text: &str) -> Result<Compiled<'_>, Issues> {
        let ast = parse(text, self.syntax)?;
        let checked = check(text, ast, self)?;
        Ok(Compiled::new(checked, self, text))
    }

    /// Reads and checks an expression and makes it ready to run.
    pub fn compile(&self, text: &str) -> Result<Program, Issues> {
        self.check(text)?.program()
    }
}

impl<'e> Compiled<'e> {
    fn new(checked: Checked, env: &'e Env, text: &str) -> Self {
        Self { checked, env, text: text.into() }
    }

    /// The type of its value.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        self.checked.ty(&self.checked.ast.root)
    }

    /// What an evaluation costs at least and at most, from the sizes that shapes declare.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        estimate(&self.checked, self.env)
    }

    /// Makes it ready to run.
    pub fn program(&self) -> Result<Program, Issues> {
        Program::new(&self.checked, self.env, &self.text)
    }

    /// The names of the variables that it uses.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.checked
            .references
            .values()
            .any(|reference| matches!(reference, Reference::Variable(name) if &**name == variable))
    }

    /// Whether it reads this field of this variable, as `variable.field` or `variable.?field`.
    #[must_use]
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        selects(&self.checked.ast.root, variable, field)
    }

    /// The expression as text again, macros written as macros.
    #[must_use]
    pub fn unparsed(&self) -> String {
        crate::print::print(&self.checked.ast.root)
    }
}

fn selects(expr: &Expr, variable: &str, field: &str) -> bool {
    let below = |expr: &Expr| selects(expr, variable, field);
    let is_variable = |expr: &Expr| matches!(&expr.kind, Kind::Ident(name) if &**name == variable);
    let is_field = |expr: &Expr| matches!(&expr.kind, Kind::Literal(Literal::String(name)) if &**name == field);
    match &expr.kind {
        Kind::Unreadable | Kind::Literal(_) | Kind::Ident(_) => false,
        Kind::Select(select) => {
            is_variable(&select.operand) && &*select.field == field || below(&select.operand)
        }
        Kind::Call(call) => {
            let optional = matches!(&*call.args, [operand, name]
                if &*call.function == "_?._" && is_variable(operand) && is_field(name));
            optional || call.target.iter().chain(&call.args).any(below)
        }
        Kind::List(elements) => elements.iter().any(|element| below(&element.value)),
        Kind::Map(entries) => entries.iter().any(|entry| below(&entry.key) || below(&entry.value)),
        Kind::Struct(made) => made.fields.iter().any(|field| below(&field.value)),
        Kind::Comprehension(all) => {
            [&all.range, &all.init, &all.condition, &all.step, &all.result].into_iter().any(below)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Env, Shape, ShapeKind};

    #[test]
    fn an_expression_tells_which_fields_of_a_variable_it_reads() {
        let env = Env::kubernetes().variable("claims", Shape::map(Shape::new(ShapeKind::Dyn)));
        for (text, expected) in [
            ("claims.email", true),
            ("claims.?email.orValue('')", true),
            ("has(claims.email) ? 'a' : 'b'", true),
            ("[claims.email.lowerAscii()]", true),
            ("{'a': claims.email}", true),
            ("['a'].exists(x, x == claims.email)", true),
            ("claims.email_verified", false),
            ("claims.other.email", false),
            ("'claims.email'", false),
            ("claims['email']", false), // as in Kubernetes
        ] {
            assert_eq!(env.check(text).unwrap().selects("claims", "email"), expected, "{text}");
        }
    }
}
