use super::*;
use crate::field::messages;

fn template() -> Value {
    json!({"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "busybox:1"}],
    }})
}

fn job(spec: Value) -> Value {
    let mut job = json!({"metadata": {"name": "j", "uid": "u-1"}});
    job["spec"] = spec;
    if job["spec"]["template"].is_null() {
        job["spec"]["template"] = template();
    }
    RULES.fill_in(&mut job);
    RULES.prepare_create(&mut job);
    job
}

#[test]
fn generated_labels_are_held_against_name_and_uid() {
    let mut job = job(json!({}));
    job["metadata"]["name"] = Value::Null;
    for key in ["job-name", "batch.kubernetes.io/job-name"] {
        job["spec"]["template"]["metadata"]["labels"][key] = "".into();
    }
    let complaints = |job: &Value| {
        let mut errors = Errors::default();
        generated_selector(job, &Value::Null, &mut errors);
        messages(&errors)
    };
    assert_eq!(complaints(&job), [""; 0]);
    job["metadata"]["name"] = "k".into();
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    let expected = ["job-name", "batch.kubernetes.io/job-name"].map(|key| {
        format!("spec.template.metadata.labels[{key}]: Invalid value: {labels}: must be 'k'")
    });
    assert_eq!(complaints(&job), expected);
}

#[test]
fn a_changed_job_still_carries_its_labels() {
    let old = job(json!({"suspend": true}));
    let mut new = old.clone();
    new["spec"]["template"]["metadata"]["labels"]["job-name"] = json!("other");
    let labels = &new["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        messages(&RULES.validate_update(&old, &new)),
        [format!("spec.template.metadata.labels[job-name]: Invalid value: {labels}: must be 'j'")]
    );
    // A job that is older than the labels with a prefix has none.
    let mut old = old;
    let labels = old["spec"]["template"]["metadata"]["labels"].as_object_mut().unwrap();
    labels.retain(|key, _| !key.starts_with(PREFIX));
    old["spec"]["selector"] = json!({"matchLabels": {"controller-uid": "u-1"}});
    assert_eq!(messages(&RULES.validate_update(&old, &old)), [""; 0]);
    assert_eq!(RULES.validate_create(&old).len(), 2);
}

#[test]
fn a_selector_is_held_against_labels_only_if_it_is_sound() {
    let selecting = |selector: Value| {
        let mut job = job(json!({"manualSelector": true}));
        job["spec"]["selector"] = selector;
        messages(&RULES.validate_create(&job))
    };
    let mismatch = "spec.template.metadata.labels: Invalid value: null: `selector` does not match \
                    template `labels`";
    assert_eq!(selecting(Value::Null), ["spec.selector: Required value", mismatch]);
    assert_eq!(selecting(json!({"matchLabels": {"a": "b"}})), [mismatch]);
    assert_eq!(
        selecting(json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})),
        [
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector \
          operator"
        ]
    );
}

#[test]
fn mistakes_in_the_spec_of_a_changed_job_are_told_twice() {
    let old = job(json!({}));
    let mut new = old.clone();
    new["spec"]["parallelism"] = json!(-1);
    let mistake = "spec.parallelism: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(messages(&RULES.validate_update(&old, &new)), [mistake, mistake]);
}

#[test]
fn a_job_selects_the_pods_that_carry_its_uid() {
    let job = job(json!({}));
    let spec = &job["spec"];
    assert_eq!(
        spec["selector"]["matchLabels"],
        json!({"batch.kubernetes.io/controller-uid": "u-1"})
    );
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(labels["controller-uid"], "u-1");
    assert_eq!(labels["batch.kubernetes.io/job-name"], "j");
    for (key, value) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        assert_eq!(spec[key], value, "{key}");
    }
    assert_eq!(messages(&RULES.validate_create(&job)), Vec::<String>::new());
}

