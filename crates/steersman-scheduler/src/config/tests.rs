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
                   PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures";
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
    for (body, part) in [
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: Invalid value: 101"),
        (
            "nonsense: 1\nprofiles: [{plugins: {sieve: {}}}]",
            "strict decoding error: unknown field \"nonsense\", unknown field \
             \"profiles[0].plugins.sieve\"",
        ),
        (
            "parallelism: 0",
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
        ),
        ("extenders: [{urlPrefix: x}]", "extenders[0].urlPrefix: Invalid value: \"x\": must be"),
        ("extenders: [{urlPrefix: 'http://x', httpTimeout: soon}]", "must be a duration"),
    ] {
        let refused = assembled(body).map(|_| ()).unwrap_err();
        assert!(refused.contains(part), "{body}: {refused}");
    }
    let refused = Configuration::parse("apiVersion: v1\nkind: Pod").unwrap_err().to_string();
    assert!(refused.starts_with("no kind \"Pod\" is registered for version \"v1\""), "{refused}");
}

#[test]
fn everything_that_is_wrong_with_a_configuration_is_said_at_once_in_the_words_of_kubernetes() {
    for (body, expected) in [
        (
            "podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -5\nclientConnection: {burst: -1}",
            "[clientConnection.burst: Invalid value: -1: must be non-negative, \
             podInitialBackoffSeconds: Invalid value: 0: must be greater than 0, \
             podMaxBackoffSeconds: Invalid value: -5: must be greater than or equal to \
             PodInitialBackoffSeconds]",
        ),
        (
            "leaderElection: {leaseDuration: 10s, retryPeriod: -1s, resourceLock: configmap}",
            "[leaderElection.retryPeriod: Invalid value: \"-1s\": must be greater than zero, \
             leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than \
             `RenewDeadline`, leaderElection.resourceLock: Invalid value: \"configmap\": \
             resourceLock value must be \"leases\"]",
        ),
        (
            "leaderElection: {leaderElect: false, renewDeadline: soon}",
            "leaderElection.renewDeadline: Invalid value: \"soon\": must be a duration",
        ),
        (
            "profiles: [{schedulerName: a}, {percentageOfNodesToScore: -1}]",
            "[profiles[1].schedulerName: Required value, profiles[1].percentageOfNodesToScore: \
             Invalid value: -1: not in valid range [0-100]]",
        ),
        ("profiles: [{schedulerName: ''}]", "profiles[0].schedulerName: Required value"),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles[1].schedulerName: Duplicate value: {}",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: b, \
             plugins: {queueSort: {enabled: [{name: Sort}], disabled: [{name: '*'}]}}}]",
            "profiles[1].plugins.queueSort: Invalid value: {\"Enabled\":[{\"Name\":\"Sort\",\
             \"Weight\":0}],\"Disabled\":[{\"Name\":\"*\",\"Weight\":0}]}: must be the same for all \
             profiles",
        ),
        (
            "profiles: [{plugins: {score: {enabled: [{name: EBSLimits}]}}}]",
            "profiles[0].plugins.score.enabled[0]: Invalid value: \"EBSLimits\": was invalid in \
             version \"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version \
             \"kubescheduler.config.k8s.io/v1\")",
        ),
        (
            "parallelism: 0",
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p, bindVerb: b, \
             managedResources: [{name: cpu}]}, {urlPrefix: 'http://y', bindVerb: b, \
             managedResources: [{name: a/b}, {name: a/b}]}]",
            "[extenders[0].weight: Invalid value: 0: must have a positive weight applied to it, \
             extenders[0].managedResources[0].name: Invalid value: \"cpu\": is an invalid extended \
             resource name, extenders[1].managedResources[1].name: Invalid value: \"a/b\": duplicate \
             extender managed resource name, extenders: Invalid value: \"found 2 extenders \
             implementing bind\": only one extender can implement bind]",
        ),
    ] {
        assert_eq!(parse(body).map(drop).unwrap_err(), expected, "{body}");
    }
    let quiet = "leaderElection: {leaderElect: false, leaseDuration: 1s}";
    assert!(parse(quiet).is_ok(), "nobody is elected");
}

