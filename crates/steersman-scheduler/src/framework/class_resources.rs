//! Extended resources that are devices of a class.
//!
//! A class can say that an extended resource stands for one of its devices; besides, each has such a
//! resource by its own name. Who asks for one gets it from a node that has it, or else a device: so
//! what a node says of its room for it does not count there.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::DeviceClass;

use super::lister::Lister;
use super::resources::Resources;

/// What stands before the name of a class in the resource that each has.
pub(crate) const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";

/// The extended resources that a Pod asks for of which there are devices, with the names of their
/// classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassResources(BTreeMap<String, String>);

impl ClassResources {
    pub(crate) fn of(asked: &Resources, lister: &dyn Lister) -> Self {
        let extended = asked.iter().filter(|(name, _)| name.contains('/'));
        let class_of = |name: &str| class_of(name, lister)?.metadata.name.clone();
        Self(extended.filter_map(|(name, _)| Some((name.to_owned(), class_of(name)?))).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The resources with the names of their classes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(resource, class)| (resource.as_str(), class.as_str()))
    }

    /// The class of a resource.
    pub(crate) fn class(&self, resource: &str) -> Option<&str> {
        self.0.get(resource).map(String::as_str)
    }
}

/// The class whose devices a resource stands for: of several the newest, so that one can take the place
/// of another.
fn class_of(resource: &str, lister: &dyn Lister) -> Option<Arc<DeviceClass>> {
    if let Some(class) = resource.strip_prefix(IMPLICIT) {
        return lister.device_class(class);
    }
    let named =
        |class: &Arc<DeviceClass>| class.spec.extended_resource_name.as_deref() == Some(resource);
    let classes = lister.device_classes().into_iter().filter(named);
    classes.min_by_key(|class| {
        let created = class.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (std::cmp::Reverse(created), class.metadata.name.clone())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::framework::PodRequests;
    use crate::testing::{Objects, object, pod};

    #[test]
    fn a_resource_stands_for_devices_of_its_newest_class() {
        let class = |name: &str, resource: &str, created: &str| {
            Arc::new(object(json!({
                "metadata": {"name": name, "creationTimestamp": created},
                "spec": {"extendedResourceName": resource},
            })))
        };
        let (early, late) = ("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z");
        let lister = Objects {
            device_classes: vec![
                class("old", "example.com/gpu", early),
                class("z", "example.com/gpu", late),
                class("a", "example.com/gpu", late),
                class("nic", "example.com/nic", early),
            ],
            ..Objects::default()
        };
        let requests = json!({"cpu": "1", "example.com/gpu": "1", "example.com/other": "1",
                              "deviceclass.resource.kubernetes.io/nic": "1", "example.com/nic": "0",
                              "deviceclass.resource.kubernetes.io/none": "1"});
        let containers = json!([{"name": "c", "resources": {"requests": requests}}]);
        let pod = pod("p", &json!({"spec": {"containers": containers}}));
        let found = ClassResources::of(&PodRequests::of(&pod).asked, &lister);
        let classes: Vec<(&str, &str)> =
            found.0.iter().map(|(resource, class)| (resource.as_str(), class.as_str())).collect();
        let implicit = "deviceclass.resource.kubernetes.io/nic";
        assert_eq!(classes, [(implicit, "nic"), ("example.com/gpu", "a")]);
    }
}