#[test]
fn a_job_keeps_parallelism_without_completions() {
    let job = job(json!({"parallelism": 3}));
    assert!(job["spec"]["completions"].is_null());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn mistakes_of_a_job_are_named_as_kubernetes_names_them() {
    let indexed = |extra: Value| {
        let mut spec = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 2});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        spec
    };
    let rule = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let cases: Vec<(Value, Vec<&str>)> = vec![
        (
            json!({"parallelism": -1}),
            vec!["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            vec![
                "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\
                 \"batch.kubernetes.io/controller-uid\":\"u-1\"}}: `selector` not auto-generated",
                "spec.template.metadata.labels: Invalid value: \
                 {\"batch.kubernetes.io/controller-uid\":\"u-1\",\
                 \"batch.kubernetes.io/job-name\":\"j\",\"controller-uid\":\"u-1\",\
                 \"job-name\":\"j\"}: `selector` does not match template `labels`",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "parallelism": 1}),
            vec!["spec.completions: Required value: when completion mode is Indexed"],
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            vec!["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            indexed(json!({"maxFailedIndexes": 6})),
            vec![
                "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
                "spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to \
                 completions",
            ],
        ),
        (
            indexed(json!({"parallelism": 100_001})),
            vec![
                "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 \
                 when completion mode is Indexed",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "parallelism": 100_001}),
            vec![
                "spec.completions: Required value: when completion mode is Indexed",
                "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 \
                 when completion mode is Indexed",
            ],
        ),
        (
            indexed(json!({
                "completions": 100_001, "parallelism": 10_001, "backoffLimitPerIndex": 1,
            })),
            vec![
                "spec.maxFailedIndexes: Required value: must be specified when completions is \
                 above 100000",
                "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when \
                 completions are above 100000 and used with backoff limit per index",
            ],
        ),
        (
            json!({"completionMode": "", "backoffLimitPerIndex": 1}),
            vec![
                "spec.completionMode: Unsupported value: \"\": supported values: \"NonIndexed\", \
                 \"Indexed\"",
            ],
        ),
        (
            indexed(json!({"successPolicy": {"rules": []}})),
            vec![
                "spec.successPolicy.rules: Required value: at least one rules must be specified \
                 when the successPolicy is specified",
            ],
        ),
        (
            indexed(json!({"successPolicy": {"rules": [{"succeededIndexes": "3-1"}]}})),
            vec![
                "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"3-1\": error \
                 parsing succeededIndexes: non-increasing order, previous: 3, current: 1",
            ],
        ),
        (
            indexed(json!({"successPolicy": {"rules": [
                {"succeededIndexes": "0,2-3", "succeededCount": 4},
            ]}})),
            vec![
                "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than \
                 or equal to 3 (the number of indexes in the specified succeededIndexes field)",
            ],
        ),
        (
            rule(json!({"action": "FailIndex", "onPodConditions": [{"type": "X"}]})),
            vec![
                "spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires \
                 the backoffLimitPerIndex to be set",
            ],
        ),
        (
            rule(json!({"action": "Ignore"})),
            vec![
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes \
                 and OnPodConditions is required",
            ],
        ),
        (
            rule(json!({"action": "Count", "onExitCodes": {
                "operator": "In", "values": [2, 1, 0, 1], "containerName": "x",
            }})),
            vec![
                "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"x\": \
                 must be one of the container or initContainer names in the pod template",
                "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Invalid value: 0: must \
                 not be 0 for the In operator",
                "spec.podFailurePolicy.rules[0].onExitCodes.values[3]: Duplicate value: 1",
                "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1,0,1]: \
                 must be ordered",
            ],
        ),
        (
            json!({"podReplacementPolicy": "Now"}),
            vec![
                "spec.podReplacementPolicy: Unsupported value: \"Now\": supported values: \
                 \"Failed\", \"TerminatingOrFailed\"",
            ],
        ),
        (
            json!({"managedBy": "me"}),
            vec![
                "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed path (such as \
                 \"acme.io/foo\")",
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(messages(&RULES.validate_create(&job(spec.clone()))), expected, "{spec}");
    }
}

