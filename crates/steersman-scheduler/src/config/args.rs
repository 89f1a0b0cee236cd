//! What plug-ins are told, under Kubernetes' names.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{NodeAffinity as Wanted, TopologySpreadConstraint};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ConfigurationError, invalid};
use crate::framework::{Plugin, SCORE_MAX};
use crate::plugins::{
    BalancedAllocation, DefaultBinder, DefaultPreemption, DynamicResources, Fit, Handle,
    ImageLocality, InterPodAffinity, NodeAffinity, NodeName, NodePorts, NodeUnschedulable,
    NodeVolumeLimits, PodTopologySpread, PrioritySort, SchedulingGates, ShapePoint, Strategy,
    TaintToleration, VolumeBinding, VolumeRestrictions, VolumeZone, Weighted,
};

/// What stands in every document of arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FitArgs {
    ignored_resources: Vec<String>,
    ignored_resource_groups: Vec<String>,
    scoring_strategy: Option<ScoringStrategy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScoringStrategy {
    #[serde(rename = "type")]
    type_: String,
    resources: Vec<ResourceSpec>,
    requested_to_capacity_ratio: Option<Ratio>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ratio {
    shape: Vec<Point>,
}

#[derive(Debug, Deserialize)]
struct Point {
    utilization: i64,
    score: i64,
}

#[derive(Debug, Deserialize)]
struct ResourceSpec {
    name: String,
    #[serde(default)]
    weight: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BalancedArgs {
    resources: Vec<ResourceSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InterPodAffinityArgs {
    hard_pod_affinity_weight: Option<i32>,
    ignore_preferred_terms_of_existing_pods: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpreadArgs {
    default_constraints: Vec<TopologySpreadConstraint>,
    defaulting_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinityArgs {
    added_affinity: Option<Wanted>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PreemptionArgs {
    min_candidate_nodes_percentage: Option<usize>,
    min_candidate_nodes_absolute: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeBindingArgs {
    bind_timeout_seconds: Option<u64>,
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
        "TaintToleration" => Arc::new(TaintToleration),
        "NodeAffinity" => {
            let NodeAffinityArgs { added_affinity } = read(name, args)?;
            Arc::new(NodeAffinity { added: added_affinity })
        }
        "NodePorts" => Arc::new(NodePorts),
        "NodeResourcesFit" => {
            let mut fit = fit(read(name, args)?)?;
            fit.ignored.extend_from_slice(ignored);
            Arc::new(fit)
        }
        "VolumeRestrictions" => Arc::new(VolumeRestrictions),
        "NodeVolumeLimits" => Arc::new(NodeVolumeLimits),
        "VolumeBinding" => {
            let VolumeBindingArgs { bind_timeout_seconds } = read(name, args)?;
            let timeout = Duration::from_secs(bind_timeout_seconds.unwrap_or(600));
            Arc::new(VolumeBinding::new(timeout, Arc::clone(handle)))
        }
        "VolumeZone" => Arc::new(VolumeZone),
        "PodTopologySpread" => Arc::new(spread(read(name, args)?)?),
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
            let percentage = args.min_candidate_nodes_percentage;
            plugin.candidates_percentage = percentage.unwrap_or(plugin.candidates_percentage);
            let absolute = args.min_candidate_nodes_absolute;
            plugin.candidates_min = absolute.unwrap_or(plugin.candidates_min);
            Arc::new(plugin)
        }
        "NodeResourcesBalancedAllocation" => {
            let BalancedArgs { resources } = read(name, args)?;
            Arc::new(match resources.is_empty() {
                true => BalancedAllocation::default(),
                false => BalancedAllocation { resources: weighted(resources) },
            })
        }
        "DynamicResources" => Arc::new(DynamicResources::new(Arc::clone(handle))),
        "ImageLocality" => Arc::new(ImageLocality),
        "DefaultBinder" => Arc::new(DefaultBinder),
        _ => return Ok(None),
    }))
}

fn read<T: DeserializeOwned + Default>(name: &str, args: &Value) -> Result<T, ConfigurationError> {
    if args.is_null() {
        return Ok(T::default());
    }
    let malformed = |error: serde_json::Error| {
        ConfigurationError::Malformed(format!("decoding args for plugin {name:?}: {error}"))
    };
    serde_json::from_value::<Head>(args.clone()).map_err(malformed)?;
    serde_json::from_value(args.clone()).map_err(malformed)
}

fn weighted(resources: Vec<ResourceSpec>) -> Vec<Weighted> {
    let weight = |weight: i64| if weight == 0 { 1 } else { weight };
    resources.into_iter().map(|it| Weighted { name: it.name, weight: weight(it.weight) }).collect()
}

fn fit(args: FitArgs) -> Result<Fit, ConfigurationError> {
    let mut fit = Fit {
        ignored: args.ignored_resources,
        ignored_groups: args.ignored_resource_groups,
        ..Fit::default()
    };
    let Some(ScoringStrategy { type_, resources, requested_to_capacity_ratio }) =
        args.scoring_strategy
    else {
        return Ok(fit);
    };
    fit.strategy = match type_.as_str() {
        "" | "LeastAllocated" => Strategy::LeastAllocated,
        "MostAllocated" => Strategy::MostAllocated,
        "RequestedToCapacityRatio" => {
            let shape = requested_to_capacity_ratio.map(|it| it.shape).unwrap_or_default();
            Strategy::RequestedToCapacityRatio(points(&shape)?)
        }
        other => {
            let why = "supported values: \"LeastAllocated\", \"MostAllocated\", \
                       \"RequestedToCapacityRatio\"";
            return Err(invalid("scoringStrategy.type", format!("{other:?}"), why));
        }
    };
    if let Some(bad) = resources.iter().find(|it| !(0..=SCORE_MAX).contains(&it.weight)) {
        let why = format!("resource weight of {} not in valid range (0, 100]", bad.name);
        return Err(invalid("scoringStrategy.resources.weight", bad.weight, &why));
    }
    if !resources.is_empty() {
        fit.resources = weighted(resources);
    }
    Ok(fit)
}

/// The points of a shape, whose scores go to 10 where they are written.
fn points(shape: &[Point]) -> Result<Vec<ShapePoint>, ConfigurationError> {
    let field = "scoringStrategy.requestedToCapacityRatio.shape";
    if shape.is_empty() {
        return Err(invalid(field, "[]", "at least one point must be specified"));
    }
    if let Some(pair) = shape.windows(2).find(|pair| pair[0].utilization >= pair[1].utilization) {
        let why = "utilization values must be sorted in increasing order";
        return Err(invalid(field, pair[1].utilization, why));
    }
    for point in shape {
        if !(0..=100).contains(&point.utilization) || !(0..=10).contains(&point.score) {
            let why = "utilization must be in [0, 100] and score in [0, 10]";
            return Err(invalid(field, format!("{point:?}"), why));
        }
    }
    let point = |it: &Point| ShapePoint { utilization: it.utilization, score: it.score * 10 };
    Ok(shape.iter().map(point).collect())
}

fn spread(args: SpreadArgs) -> Result<PodTopologySpread, ConfigurationError> {
    let SpreadArgs { default_constraints, defaulting_type } = args;
    match defaulting_type.as_str() {
        "" | "System" if default_constraints.is_empty() => Ok(PodTopologySpread::default()),
        "List" => {
            Ok(PodTopologySpread { defaults: default_constraints, is_system_defaulted: false })
        }
        "" | "System" => {
            let why = "when .defaultingType is System, must be empty";
            Err(invalid("defaultConstraints", default_constraints.len(), why))
        }
        other => {
            let why = "supported values: \"System\", \"List\"";
            Err(invalid("defaultingType", format!("{other:?}"), why))
        }
    }
}