#[test]
fn a_profile_that_cannot_be_made_is_refused_in_the_words_of_kubernetes() {
    let start = "initializing profiles: creating profile for scheduler name default-scheduler:";
    for (plugins, expected) in [
        ("filter: {enabled: [{name: Nothing}]}", "FilterPlugin \"Nothing\" does not exist"),
        ("multiPoint: {enabled: [{name: Nothing}]}", "PreFilterPlugin \"Nothing\" does not exist"),
        (
            "filter: {enabled: [{name: ImageLocality}]}",
            "plugin \"ImageLocality\" does not extend FilterPlugin plugin",
        ),
        (
            "score: {enabled: [{name: Own}, {name: Own}]}",
            "plugin \"Own\" already registered as \"ScorePlugin\"",
        ),
        (
            "multiPoint: {enabled: [{name: Own}, {name: Own}]}",
            "plugin \"Own\" already registered as \"ScorePlugin\"",
        ),
        (
            "queueSort: {disabled: [{name: '*'}]}",
            "only one queue sort plugin required for profile with scheduler name \
             \"default-scheduler\", but got 0",
        ),
        (
            "bind: {disabled: [{name: DefaultBinder}]}",
            "at least one bind plugin is needed for profile with scheduler name \
             \"default-scheduler\"",
        ),
    ] {
        let refused = assembled(&format!("profiles: [{{plugins: {{{plugins}}}}}]")).map(drop);
        assert_eq!(refused.unwrap_err(), format!("{start} {expected}"), "{plugins}");
    }
    let of_old = "preFilter: {enabled: [{name: NodeResourcesFit}]}, \
                  preScore: {enabled: [{name: TaintToleration}]}";
    assert!(assembled(&format!("profiles: [{{plugins: {{{of_old}}}}}]")).is_ok());
}

#[test]
fn plugins_that_are_named_at_a_point_come_first_there() {
    let scores = |plugins: &str| {
        let profile = "multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, \
                       {name: DefaultBinder}, {name: NodeAffinity}, {name: TaintToleration, weight: \
                       3}, {name: Own}]}";
        let body = format!("profiles: [{{plugins: {{{profile}, {plugins}}}}}]");
        names(&assembled(&body).unwrap()[0], Points::SCORE)
    };
    for (score, order) in [
        ("disabled: []", "NodeAffinity TaintToleration Own"),
        ("enabled: [{name: Own}, {name: TaintToleration}]", "Own TaintToleration NodeAffinity"),
        (
            "enabled: [{name: ImageLocality}, {name: Own}]",
            "Own NodeAffinity TaintToleration ImageLocality",
        ),
        (
            "disabled: [{name: NodeAffinity}], enabled: [{name: NodeAffinity}]",
            "TaintToleration Own NodeAffinity",
        ),
        ("disabled: [{name: '*'}], enabled: [{name: Own}]", "Own"),
    ] {
        assert_eq!(scores(&format!("score: {{{score}}}")), order, "{score}");
    }
    let body = "profiles: [{plugins: {filter: {enabled: [{name: NodeResourcesFit}]}}}]";
    let profiles = assembled(body).unwrap();
    assert!(names(&profiles[0], Points::FILTER).starts_with("NodeResourcesFit NodeUnschedulable"));
    assert!(names(&profiles[0], Points::SCORE).starts_with("TaintToleration NodeAffinity"));
}

#[test]
fn a_plugin_that_is_named_without_a_weight_counts_once() {
    for (plugins, expected) in [
        ("multiPoint: {}", 3),
        ("multiPoint: {enabled: [{name: TaintToleration}]}", 1),
        ("multiPoint: {enabled: [{name: TaintToleration, weight: 7}]}", 7),
        ("score: {enabled: [{name: TaintToleration}]}", 1),
        (
            "score: {enabled: [{name: TaintToleration, weight: 5}]}, \
             multiPoint: {enabled: [{name: TaintToleration, weight: 7}]}",
            5,
        ),
    ] {
        let profiles = assembled(&format!("profiles: [{{plugins: {{{plugins}}}}}]")).unwrap();
        assert_eq!(profiles[0].weight("TaintToleration"), Some(expected), "{plugins}");
    }
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

/// Why a plug-in cannot be told this.
fn refused(plugin: &str, args: &str) -> String {
    let config = format!("{{name: {plugin}, args: {args}}}");
    assembled(&format!("profiles: [{{pluginConfig: [{config}]}}]")).map(drop).unwrap_err()
}

#[test]
fn arguments_that_nobody_reads_are_refused() {
    let unknown = |plugin: &str, fields: &str| {
        format!(
            "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: \
             decoding args for plugin {plugin}: strict decoding error: {fields}"
        )
    };
    for (plugin, args, fields) in [
        ("NodeResourcesFit", "{scoringStrategyy: {}}", "unknown field \"scoringStrategyy\""),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {requestedToCapacityRatio: {shape: [{Score: 2, Utilization: 1}]}}}",
            "unknown field \"scoringStrategy.requestedToCapacityRatio.shape[0].Score\", unknown \
             field \"scoringStrategy.requestedToCapacityRatio.shape[0].Utilization\"",
        ),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkeww: 1}]}",
            "unknown field \"defaultConstraints[0].maxSkeww\"",
        ),
    ] {
        assert_eq!(refused(plugin, args), unknown(plugin, fields));
    }
    let other = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs}";
    assert_eq!(
        refused("DefaultPreemption", other),
        "decoding .profiles[0].pluginConfig[0]: args for plugin DefaultPreemption were not of type \
         DefaultPreemptionArgs.kubescheduler.config.k8s.io, got \
         InterPodAffinityArgs.kubescheduler.config.k8s.io"
    );
    let number = refused("InterPodAffinity", "{hardPodAffinityWeight: much}");
    let expected =
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity";
    assert!(number.starts_with(expected), "{number}");
    let ours =
        "profiles: [{pluginConfig: [{name: Own, args: {whatever: 1}}, {name: NodeAffinity}]}]";
    assert!(assembled(ours).is_ok());
}

