//! Requests and limits of a container as text, in units of a divisor.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use steersman_values::Quantity;

/// Why a resource cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResourceError {
    #[error("container {0} not found")]
    Container(String),
    // The space before the colon is upstream's.
    #[error("unsupported container resource : {0}")]
    Unsupported(String),
}

/// Amounts of resources by name.
type Amounts = BTreeMap<String, Text>;

/// What stands for a limit that a container does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults<'a> {
    /// What the node can give to all its Pods.
    pub(crate) allocatable: &'a Amounts,
    /// Whether the limit of the Pod goes before that, as in variables; in volumes it does not.
    pub(crate) pod_limits: bool,
}

/// A request or limit of the container that the selector names, or else of `own`.
///
/// A container without a limit is told that of its Pod, or else what its node can allocate; so
/// programs that size themselves by it get a number that makes sense.
pub(crate) fn resource(
    selector: &ResourceFieldSelector,
    pod: &Pod,
    own: Option<&Container>,
    defaults: Defaults<'_>,
) -> Result<String, ResourceError> {
    let name = selector.container_name.as_deref().unwrap_or_default();
    let container = match own.filter(|_| name.is_empty()) {
        Some(own) => own,
        None => find(pod, name).ok_or_else(|| ResourceError::Container(name.to_owned()))?,
    };
    let unsupported = || ResourceError::Unsupported(selector.resource.clone());
    let (list, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if !known && !name.starts_with("hugepages-") {
        return Err(unsupported());
    }
    let resources = container.resources.as_ref();
    let amount = match list {
        "limits" => {
            let own = amount(resources.and_then(|it| it.limits.as_ref()), name);
            let given = |own: &Quantity| *own != Quantity::ZERO || !known;
            own.filter(given).or_else(|| default_limit(pod, defaults, name).filter(|_| known))
        }
        "requests" => amount(resources.and_then(|it| it.requests.as_ref()), name),
        _ => return Err(unsupported()),
    };
    let divisor = selector.divisor.as_ref().and_then(|text| Quantity::parse(&text.0).ok());
    let divisor = divisor.filter(|it| *it != Quantity::ZERO).unwrap_or(Quantity::ONE);
    Ok(divided(amount.unwrap_or(Quantity::ZERO), divisor, name).to_string())
}

/// How often the divisor fits, rounded up; processors are counted in thousandths before.
fn divided(amount: Quantity, divisor: Quantity, name: &str) -> i64 {
    let (amount, divisor) = match name {
        "cpu" => (amount.milli_value(), divisor.milli_value()),
        _ => (amount.value(), divisor.value()),
    };
    let rest = i64::from(amount % divisor != 0 && (amount < 0) == (divisor < 0));
    amount / divisor + rest
}

fn default_limit(pod: &Pod, defaults: Defaults<'_>, name: &str) -> Option<Quantity> {
    let node = amount(Some(defaults.allocatable), name)?;
    let shared = pod.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.limits.as_ref());
    let shared = shared.filter(|_| defaults.pod_limits);
    // A Pod as a whole has no limit of its storage.
    let pod =
        amount(shared, name).filter(|it| name != "ephemeral-storage" && *it != Quantity::ZERO);
    Some(pod.unwrap_or(node))
}

fn amount(amounts: Option<&Amounts>, name: &str) -> Option<Quantity> {
    Quantity::parse(&amounts?.get(name)?.0).ok()
}

fn find<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    all.find(|container| container.name == name)
}