#[test]
fn the_pods_of_a_job_must_be_able_to_end() {
    let mut always = job(json!({}));
    always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(
        messages(&RULES.validate_create(&always)),
        ["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \
          \"Never\""]
    );
    let mut long = job(json!({"completionMode": "Indexed", "completions": 1000}));
    long["metadata"]["name"] = json!("n".repeat(61));
    let fields: Vec<_> = RULES.validate_create(&long).into_iter().map(|e| e.field).collect();
    assert!(fields.contains(&"metadata.name".to_owned()), "{fields:?}");
}

#[test]
fn the_template_of_a_job_may_change_only_while_it_rests() {
    let old = job(json!({}));
    let mut suspended = old.clone();
    suspended["spec"]["suspend"] = json!(true);
    let mut running = suspended.clone();
    running["status"] = json!({"startTime": "2030-01-01T00:00:00Z", "active": 1});

    let with = |base: &Value, key: &str, value: Value| {
        let mut new = base.clone();
        new["spec"]["template"]["spec"][key] = value;
        new
    };
    let mut resources = suspended.clone();
    resources["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "1"}});
    let mut image = suspended.clone();
    image["spec"]["template"]["spec"]["containers"][0]["image"] = json!("busybox:2");
    let selector = json!({"a": "b"});
    for (old, new, field) in [
        (&old, with(&old, "nodeSelector", selector.clone()), Some("spec.template")),
        (&running, with(&running, "nodeSelector", selector.clone()), Some("spec.template")),
        (&suspended, with(&suspended, "nodeSelector", selector), None),
        (&suspended, resources, None),
        (&suspended, image, Some("spec.template.spec")),
    ] {
        let errors = RULES.validate_update(old, &new);
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, field.into_iter().collect::<Vec<_>>(), "{new}");
        let shown = r#""InitContainers":null,"Containers":[{"Name":""#;
        assert!(errors.iter().all(|error| error.text.contains(shown)), "{errors:?}");
        assert!(errors.iter().all(|error| error.text.ends_with("field is immutable")));
    }
}