#[test]
fn arguments_are_looked_at_as_in_kubernetes() {
    let at = "profiles[0].pluginConfig[0].args";
    for (plugin, args, expected) in [
        (
            "InterPodAffinity",
            "{hardPodAffinityWeight: 900}",
            format!("{at}.hardPodAffinityWeight: Invalid value: 900: not in valid range [0, 100]"),
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            format!(
                "[{at}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same \
                 time as minCandidateNodesAbsolute, {at}.minCandidateNodesAbsolute: Invalid value: \
                 0: cannot be zero at the same time as minCandidateNodesPercentage]"
            ),
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: zone, \
             whenUnsatisfiable: Foo, labelSelector: {}}]}",
            format!(
                "[{at}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), \
                 {at}.defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Foo\": supported \
                 values: \"DoNotSchedule\", \"ScheduleAnyway\", \
                 {at}.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a \
                 selector, as they deduced for each pod]"
            ),
        ),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            format!(
                "{at}.defaultingType: Invalid value: \"System\": when .defaultConstraints are not \
                 empty"
            ),
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}",
            format!("{at}.resources[0].weight: Invalid value: 2: must be 1"),
        ),
        (
            "VolumeBinding",
            "{bindTimeoutSeconds: -1}",
            format!(
                "{at}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not \
                 be a negative value"
            ),
        ),
        (
            "DynamicResources",
            "{bindingTimeout: 10ms}",
            format!("{at}.bindingTimeout: Invalid value: \"10ms\": must be at least 1 second"),
        ),
    ] {
        assert_eq!(refused(plugin, args), expected);
    }
    let twice = "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]";
    let expected = "profiles[0].pluginConfig[1]: Duplicate value: \"NodeAffinity\"";
    assert_eq!(assembled(twice).map(drop).unwrap_err(), expected);
}

#[test]
fn an_added_affinity_is_looked_at_term_by_term() {
    let at = "profiles[0].pluginConfig[0].args.addedAffinity.\
              requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions";
    let terms = "[{matchExpressions: [{key: a, operator: Foo}, {key: a, operator: In}]}]";
    let args = format!(
        "{{addedAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: \
         {terms}}}}}}}"
    );
    let expected = format!(
        "[{at}[0].operator: Unsupported value: \"Foo\": supported values: \"In\", \"NotIn\", \
         \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\", {at}[1].values: Invalid value: null: for \
         'in', 'notin' operators, values set can't be empty]"
    );
    assert_eq!(refused("NodeAffinity", &args), expected);
}

#[test]
fn how_nodes_are_to_be_filled_is_looked_at_when_the_plugin_is_made() {
    let at = "initializing profiles: creating profile for scheduler name default-scheduler: \
              initializing plugin \"NodeResourcesFit\": scoringStrategy";
    for (strategy, expected) in [
        (
            "{type: Best}",
            "type: Unsupported value: \"Best\": supported values: \"LeastAllocated\", \
             \"MostAllocated\", \"RequestedToCapacityRatio\"",
        ),
        (
            "{type: RequestedToCapacityRatio}",
            "requestedToCapacityRatio: Required value: must be specified when type is \
             RequestedToCapacityRatio",
        ),
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}",
            "requestedToCapacityRatio.shape: Required value: at least one point must be specified",
        ),
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, \
             score: 11}]}}",
            "requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
        ),
        (
            "{type: MostAllocated, resources: [{name: cpu, weight: 101}]}",
            "resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, \
             100]",
        ),
    ] {
        let args = format!("{{scoringStrategy: {strategy}}}");
        assert_eq!(refused("NodeResourcesFit", &args), format!("{at}.{expected}"));
    }
}
