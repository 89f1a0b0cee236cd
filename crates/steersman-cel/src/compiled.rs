//! A checked expression: what it may cost, and the program to be made of it.

use crate::checker::{Checked, Reference, check};
use crate::env::Env;
use crate::estimate::{Estimate, estimate};
use crate::parser::parse;
use crate::program::Program;
use crate::selection;
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

    /// Whether it looks at a field of a variable.
    #[must_use]
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        selection::selects(&self.checked.ast.root, variable, field)
    }

    /// The expression as text again, macros written as macros.
    #[must_use]
    pub fn unparsed(&self) -> String {
        crate::print::print(&self.checked.ast.root)
    }
}