#[test]
fn completions_of_an_indexed_job_change_with_its_parallelism() {
    let plain = job(json!({"completions": 3}));
    let mut more = plain.clone();
    more["spec"]["completions"] = json!(4);
    assert_eq!(
        messages(&RULES.validate_update(&plain, &more)),
        ["spec.completions: Invalid value: 4: field is immutable"]
    );
    let indexed = job(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3}));
    let mut more = indexed.clone();
    more["spec"]["completions"] = json!(4);
    assert_eq!(
        messages(&RULES.validate_update(&indexed, &more)),
        ["spec.completions: Invalid value: 4: can only be modified in tandem with \
          spec.parallelism"]
    );
    more["spec"]["parallelism"] = json!(4);
    assert!(RULES.validate_update(&indexed, &more).is_empty());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn a_status_may_not_contradict_itself() {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let complete = json!([condition("SuccessCriteriaMet"), condition("Complete")]);
    let time = "2030-01-01T00:00:00Z";
    let indexed = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 5});
    let cases: Vec<(Value, Value, Value, Vec<&str>)> = vec![
        (json!({}), json!({}), json!({"active": 1, "ready": 1, "startTime": time}), vec![]),
        (
            json!({}),
            json!({}),
            json!({"startTime": time, "completionTime": time, "conditions": complete}),
            vec![],
        ),
        (
            json!({}),
            json!({}),
            json!({"ready": 1}),
            vec!["status.ready: Invalid value: 1: cannot set more ready pods than active"],
        ),
        (
            json!({}),
            json!({}),
            json!({"startTime": time, "conditions": [condition("Failed")]}),
            vec![
                "status.conditions: Invalid value: cannot set Failed=True condition without the \
                 FailureTarget=true condition",
            ],
        ),
        (
            json!({}),
            json!({"failed": 2}),
            json!({"failed": 1}),
            vec!["status.failed: Invalid value: 1: cannot decrease the failed counter"],
        ),
        (
            json!({}),
            json!({}),
            json!({"startTime": time, "active": 1, "conditions": complete}),
            vec![
                "status.completionTime: Required value: completionTime is required for Complete \
                 jobs",
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
            ],
        ),
        (
            json!({}),
            json!({}),
            json!({"completedIndexes": "1"}),
            vec![
                "status.completedIndexes: Invalid value: \"1\": error parsing completedIndexes: \
                 too large index: \"1\"",
                "status.completedIndexes: Invalid value: \"1\": cannot set non-empty \
                 completedIndexes when non-indexed completion mode",
            ],
        ),
        (
            indexed,
            json!({}),
            json!({"completedIndexes": "1-3", "failedIndexes": "3"}),
            vec![
                "status.failedIndexes: Invalid value: \"3\": cannot set non-null failedIndexes \
                 when backoffLimitPerIndex is null",
                "status.failedIndexes: Invalid value: \"3\": failedIndexes and completedIndexes \
                 overlap at index: 3",
            ],
        ),
        (
            json!({}),
            json!({"startTime": time}),
            json!({"startTime": "2031-01-01T00:00:00Z"}),
            vec![
                "status.startTime: Invalid value: \"2031-01-01T00:00:00Z\": field is immutable \
                 for unsuspended job once set",
            ],
        ),
        (
            json!({}),
            json!({}),
            json!({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a", ""]}}),
            vec![
                "status.uncountedTerminatedPods.failed[0]: Duplicate value: \"a\"",
                "status.uncountedTerminatedPods.failed[1]: Invalid value: \"\": must not be empty",
            ],
        ),
    ];
    for (spec, old_status, new_status, expected) in cases {
        let mut old = job(spec);
        old["status"] = old_status;
        let mut new = old.clone();
        new["status"] = new_status.clone();
        assert_eq!(messages(&RULES.validate_status_update(&old, &new)), expected, "{new_status}");
    }
}

#[test]
fn contradictions_of_a_status_are_told_in_the_order_of_kubernetes() {
    let time = "2030-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let policy = json!({
        "completionMode": "Indexed", "completions": 1, "parallelism": 1,
        "successPolicy": {"rules": [{"succeededCount": 1}]},
    });
    let of = |why: &str| format!("status.conditions: Invalid value: {why}");
    let without =
        of("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    let cases: Vec<(Value, Value, Value, Vec<String>)> = vec![
        (
            policy.clone(),
            json!({}),
            json!({"conditions": [condition("Complete")], "terminating": 1}),
            vec![
                "status.completionTime: Required value: completionTime is required for Complete \
                 jobs"
                    .to_owned(),
                without,
                "status.startTime: Required value: startTime is required for finished job"
                    .to_owned(),
                "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"
                    .to_owned(),
                of("cannot set Complete=True for Job with SuccessPolicy unless \
                    SuccessCriteriaMet=True"),
            ],
        ),
        (
            policy,
            json!({"startTime": time, "completionTime": time, "failed": 2,
                   "conditions": [condition("Complete"), condition("FailureTarget")]}),
            json!({"startTime": time, "completionTime": time, "failed": 1,
                   "conditions": [condition("Complete"), condition("SuccessCriteriaMet")]}),
            vec![
                of("cannot disable the terminal FailureTarget=True condition"),
                "status.failed: Invalid value: 1: cannot decrease the failed counter".to_owned(),
                of("cannot set SuccessCriteriaMet=True for Job already has Complete=true \
                    conditions"),
            ],
        ),
    ];
    for (spec, old_status, new_status, expected) in cases {
        let mut old = job(spec);
        old["status"] = old_status;
        let mut new = old.clone();
        new["status"] = new_status.clone();
        assert_eq!(messages(&RULES.validate_status_update(&old, &new)), expected, "{new_status}");
    }
}
