//! What an autoscaler looks at: metrics of five kinds, each with a target.

use super::{Group, reference};
use crate::kinds::core::pod::resources::container_resource;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::at::{At, Errors};

/// Every kind of metric with the field that describes it, in the order they are looked at.
const SOURCES: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

/// The mistakes in the metrics of an autoscaler.
pub(super) fn validate(spec: &At<'_, '_>, errors: &mut Errors) {
    let list = spec.at("metrics");
    for metric in list.items() {
        of_metric(&metric, errors);
    }
    let reaches_zero = |kind: &str| list.list().iter().any(|metric| metric["type"] == kind);
    if spec.at("minReplicas").number() == Some(0)
        && !reaches_zero("Object")
        && !reaches_zero("External")
    {
        let why = "must specify at least one Object or External metric to support scaling to \
                   zero replicas";
        errors.push(list.forbidden(why));
    }
}

fn of_metric(metric: &At<'_, '_>, errors: &mut Errors) {
    let kind = metric.at("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    if !TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(TYPES));
    }
    let mut given = SOURCES.iter().filter(|(_, field)| metric.at(field).is_set());
    if let Some((_, field)) = given.next() {
        of_source(&metric.at(field), field, errors);
    }
    match SOURCES.iter().find(|(name, _)| *name == kind.text()) {
        None => errors.push(kind.not_supported(TYPES)),
        Some((_, field)) => {
            if !metric.at(field).is_set() {
                let why = "must populate information for the given metric source";
                errors.push(metric.at(field).required(why));
            }
        }
    }
    let all: Vec<_> = SOURCES.iter().filter(|(_, field)| metric.at(field).is_set()).collect();
    if all.len() != 1 {
        for (_, field) in all.iter().filter(|(name, _)| *name != kind.text()) {
            let why = "must populate the given metric source only";
            errors.push(metric.at(field).forbidden(why));
        }
    }
}

fn of_source(source: &At<'_, '_>, field: &str, errors: &mut Errors) {
    let target = source.at("target");
    let has = |key: &str| target.at(key).is_set();
    if field == "object" {
        reference(&source.at("describedObject"), Group::Optional, errors);
    }
    match field {
        "resource" | "containerResource" => {
            resource_name(source, field == "containerResource", errors);
        }
        _ => identifier(&source.at("metric.name"), errors),
    }
    of_target(&target, errors);
    let average = target.at("averageValue");
    let utilization = target.at("averageUtilization");
    match field {
        "object" if !has("value") && !has("averageValue") => {
            errors.push(average.required("must set either a target value or averageValue"));
        }
        "external" if !has("value") && !has("averageValue") => {
            let why = "must set either a target value for metric or a per-pod target";
            errors.push(average.required(why));
        }
        "external" if has("value") && has("averageValue") => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.push(target.at("value").forbidden(why));
        }
        "pods" if !has("averageValue") => {
            errors.push(average.required("must specify a positive target averageValue"));
        }
        "resource" | "containerResource" => {
            if !has("averageUtilization") && !has("averageValue") {
                let why = "must set either a target raw value or a target utilization";
                errors.push(utilization.required(why));
            }
            if has("averageUtilization") && has("averageValue") {
                let why = "may not set both a target raw value and a target utilization";
                errors.push(average.forbidden(why));
            }
        }
        _ => {}
    }
}

fn identifier(name: &At<'_, '_>, errors: &mut Errors) {
    if name.text().is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        name.follows(names::path_segment, errors);
    }
}

fn resource_name(source: &At<'_, '_>, of_container: bool, errors: &mut Errors) {
    let name = source.at("name");
    let container = source.at("container");
    if name.text().is_empty() {
        errors.push(name.required("must specify a resource name"));
    } else if of_container {
        container_resource(name.text(), &name, errors);
    }
    if of_container && container.text().is_empty() {
        errors.push(container.required("must specify a container"));
    } else if of_container {
        container.follows(names::dns1123_label, errors);
    }
}

fn of_target(target: &At<'_, '_>, errors: &mut Errors) {
    let kind = target.at("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(kind.invalid_value(kind.text(), why));
    }
    for key in ["value", "averageValue"] {
        let amount = target.at(key);
        if Quantity::of(amount.value).is_some_and(|amount| !amount.is_positive()) {
            errors.push(amount.invalid("must be positive"));
        }
    }
    let utilization = target.at("averageUtilization");
    if utilization.number().is_some_and(|percent| percent < 1) {
        errors.push(utilization.invalid("must be greater than 0"));
    }
}
