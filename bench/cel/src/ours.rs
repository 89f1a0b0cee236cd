//! Steersman's.

use serde_json::Value;
use steersman_cel::{Activation, Budget, Env, Shape};

use crate::measure::{System, Times, timed};
use crate::object::schema;

pub(crate) struct Ours {
    env: Env,
}

impl Ours {
    pub(crate) fn new() -> Result<Self, String> {
        let shape = Shape::of_schema(&schema(), "Shop", false).ok_or("a schema without a shape")?;
        Ok(Self { env: Env::kubernetes().variable("self", shape) })
    }
}

impl System for Ours {
    fn name(&self) -> &'static str {
        "steersman"
    }

    fn measure(&mut self, rule: &str, object: &Value) -> Result<Times, String> {
        let ready = timed(|| {
            let checked = self.env.check(rule).map_err(|issues| issues.to_string())?;
            // A definition is refused by it, so it belongs to the work.
            std::hint::black_box(checked.estimate());
            checked.program().map(drop).map_err(|issues| issues.to_string())
        })?;
        let program = self.env.compile(rule).map_err(|issues| issues.to_string())?;
        let run = timed(|| {
            let outcome =
                program.evaluate(&Activation::new().json("self", object), Budget::default());
            match outcome.value.map_err(|error| format!("{error:?}"))?.as_bool() {
                Some(true) => Ok(()),
                _ => Err("it does not hold".to_owned()),
            }
        })?;
        Ok(Times { ready, run })
    }
}
