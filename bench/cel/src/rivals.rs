//! The crates `cel` and `cel-core`: neither knows a schema nor a cost.

use std::sync::Arc;

use cel_core::{CelType, MapActivation, MapKey, ValueMap};
use serde_json::Value;

use crate::measure::{System, Times, timed};

pub(crate) struct Cel;

impl System for Cel {
    fn name(&self) -> &'static str {
        "cel"
    }

    fn measure(&mut self, rule: &str, object: &Value) -> Result<Times, String> {
        let env = Arc::new(cel::Env::stdlib());
        let ready = timed(|| cel::Program::compile(rule).map(drop).map_err(|e| e.to_string()))?;
        let program = cel::Program::compile(rule).map_err(|errors| errors.to_string())?;
        let run = timed(|| {
            let mut context = cel::Context::with_env(Arc::clone(&env));
            let value = cel::to_value(object).map_err(|error| error.to_string())?;
            context.add_variable_from_value("self", value);
            match program.execute(&context).map_err(|error| error.to_string())? {
                cel::Value::Bool(true) => Ok(()),
                other => Err(format!("it gave {other:?}")),
            }
        })?;
        Ok(Times { ready, run })
    }
}

pub(crate) struct CelCore {
    env: cel_core::Env,
}

impl CelCore {
    pub(crate) fn new() -> Self {
        Self { env: cel_core::Env::with_standard_library().with_variable("self", CelType::Dyn) }
    }

    fn program(&self, rule: &str) -> Result<cel_core::Program, String> {
        let ast = self.env.compile(rule).map_err(|error| format!("{error:?}"))?;
        self.env.program(&ast).map_err(|error| format!("{error:?}"))
    }
}

impl System for CelCore {
    fn name(&self) -> &'static str {
        "cel-core"
    }

    fn measure(&mut self, rule: &str, object: &Value) -> Result<Times, String> {
        let ready = timed(|| self.program(rule).map(drop))?;
        let program = self.program(rule)?;
        let run = timed(|| {
            let mut activation = MapActivation::new();
            activation.insert("self", converted(object));
            match program.eval(&activation) {
                cel_core::Value::Bool(true) => Ok(()),
                other => Err(format!("it gave {other:?}")),
            }
        })?;
        Ok(Times { ready, run })
    }
}

/// It has no way from JSON of its own.
fn converted(value: &Value) -> cel_core::Value {
    match value {
        Value::Null => cel_core::Value::Null,
        Value::Bool(truth) => cel_core::Value::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => cel_core::Value::Int(whole),
            None => cel_core::Value::Double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => cel_core::Value::String(text.as_str().into()),
        Value::Array(items) => cel_core::Value::List(items.iter().map(converted).collect()),
        Value::Object(fields) => {
            let entries = fields
                .iter()
                .map(|(name, value)| (MapKey::String(name.as_str().into()), converted(value)));
            cel_core::Value::Map(Arc::new(ValueMap::from_entries(entries)))
        }
    }
}
