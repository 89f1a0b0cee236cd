//! In which form a cache holds its objects.

use serde::Serialize;

/// How a cache holds the objects of a kind.
///
/// Measured on 50,000 Pods of 3.4 KB with managedFields (`cargo xtask bench informer`): typed they
/// take 28 KB each, compactly 1.1 KB; reading one that is not decoded takes some 30 µs. A third
/// way is a slim type of the author's own, with only the fields that matter. It is a kind like
/// any other, with a watch and a cache of its own: `.reads::<PodView>()`, `ctx.get::<PodView>()`.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// #[derive(kube::Resource, serde::Serialize, serde::Deserialize, Clone, Debug)]
/// #[resource(inherit = "Pod")]
/// struct PodView {
///     metadata: ObjectMeta,
///     spec: Placement,
/// }
///
/// #[derive(serde::Serialize, serde::Deserialize, Clone, Debug)]
/// #[serde(rename_all = "camelCase")]
/// struct Placement {
///     node_name: Option<String>,
/// }
/// # let _ = steersman::Controller::of::<Pod>().reads::<PodView>();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// Decoded, ready to read. Large for the wide built-in kinds, best for what is small or
    /// read all the time. Of such an object there is no [view](super::Item::view).
    Typed,
    /// Compressed, decoded when read. Up to `recent` objects stay decoded, until a minute or two
    /// after they were used last.
    Compact {
        /// How many recently used objects stay decoded. All objects of an owner stay if there are
        /// no more than this.
        recent: usize,
    },
}

/// Structs larger than this make a kind wide: nearly every field of theirs is an inline option.
const WIDE: usize = 768;
/// Objects that stay decoded unless the author says otherwise.
const RECENT: usize = 512;

impl Form {
    /// The compact form, with the usual number of objects kept decoded.
    pub const COMPACT: Self = Self::Compact { recent: RECENT };

    /// The form that suits a kind: compact for wide ones such as Pods, typed for others.
    pub const fn of<K>() -> Self {
        if size_of::<K>() > WIDE { Self::COMPACT } else { Self::Typed }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

    use super::*;

    #[test]
    fn wide_kinds_are_held_compactly() {
        assert_eq!(Form::of::<Pod>(), Form::COMPACT);
        assert_eq!(Form::of::<Deployment>(), Form::COMPACT);
        assert_eq!(Form::of::<ConfigMap>(), Form::Typed);
        assert_eq!(Form::of::<Secret>(), Form::Typed);
    }
}
