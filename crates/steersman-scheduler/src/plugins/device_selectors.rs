//! Expressions that select devices.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};
use steersman_cel::{
    Activation, Budget, Env, Error, Extension, Fields, Library, Map, ObjectShape, Program, Text,
    Type, Value, Version,
};
use steersman_values::Quantity;

/// So many expressions are kept; classes have few, and claims of one kind share theirs.
const KEPT_MAX: usize = 256;

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let by_domain = |of: Type| Type::map(Type::String, Type::map(Type::String, of));
    let fields = [
        ("driver", Type::String),
        ("allowMultipleAllocations", Type::Bool),
        ("attributes", by_domain(Type::Dyn)),
        ("capacity", by_domain(Type::named("kubernetes.Quantity"))),
    ];
    let fields = fields.into_iter().map(|(name, ty)| (name.to_owned(), ty));
    Env::kubernetes_with(&[Library::Bindings])
        .object_variable("device", ObjectShape::of_types("kubernetes.DRADevice", fields))
});

/// What was compiled before.
#[derive(Debug, Default)]
pub(crate) struct Selectors(Mutex<HashMap<String, Arc<Compiled>>>);

/// An expression, or what is wrong with it.
pub(super) type Compiled = Result<Program, String>;

impl Selectors {
    /// An expression, ready to be asked.
    pub(super) fn get(&self, expression: &str) -> Arc<Compiled> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(expression) {
            return Arc::clone(compiled);
        }
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        let compiled = Arc::new(compile(expression));
        known.insert(expression.to_owned(), Arc::clone(&compiled));
        compiled
    }
}

fn compile(expression: &str) -> Compiled {
    let checked =
        ENV.check(expression).map_err(|issues| format!("compilation failed: {issues}"))?;
    let ty = checked.result_type();
    if !matches!(ty, Type::Bool | Type::Dyn) {
        return Err(format!("must evaluate to bool or the unknown type, not {}", ty.name()));
    }
    checked.program().map_err(|issues| format!("compilation failed: {issues}"))
}

/// Whether an expression is true of a device of a driver; otherwise why that cannot be said.
pub(super) fn is_true(program: &Program, driver: &str, device: &Device) -> Result<bool, String> {
    let seen = Seen { driver, device };
    let activation = Activation::new().fields("device", &seen);
    let value = program.evaluate(&activation, Budget::default()).value;
    let value = value.map_err(|error| error.to_string())?;
    value.as_bool().ok_or_else(|| {
        let ty = value.type_of();
        format!("CEL result of type {} could not be converted to bool", ty.name())
    })
}

/// A device as expressions see it.
struct Seen<'a> {
    driver: &'a str,
    device: &'a Device,
}

impl<'a> Fields<'a> for Seen<'a> {
    fn field(&'a self, name: &str) -> Option<Result<Value<'a>, Error>> {
        Some(match name {
            "driver" => Ok(text(self.driver)),
            "allowMultipleAllocations" => {
                Ok(Value::Bool(self.device.allow_multiple_allocations.unwrap_or_default()))
            }
            "attributes" => {
                let attributes = self.device.attributes.iter().flatten();
                self.by_domain(attributes.map(|(name, it)| (name, attribute(name, it))))
            }
            "capacity" => {
                let capacity = self.device.capacity.iter().flatten();
                self.by_domain(capacity.map(|(name, it)| (name, quantity(&it.value.0))))
            }
            _ => return None,
        })
    }
}

impl<'a> Seen<'a> {
    /// Values by the domain and the rest of their names; without a domain it is that of the driver.
    /// A domain of which nothing is known is empty.
    fn by_domain(
        &self,
        values: impl Iterator<Item = (&'a String, Result<Value<'a>, Error>)>,
    ) -> Result<Value<'a>, Error> {
        let mut domains: BTreeMap<&'a str, Vec<(Value<'a>, Value<'a>)>> = BTreeMap::new();
        for (name, value) in values {
            let (domain, id) = name.split_once('/').unwrap_or((self.driver, name));
            domains.entry(domain).or_default().push((text(id), value?));
        }
        let domains = domains
            .into_iter()
            .map(|(domain, values)| Ok((text(domain), Value::Map(Map::of(values)?))));
        let domains = Map::of(domains.collect::<Result<Vec<_>, Error>>()?)?;
        Ok(Value::Map(domains.or(Value::Map(Map::of(Vec::new())?))))
    }
}

fn text(text: &str) -> Value<'_> {
    Value::String(Text::Borrowed(text))
}

fn attribute<'a>(name: &str, attribute: &'a DeviceAttribute) -> Result<Value<'a>, Error> {
    if let Some(number) = attribute.int {
        return Ok(Value::Int(number));
    }
    if let Some(answer) = attribute.bool {
        return Ok(Value::Bool(answer));
    }
    if let Some(string) = &attribute.string {
        return Ok(text(string));
    }
    let version = attribute.version.as_deref();
    let version = version
        .ok_or_else(|| Error::new(format!("attribute {name}: unsupported attribute value")))?;
    let version = Version::parse(version)
        .map_err(|why| Error::new(format!("attribute {name}: parse semantic version: {why}")))?;
    Ok(Value::Extension(Extension::Semver(Arc::new(version))))
}

fn quantity<'a>(text: &str) -> Result<Value<'a>, Error> {
    let amount = Quantity::parse(text).map_err(|error| Error::new(error.to_string()))?;
    Ok(Value::Extension(Extension::Quantity(Arc::new(amount))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::object;

    fn ask(expression: &str) -> Result<bool, String> {
        let device: Device = object(json!({
            "name": "a",
            "attributes": {
                "model": {"string": "x1"}, "cores": {"int": 8}, "fast": {"bool": true},
                "other.example.com/driverVersion": {"version": "1.2.3"},
            },
            "capacity": {"memory": {"value": "40Gi"}},
        }));
        match &*Selectors::default().get(expression) {
            Ok(program) => is_true(program, "gpu.example.com", &device),
            Err(why) => Err(why.clone()),
        }
    }

    #[test]
    fn expressions_see_driver_attributes_and_capacity() {
        let gpu = "device.attributes[\"gpu.example.com\"]";
        for (expression, expected) in [
            ("device.driver == \"gpu.example.com\"".to_owned(), true),
            (format!("{gpu}.model == 'x1' && {gpu}.cores > 4"), true),
            (format!("{gpu}.fast"), true),
            (format!("cel.bind(gpu, {gpu}, gpu.cores == 9)"), false),
            (
                "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('20Gi'))".into(),
                true,
            ),
            (
                "device.attributes['other.example.com'].driverVersion.isLessThan(semver('1.3.0'))"
                    .into(),
                true,
            ),
            // A domain of which nothing is known is empty.
            ("has(device.attributes['none.example.com'].model)".into(), false),
            ("'none.example.com' in device.attributes".into(), false),
            ("device.allowMultipleAllocations".into(), false),
        ] {
            assert_eq!(ask(&expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_told() {
        let why = ask("device.attributes['gpu.example.com'].none == 1").unwrap_err();
        assert_eq!(why, "no such key: none");
        assert_eq!(ask("1"), Err("must evaluate to bool or the unknown type, not int".into()));
        assert!(ask("device.x").unwrap_err().starts_with("compilation failed: "));
        let why = ask("device.attributes['gpu.example.com'].model").unwrap_err();
        assert_eq!(why, "CEL result of type string could not be converted to bool");
    }
}
