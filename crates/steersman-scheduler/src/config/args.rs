//! What plug-ins are told, under Kubernetes' names.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{NodeAffinity as Wanted, TopologySpreadConstraint};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::flaws::{Checked, Flaws};
use super::{ConfigurationError, PluginConfig};
use crate::framework::Plugin;
use crate::plugins::{
    BalancedAllocation, DefaultBinder, DefaultPreemption, DynamicResources, Fit, Handle,
    ImageLocality, InterPodAffinity, NodeAffinity, NodeDeclaredFeatures, NodeName, NodePorts,
    NodeUnschedulable, NodeVolumeLimits, PodTopologySpread, PrioritySort, SchedulingGates,
    ShapePoint, Strategy, TaintToleration, Timeouts, VolumeBinding, VolumeRestrictions, VolumeZone,
    Weighted,
};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FitArgs {
    pub(super) ignored_resources: Vec<String>,
    pub(super) ignored_resource_groups: Vec<String>,
    pub(super) scoring_strategy: Option<ScoringStrategy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ScoringStrategy {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) resources: Vec<ResourceSpec>,
    pub(super) requested_to_capacity_ratio: Option<Ratio>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ratio {
    pub(super) shape: Vec<Point>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Point {
    pub(super) utilization: i64,
    pub(super) score: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceSpec {
    pub(super) name: String,
    pub(super) weight: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BalancedArgs {
    pub(super) resources: Vec<ResourceSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InterPodAffinityArgs {
    pub(super) hard_pod_affinity_weight: Option<i32>,
    pub(super) ignore_preferred_terms_of_existing_pods: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SpreadArgs {
    pub(super) default_constraints: Vec<TopologySpreadConstraint>,
    pub(super) defaulting_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeAffinityArgs {
    pub(super) added_affinity: Option<Wanted>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PreemptionArgs {
    pub(super) min_candidate_nodes_percentage: Option<i32>,
    pub(super) min_candidate_nodes_absolute: Option<i32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct VolumeBindingArgs {
    pub(super) bind_timeout_seconds: Option<i64>,
    pub(super) shape: Option<Vec<Point>>,
}

/// How long it may take to look for devices on a node, and until they are ready.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DynamicResourcesArgs {
    pub(super) filter_timeout: Option<String>,
    pub(super) binding_timeout: Option<String>,
}

/// One of Kubernetes' plug-ins by its name, told this; none if there is none.
pub(super) fn make(
    name: &str,
    args: &Value,
    handle: &Arc<Handle>,
    ignored: &[String],
) -> Result<Option<Arc<dyn Plugin>>, ConfigurationError> {
    Ok(Some(match name {
        "SchedulingGates" => Arc::new(SchedulingGates),
        "PrioritySort" => Arc::new(PrioritySort),
        "NodeUnschedulable" => Arc::new(NodeUnschedulable),
        "NodeName" => Arc::new(NodeName),
        "NodeDeclaredFeatures" => Arc::new(NodeDeclaredFeatures),
        "TaintToleration" => Arc::new(TaintToleration),
        "NodeAffinity" => {
            let NodeAffinityArgs { added_affinity } = read(name, args)?;
            Arc::new(NodeAffinity { added: added_affinity })
        }
        "NodePorts" => Arc::new(NodePorts),
        "NodeResourcesFit" => {
            let mut fit = Fit { handle: Arc::clone(handle), ..fit(read(name, args)?)? };
            fit.ignored.extend_from_slice(ignored);
            Arc::new(fit)
        }
        "VolumeRestrictions" => Arc::new(VolumeRestrictions),
        "NodeVolumeLimits" => Arc::new(NodeVolumeLimits),
        "VolumeBinding" => {
            let VolumeBindingArgs { bind_timeout_seconds, .. } = read(name, args)?;
            let seconds = bind_timeout_seconds.and_then(|it| u64::try_from(it).ok());
            let timeout = Duration::from_secs(seconds.unwrap_or(600));
            Arc::new(VolumeBinding::new(timeout, Arc::clone(handle)))
        }
        "VolumeZone" => Arc::new(VolumeZone),
        "PodTopologySpread" => Arc::new(spread(read(name, args)?)),
        "InterPodAffinity" => {
            let args: InterPodAffinityArgs = read(name, args)?;
            Arc::new(InterPodAffinity {
                hard_weight: args.hard_pod_affinity_weight.unwrap_or(1),
                ignores_preferred_of_others: args.ignore_preferred_terms_of_existing_pods,
            })
        }
        "DefaultPreemption" => {
            let args: PreemptionArgs = read(name, args)?;
            let mut plugin = DefaultPreemption::new(Arc::clone(handle));
            let number = |it: Option<i32>| it.and_then(|it| usize::try_from(it).ok());
            let percentage = number(args.min_candidate_nodes_percentage);
            plugin.candidates_percentage = percentage.unwrap_or(plugin.candidates_percentage);
            let absolute = number(args.min_candidate_nodes_absolute);
            plugin.candidates_min = absolute.unwrap_or(plugin.candidates_min);
            Arc::new(plugin)
        }
        "NodeResourcesBalancedAllocation" => {
            let BalancedArgs { resources } = read(name, args)?;
            let handle = Arc::clone(handle);
            let mut plugin = BalancedAllocation { handle, ..BalancedAllocation::default() };
            if !resources.is_empty() {
                plugin.resources = weighted(resources);
            }
            Arc::new(plugin)
        }
        "DynamicResources" => {
            let timeouts = timeouts(&read(name, args)?);
            Arc::new(DynamicResources::new(timeouts, Arc::clone(handle)))
        }
        "ImageLocality" => Arc::new(ImageLocality),
        "DefaultBinder" => Arc::new(DefaultBinder),
        _ => return Ok(None),
    }))
}

/// Whether arguments can be read at all.
pub(super) fn try_read(name: &str, args: &Value) -> Result<(), String> {
    match name {
        "DefaultPreemption" => decoded::<PreemptionArgs>(name, args).map(drop),
        "DynamicResources" => decoded::<DynamicResourcesArgs>(name, args).map(drop),
        "InterPodAffinity" => decoded::<InterPodAffinityArgs>(name, args).map(drop),
        "NodeAffinity" => decoded::<NodeAffinityArgs>(name, args).map(drop),
        "NodeResourcesBalancedAllocation" => decoded::<BalancedArgs>(name, args).map(drop),
        "NodeResourcesFit" => decoded::<FitArgs>(name, args).map(drop),
        "PodTopologySpread" => decoded::<SpreadArgs>(name, args).map(drop),
        "VolumeBinding" => decoded::<VolumeBindingArgs>(name, args).map(drop),
        _ => Ok(()),
    }
}

/// Notes what is wrong with arguments. Those of `NodeResourcesFit` are looked at when it is made, as in
/// Kubernetes.
pub(super) fn check(config: &PluginConfig, path: &str, flaws: &mut Flaws) {
    let PluginConfig { name, args } = config;
    let args: Option<Box<dyn Checked>> = match name.as_str() {
        "DefaultPreemption" => boxed::<PreemptionArgs>(name, args),
        "DynamicResources" => boxed::<DynamicResourcesArgs>(name, args),
        "InterPodAffinity" => boxed::<InterPodAffinityArgs>(name, args),
        "NodeAffinity" => boxed::<NodeAffinityArgs>(name, args),
        "NodeResourcesBalancedAllocation" => boxed::<BalancedArgs>(name, args),
        "PodTopologySpread" => boxed::<SpreadArgs>(name, args),
        "VolumeBinding" => boxed::<VolumeBindingArgs>(name, args),
        _ => None,
    };
    if let Some(args) = args {
        args.check(path, flaws);
    }
}

fn boxed<T>(name: &str, args: &Value) -> Option<Box<dyn Checked>>
where
    T: DeserializeOwned + Default + Checked + 'static,
{
    let decoded = decoded::<T>(name, args).ok()?;
    Some(Box::new(decoded))
}

fn decoded<T: DeserializeOwned + Default>(name: &str, args: &Value) -> Result<T, String> {
    if args.is_null() {
        return Ok(T::default());
    }
    T::deserialize(args).map_err(|error| format!("decoding args for plugin {name}: {error}"))
}

fn read<T: DeserializeOwned + Default>(name: &str, args: &Value) -> Result<T, ConfigurationError> {
    decoded(name, args).map_err(ConfigurationError::Malformed)
}

fn timeouts(args: &DynamicResourcesArgs) -> Timeouts {
    let default = Timeouts::default();
    let given = |text: &Option<String>| text.as_deref().and_then(duration);
    Timeouts {
        filter: match given(&args.filter_timeout) {
            Some(filter) => (!filter.is_zero()).then_some(filter),
            None => default.filter,
        },
        binding: given(&args.binding_timeout).unwrap_or(default.binding),
    }
}

/// What Go writes as a duration, unless that is negative.
fn duration(text: &str) -> Option<Duration> {
    let given = steersman_cel::Duration::parse(text)?;
    u64::try_from(given.nanos).ok().map(Duration::from_nanos)
}

fn weighted(resources: Vec<ResourceSpec>) -> Vec<Weighted> {
    let weight = |weight: i64| if weight == 0 { 1 } else { weight };
    resources.into_iter().map(|it| Weighted { name: it.name, weight: weight(it.weight) }).collect()
}

fn fit(args: FitArgs) -> Result<Fit, ConfigurationError> {
    let mut flaws = Flaws::default();
    args.check("", &mut flaws);
    flaws.none().map_err(|why| {
        ConfigurationError::Malformed(format!("initializing plugin \"NodeResourcesFit\": {why}"))
    })?;
    let mut fit = Fit {
        ignored: args.ignored_resources,
        ignored_groups: args.ignored_resource_groups,
        ..Fit::default()
    };
    let Some(strategy) = args.scoring_strategy else { return Ok(fit) };
    fit.strategy = match strategy.type_.as_str() {
        "MostAllocated" => Strategy::MostAllocated,
        "RequestedToCapacityRatio" => {
            let shape = strategy.requested_to_capacity_ratio.map(|it| it.shape).unwrap_or_default();
            Strategy::RequestedToCapacityRatio(points(&shape))
        }
        _ => Strategy::LeastAllocated,
    };
    if !strategy.resources.is_empty() {
        fit.resources = weighted(strategy.resources);
    }
    Ok(fit)
}

/// The points of a shape, whose scores go to 10 where they are written.
fn points(shape: &[Point]) -> Vec<ShapePoint> {
    let point = |it: &Point| ShapePoint { utilization: it.utilization, score: it.score * 10 };
    shape.iter().map(point).collect()
}

fn spread(args: SpreadArgs) -> PodTopologySpread {
    match args.defaulting_type.as_str() {
        "List" => {
            PodTopologySpread { defaults: args.default_constraints, is_system_defaulted: false }
        }
        _ => PodTopologySpread::default(),
    }
}
