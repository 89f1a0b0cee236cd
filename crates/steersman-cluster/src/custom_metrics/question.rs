//! What is asked: the paths of both APIs, which are like no others of Kubernetes.

use steersman_apiserver::request::{Query, Segment};
use steersman_apiserver::status::{Result, Status};
use steersman_values::LabelSelector;

use super::{CUSTOM, EXTERNAL, VERSIONS};

/// What somebody wants to know.
#[derive(Debug)]
pub(super) enum Question {
    /// Which metrics there are.
    Discovery { group: &'static str, version: &'static str },
    /// A metric of objects.
    Objects(Objects),
    /// A metric from outside the cluster.
    External { namespace: String, metric: String, series: LabelSelector },
}

/// A metric of objects.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) version: &'static str,
    /// With its group.
    pub(super) resource: String,
    /// Empty for objects of the cluster.
    pub(super) namespace: String,
    /// Of which objects.
    pub(super) which: Which,
    pub(super) metric: String,
    /// Which of its series.
    pub(super) series: LabelSelector,
}

/// Of which objects a metric is wanted.
#[derive(Debug)]
pub(super) enum Which {
    Named(String),
    /// Those with labels that this selector fits, as a text.
    Labelled(String),
}

impl Question {
    /// Reads a path and a query.
    pub(super) fn of(path: &[Segment<'_>], query: &Query) -> Result<Self> {
        let [apis, group, version, rest @ ..] = path else {
            return Err(Status::no_such_resource());
        };
        let served = VERSIONS.iter().find(|(g, v, _)| g == group && v == version);
        let Some((group, version, _)) = served.filter(|_| apis == "apis") else {
            return Err(Status::no_such_resource());
        };
        let rest: Vec<&str> = rest.iter().map(|part| &**part).collect();
        match (*group, &rest[..]) {
            (group, []) => Ok(Self::Discovery { group, version }),
            (EXTERNAL, ["namespaces", namespace, metric]) => Ok(Self::External {
                namespace: (*namespace).to_owned(),
                metric: (*metric).to_owned(),
                series: selector(query, "labelSelector")?,
            }),
            (CUSTOM, rest) => objects(version, rest, query).map(Self::Objects),
            _ => Err(Status::no_such_resource()),
        }
    }
}

fn objects(version: &'static str, path: &[&str], query: &Query) -> Result<Objects> {
    let (namespace, resource, name, metric) = match *path {
        // A metric of the namespace itself.
        ["namespaces", namespace, "metrics", metric] => ("", "namespaces", namespace, metric),
        ["namespaces", namespace, resource, name, metric] => (namespace, resource, name, metric),
        [resource, name, metric] => ("", resource, name, metric),
        _ => return Err(Status::no_such_resource()),
    };
    let which = match name {
        "*" => Which::Labelled(query.text("labelSelector").unwrap_or_default().to_owned()),
        name => Which::Named(name.to_owned()),
    };
    Ok(Objects {
        version,
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        which,
        metric: metric.to_owned(),
        series: selector(query, "metricLabelSelector")?,
    })
}

fn selector(query: &Query, name: &str) -> Result<LabelSelector> {
    let text = query.text(name).unwrap_or_default();
    LabelSelector::parse(text).map_err(|error| Status::bad_request(error.to_string()))
}
