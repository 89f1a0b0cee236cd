use std::sync::Arc;

use super::{Configuration, assemble};
use crate::framework::{Plugin, Points, Profile};
use crate::plugins::Handle;

fn parse(body: &str) -> Result<Configuration, String> {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    Configuration::parse(&format!("{head}{body}")).map_err(|error| error.to_string())
}

fn assembled(body: &str) -> Result<Vec<Arc<Profile>>, String> {
    let configuration = parse(body)?;
    let own: [Arc<dyn Plugin>; 1] = [Arc::new(Own)];
    let assembled = assemble(&configuration, &own, &Arc::new(Handle::default()));
    let mut profiles: Vec<_> =
        assembled.map_err(|error| error.to_string())?.profiles.into_values().collect();
    profiles.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(profiles)
}

fn names(profile: &Profile, point: Points) -> String {
    profile.at(point).map(|plugin| plugin.name()).collect::<Vec<_>>().join(" ")
}

struct Own;

impl Plugin for Own {
    fn name(&self) -> &'static str {
        "Own"
    }

    fn points(&self) -> Points {
        Points::SCORE
    }
}

#[test]
fn without_profiles_there_is_the_default_one_with_the_plugins_of_kubernetes() {
    let profiles = assembled("").unwrap();
    assert_eq!(profiles.len(), 1);
    assert_eq!(&**profiles[0].name(), "default-scheduler");
    let scores = "TaintToleration NodeAffinity NodeResourcesFit PodTopologySpread InterPodAffinity \
                  DynamicResources NodeResourcesBalancedAllocation ImageLocality Own";
    assert_eq!(names(&profiles[0], Points::SCORE), scores);
    let filters = "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts \
                   NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone \
                   PodTopologySpread InterPodAffinity DynamicResources";
    assert_eq!(names(&profiles[0], Points::FILTER), filters);
    assert_eq!(names(&profiles[0], Points::QUEUE_SORT), "PrioritySort");
}

#[test]
fn profiles_enable_and_disable_plugins_at_points_and_altogether() {
    let profiles = assembled(
        "
profiles:
- schedulerName: a
  plugins:
    score:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesFit, weight: 7}]
- schedulerName: b
  plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]
",
    )
    .unwrap();
    assert_eq!(names(&profiles[0], Points::SCORE), "NodeResourcesFit");
    assert!(names(&profiles[0], Points::FILTER).starts_with("NodeUnschedulable"));
    assert_eq!(names(&profiles[1], Points::FILTER), "NodeName");
    assert_eq!(names(&profiles[1], Points::SCORE), "");
    assert_eq!(names(&profiles[1], Points::BIND), "DefaultBinder");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let strategy = |text: &str| {
        format!(
            "profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: \
             {text}}}}}]}}]"
        )
    };
    for (body, part) in [
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: Invalid value: 101"),
        ("podMaxBackoffSeconds: 0", "must be greater than or equal to PodInitialBackoffSeconds"),
        ("podInitialBackoffSeconds: 0", "must be greater than 0"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "Duplicate value"),
        ("nonsense: 1", "unknown field `nonsense`"),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: Nothing}]}}}]",
            "plugin \"Nothing\" does not exist",
        ),
        ("profiles: [{plugins: {sieve: {}}}]", "no such extension point"),
        (
            "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]",
            "no queue sort plugin is enabled",
        ),
        (&strategy("{type: Best}"), "scoringStrategy.type: Invalid value: \"Best\""),
        (&strategy("{type: RequestedToCapacityRatio}"), "at least one point must be specified"),
        ("extenders: [{urlPrefix: x}]", "extenders[0].urlPrefix: Invalid value: \"x\": must be"),
        (
            "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]",
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]",
            "found more than one extender implementing bind",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', managedResources: [{name: a/b}, {name: a/b}]}]",
            "duplicate extender managed resource name",
        ),
        ("extenders: [{urlPrefix: 'http://x', httpTimeout: soon}]", "must be a duration"),
    ] {
        let refused = assembled(body).map(|_| ()).unwrap_err();
        assert!(refused.contains(part), "{body}: {refused}");
    }
    let refused = Configuration::parse("apiVersion: v1\nkind: Pod").unwrap_err().to_string();
    assert!(refused.starts_with("no kind \"Pod\" is registered for version \"v1\""), "{refused}");
}

#[test]
fn plugins_are_told_their_arguments() {
    let body = "
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
leaderElection: {leaderElect: false}
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio:
          shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
        resources: [{name: example.com/gpu, weight: 5}]
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 50}}
";
    assert_eq!(&**assembled(body).unwrap()[0].name(), "packing");
    let configuration = parse(body).unwrap();
    let backoff = configuration.backoff();
    assert_eq!((backoff.initial.as_secs(), backoff.max.as_secs()), (2, 20));
    assert_eq!(configuration.percentage(&configuration.profiles[0]), 30);
    assert!(!configuration.elects_leader());
}
