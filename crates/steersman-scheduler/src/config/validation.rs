//! Which values the arguments of plug-ins may have, in Kubernetes' words.

use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint,
};
use steersman_values::names::{label_value, qualified_name};

use super::args::{
    BalancedArgs, DynamicResourcesArgs, FitArgs, InterPodAffinityArgs, NodeAffinityArgs, Point,
    PreemptionArgs, ResourceSpec, ScoringStrategy, SpreadArgs, VolumeBindingArgs,
};
use super::flaws::{Checked, Flaws};

const STRATEGIES: [&str; 3] = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// The path of a field, which is the first if nothing stands above it.
fn below(path: &str, field: &str) -> String {
    match path.is_empty() {
        true => field.to_owned(),
        false => format!("{path}.{field}"),
    }
}

impl Checked for PreemptionArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        let percentage = self.min_candidate_nodes_percentage.unwrap_or(10);
        let absolute = self.min_candidate_nodes_absolute.unwrap_or(100);
        let names = ["minCandidateNodesPercentage", "minCandidateNodesAbsolute"];
        let [in_percent, as_number] = names.map(|name| below(path, name));
        flaws.out_of_range(&in_percent, percentage.into(), 100);
        if absolute < 0 {
            flaws.invalid(&as_number, absolute, "not in valid range [0, inf)");
        }
        if percentage == 0 && absolute == 0 {
            let why = |other: &str| format!("cannot be zero at the same time as {other}");
            flaws.invalid(&in_percent, percentage, &why(names[1]));
            flaws.invalid(&as_number, absolute, &why(names[0]));
        }
    }
}

impl Checked for DynamicResourcesArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        let checks = [
            ("filterTimeout", &self.filter_timeout, 0, "must be zero or positive"),
            ("bindingTimeout", &self.binding_timeout, 1_000_000_000, "must be at least 1 second"),
        ];
        for (field, given, min, why) in checks {
            let Some(text) = given else { continue };
            let time = steersman_cel::Duration::parse(text);
            if time.is_none_or(|time| time.nanos < min) {
                flaws.invalid(&below(path, field), text, why);
            }
        }
    }
}

impl Checked for InterPodAffinityArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        let weight = self.hard_pod_affinity_weight.unwrap_or(1);
        flaws.out_of_range(&below(path, "hardPodAffinityWeight"), weight.into(), 100);
    }
}

impl Checked for VolumeBindingArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        if let Some(seconds) = self.bind_timeout_seconds.filter(|seconds| *seconds < 0) {
            let why = "invalid BindTimeoutSeconds, should not be a negative value";
            flaws.invalid(&below(path, "bindTimeoutSeconds"), seconds, why);
        }
        if let Some(shape) = &self.shape {
            let point =
                |it: &Point| serde_json::json!({"Utilization": it.utilization, "Score": it.score});
            let shape: Vec<_> = shape.iter().map(point).collect();
            let why = "unexpected field `shape`, remove it or turn on the feature gate \
                       StorageCapacityScoring";
            flaws.invalid(&below(path, "shape"), shape, why);
        }
    }
}

impl Checked for BalancedArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        for (place, resource) in self.resources.iter().enumerate() {
            let path = below(path, &format!("resources[{place}]"));
            if self.resources[..place].iter().any(|it| it.name == resource.name) {
                flaws.duplicate(&below(&path, "name"), &resource.name);
            }
            if !matches!(resource.weight, 0 | 1) {
                flaws.invalid(&below(&path, "weight"), resource.weight, "must be 1");
            }
        }
    }
}

impl Checked for SpreadArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        let field = below(path, "defaultingType");
        match self.defaulting_type.as_str() {
            "" | "System" if !self.default_constraints.is_empty() => {
                flaws.invalid(&field, "System", "when .defaultConstraints are not empty");
            }
            "" | "System" | "List" => {}
            other => flaws.unsupported(&field, other, &["System", "List"]),
        }
        for (place, constraint) in self.default_constraints.iter().enumerate() {
            let path = below(path, &format!("defaultConstraints[{place}]"));
            if constraint.max_skew <= 0 {
                let why = "not in valid range (0, inf)";
                flaws.invalid(&below(&path, "maxSkew"), constraint.max_skew, why);
            }
            let (key, action) = (&constraint.topology_key, constraint.when_unsatisfiable.as_str());
            let field = below(&path, "topologyKey");
            match key.is_empty() {
                true => flaws.required(&field, "can not be empty"),
                false => flaws.not_qualified(&field, key),
            }
            let field = below(&path, "whenUnsatisfiable");
            match action {
                "" => flaws.required(&field, "can not be empty"),
                _ if ACTIONS.contains(&action) => {}
                _ => flaws.unsupported(&field, action, &ACTIONS),
            }
            if constraint.label_selector.is_some() {
                let why = "constraint must not define a selector, as they deduced for each pod";
                flaws.forbidden(&below(&path, "labelSelector"), why);
            }
            let is_same = |it: &TopologySpreadConstraint| {
                it.topology_key == *key && it.when_unsatisfiable == action
            };
            if self.default_constraints[..place].iter().any(is_same) {
                flaws.duplicate(&path, format!("{{{key}, {action}}}"));
            }
        }
    }
}

