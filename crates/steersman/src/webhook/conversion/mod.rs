//! Conversion between the versions of a custom resource.
//!
//! One version is the hub, every other is a spoke that knows the way to it and back; from spoke
//! to spoke the way goes through the hub. What is not `spec` or `status` stays as it was sent:
//! of the metadata only labels and annotations may change, as the API server demands.

mod metadata;
mod review;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::Resource;
use kube::core::{ApiResource, Status};
use serde_json::Value;

use crate::error::{Error, Result, panic_text};
use crate::object::{Object, api_resource};

pub(super) use review::convert_review;

/// A version of a kind that knows the way to the hub version and back.
///
/// ```ignore
/// impl Spoke for v1alpha1::AppService {
///     type Hub = v1::AppService;
///     fn to_hub(&self) -> Result<v1::AppService> { /* … */ }
///     fn from_hub(hub: &v1::AppService) -> Result<Self> { /* … */ }
/// }
/// ```
///
/// Metadata need not be carried over; labels and annotations that are set are added to those
/// that were there.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know the way to the hub version",
    note = "implement `steersman::webhook::Spoke` for `{Self}`"
)]
pub trait Spoke: Object {
    /// The version through which all others are converted.
    type Hub: Object;

    /// This object in the hub version.
    fn to_hub(&self) -> Result<Self::Hub>;

    /// An object of the hub version in this one.
    fn from_hub(hub: &Self::Hub) -> Result<Self>;
}

/// Gives an object in the version that is wanted.
type Convert = Box<dyn Fn(&Value, &str) -> Converted + Send + Sync>;

/// An object in the version that is wanted, or why there is none.
type Converted = Result<Value, Box<Status>>;

/// The versions of one kind, ready for a webhook server.
pub struct Conversion {
    pub(super) resource: ApiResource,
    pub(super) fault: Option<String>,
    convert: Convert,
}

impl Conversion {
    /// Begins with the version through which all others are converted:
    /// `Conversion::hub::<v1::AppService>().spoke::<v1alpha1::AppService>()`.
    pub fn hub<H: Object>() -> Versions<H> {
        let resource = api_resource::<H>();
        let hub = Version { to_hub: read::<H>, from_hub: write::<H> };
        let versions = BTreeMap::from([(resource.api_version.clone(), hub)]);
        Versions { resource, versions, fault: None }
    }

    /// An object in the version that is wanted.
    pub(super) fn convert(&self, object: &Value, desired: &str) -> Converted {
        let converted = catch_unwind(AssertUnwindSafe(|| (self.convert)(object, desired)));
        converted.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Box<Status> {
    let text = panic_text(panic);
    tracing::error!(panic = text, "conversion webhook panicked");
    Status::failure(&format!("panic: {text} [recovered]"), PANICKED).with_code(500).boxed()
}

/// The reason of a failure that was a panic.
const PANICKED: &str = "InternalError";

/// The versions of one kind.
pub struct Versions<H> {
    resource: ApiResource,
    versions: BTreeMap<String, Version<H>>,
    fault: Option<String>,
}

/// The way from one version to the hub and back.
struct Version<H> {
    to_hub: fn(&Value) -> Result<H>,
    from_hub: fn(&H) -> Result<Value>,
}

impl<H: Object> Versions<H> {
    /// Adds a version.
    #[must_use]
    pub fn spoke<S: Spoke<Hub = H>>(mut self) -> Self {
        let spoke = api_resource::<S>();
        let hub = &self.resource;
        if (&spoke.group, &spoke.kind) != (&hub.group, &hub.kind) {
            let spoke = show(&spoke);
            let hub = show(hub);
            self.fault = Some(format!("{spoke} is not a version of {hub}"));
        }
        let version = Version { to_hub: spoke_to_hub::<S>, from_hub: hub_to_spoke::<S> };
        if self.versions.insert(spoke.api_version.clone(), version).is_some() {
            self.fault = Some(format!("{} is there twice", show(&spoke)));
        }
        self
    }

    fn convert(&self, object: &Value, desired: &str) -> Converted {
        let found = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let source = self.version(found)?;
        let target = self.version(desired)?;
        if found == desired {
            return Ok(object.clone());
        }
        let hub = (source.to_hub)(object).map_err(|error| failed(&error))?;
        let converted = (target.from_hub)(&hub).map_err(|error| failed(&error))?;
        Ok(metadata::restored(object, converted))
    }

    fn version(&self, api_version: &str) -> Result<&Version<H>, Box<Status>> {
        self.versions.get(api_version).ok_or_else(|| {
            let known: Vec<&str> = self.versions.keys().map(String::as_str).collect();
            let message =
                format!("version {api_version:?} is not known, only {}", known.join(", "));
            Status::failure(&message, "BadRequest").with_code(400).boxed()
        })
    }
}

fn show(resource: &ApiResource) -> String {
    format!("{} of {}", resource.kind, resource.api_version)
}

fn failed(error: &Error) -> Box<Status> {
    Status::failure(&error.to_string(), "Invalid").with_code(422).boxed()
}

impl<H: Object> From<Versions<H>> for Conversion {
    fn from(versions: Versions<H>) -> Self {
        let resource = versions.resource.clone();
        let fault = versions.fault.clone();
        let convert =
            Box::new(move |object: &Value, desired: &str| versions.convert(object, desired));
        Self { resource, fault, convert }
    }
}

fn read<K: Object>(object: &Value) -> Result<K> {
    Ok(K::deserialize(object)?)
}

fn write<K: Object>(object: &K) -> Result<Value> {
    Ok(serde_json::to_value(object)?)
}

fn spoke_to_hub<S: Spoke>(object: &Value) -> Result<S::Hub> {
    let spoke: S = read(object)?;
    let mut hub = spoke.to_hub()?;
    metadata::carry(spoke.meta(), hub.meta_mut());
    Ok(hub)
}

fn hub_to_spoke<S: Spoke>(hub: &S::Hub) -> Result<Value> {
    let mut spoke = S::from_hub(hub)?;
    metadata::carry(hub.meta(), spoke.meta_mut());
    write(&spoke)
}
