//! Match conditions: expressions over a request that say whether a webhook is asked about it.

use steersman_cel::Program;

use crate::admission_policy::Compiler;
pub use crate::admission_policy::{
    AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, REQUEST, REQUEST_RESOURCE,
};

/// Reads a condition; says why it is none.
pub fn compile(expression: &str) -> Result<Program, String> {
    Compiler::new(false).condition(expression)
}