impl Checked for FitArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        for (place, name) in self.ignored_resources.iter().enumerate() {
            flaws.not_qualified(&below(path, &format!("ignoredResources[{place}]")), name);
        }
        for (place, group) in self.ignored_resource_groups.iter().enumerate() {
            let field = below(path, &format!("ignoredResourceGroups[{place}]"));
            if group.contains('/') {
                flaws.invalid(&field, group, "resource group name can't contain '/'");
            }
            flaws.not_qualified(&field, group);
        }
        if let Some(strategy) = &self.scoring_strategy {
            strategy.check(&below(path, "scoringStrategy"), flaws);
        }
    }
}

impl Checked for ScoringStrategy {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        let Self { type_, resources, requested_to_capacity_ratio } = self;
        if !STRATEGIES.contains(&type_.as_str()) {
            flaws.unsupported(&below(path, "type"), type_, &STRATEGIES);
        }
        for (place, ResourceSpec { name, weight }) in resources.iter().enumerate() {
            if !(0..=100).contains(weight) {
                let why = format!("resource weight of {name} not in valid range (0, 100]");
                flaws.invalid(&below(path, &format!("resources[{place}].weight")), weight, &why);
            }
        }
        let field = below(path, "requestedToCapacityRatio");
        match (type_ == "RequestedToCapacityRatio", requested_to_capacity_ratio) {
            (true, None) => {
                let why = "must be specified when type is RequestedToCapacityRatio";
                flaws.required(&field, why);
            }
            (true, Some(ratio)) => check_shape(&ratio.shape, &below(&field, "shape"), flaws),
            (false, Some(_)) => {
                let why = "must be nil when type is not RequestedToCapacityRatio";
                flaws.forbidden(&field, why);
            }
            (false, None) => {}
        }
    }
}

fn check_shape(shape: &[Point], path: &str, flaws: &mut Flaws) {
    if shape.is_empty() {
        return flaws.required(path, "at least one point must be specified");
    }
    let field = |place: usize, name: &str| format!("{path}[{place}].{name}");
    let mut pairs = shape.windows(2);
    if let Some(place) = pairs.position(|pair| pair[0].utilization >= pair[1].utilization) {
        let why = "values must be sorted in increasing order";
        flaws.invalid(&field(place + 1, "utilization"), shape[place + 1].utilization, why);
    }
    for (place, point) in shape.iter().enumerate() {
        flaws.out_of_range(&field(place, "utilization"), point.utilization, 100);
        flaws.out_of_range(&field(place, "score"), point.score, 10);
    }
}

impl Checked for NodeAffinityArgs {
    fn check(&self, path: &str, flaws: &mut Flaws) {
        let Some(added) = &self.added_affinity else { return };
        let path = below(path, "addedAffinity");
        if let Some(selector) = &added.required_during_scheduling_ignored_during_execution {
            let path = below(&path, "requiredDuringSchedulingIgnoredDuringExecution");
            for (place, term) in selector.node_selector_terms.iter().enumerate() {
                check_term(term, &below(&path, &format!("nodeSelectorTerms[{place}]")), flaws);
            }
        }
        let preferred = &added.preferred_during_scheduling_ignored_during_execution;
        let path = below(&path, "preferredDuringSchedulingIgnoredDuringExecution");
        for (place, term) in preferred.iter().flatten().enumerate() {
            if term.weight != 0 {
                check_term(&term.preference, &format!("{path}[{place}]"), flaws);
            }
        }
    }
}

fn check_term(term: &NodeSelectorTerm, path: &str, flaws: &mut Flaws) {
    for (place, wanted) in term.match_expressions.iter().flatten().enumerate() {
        check_requirement(wanted, &below(path, &format!("matchExpressions[{place}]")), flaws);
    }
    for (place, wanted) in term.match_fields.iter().flatten().enumerate() {
        let path = below(path, &format!("matchFields[{place}]"));
        match wanted.operator.as_str() {
            "In" | "NotIn" if wanted.values.as_ref().is_some_and(|it| it.len() == 1) => {}
            "In" | "NotIn" => {
                flaws.invalid(&below(&path, "values"), &wanted.values, "must have one element");
            }
            other => flaws.unsupported(&below(&path, "operator"), other, &["In", "NotIn"]),
        }
    }
}

fn check_requirement(wanted: &NodeSelectorRequirement, path: &str, flaws: &mut Flaws) {
    let NodeSelectorRequirement { key, operator, values } = wanted;
    if !OPERATORS.contains(&operator.as_str()) {
        return flaws.unsupported(&below(path, "operator"), operator, &OPERATORS);
    }
    let why = qualified_name(key);
    if !why.is_empty() {
        flaws.invalid(&below(path, "key"), key, &why.join("; "));
    }
    let field = below(path, "values");
    let given = values.as_deref().unwrap_or_default();
    let why = match (operator.as_str(), given.len()) {
        ("In" | "NotIn", 0) => "for 'in', 'notin' operators, values set can't be empty",
        ("Exists" | "DoesNotExist", 1..) => {
            "values set must be empty for exists and does not exist"
        }
        ("Gt" | "Lt", 0 | 2..) => "for 'Gt', 'Lt' operators, exactly one value is required",
        _ => "",
    };
    if !why.is_empty() {
        flaws.invalid(&field, values, why);
    }
    let compares = matches!(operator.as_str(), "Gt" | "Lt");
    for (place, value) in given.iter().enumerate().filter(|_| compares) {
        if value.parse::<i64>().is_err() {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            flaws.invalid(&format!("{field}[{place}]"), value, why);
        }
    }
    for (place, value) in given.iter().enumerate() {
        let why = label_value(value);
        if !why.is_empty() {
            flaws.invalid(&format!("{field}[{place}][{key}]"), value, &why.join("; "));
        }
    }
}
