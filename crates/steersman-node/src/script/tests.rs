use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::rules::Scripted;
use super::{Exit, Ready, Script, Scripts};

fn pod(annotations: &Value) -> Pod {
    let metadata = json!({
        "namespace": "default", "name": "web", "uid": "u1", "labels": {"app": "web"},
        "annotations": annotations,
    });
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

fn of<'a>(pod: &'a Pod, name: &'a str, image: &'a str) -> Scripted<'a> {
    Scripted { pod, name, image, main: name != "setup" }
}

fn exit(code: i32, seconds: u64) -> Option<Exit> {
    Some(Exit { code, after: Duration::from_secs(seconds), reason: None })
}

#[test]
fn containers_run_for_ever_unless_somebody_says_otherwise() {
    let pod = pod(&json!({"example.com/exit-code": "1"}));
    let script = Scripts::default().script(&of(&pod, "main", "nginx"));
    assert_eq!(script, Script::default());
    assert_eq!(script.exit(0), None);
    assert_eq!(script.ready(), Ready::After(Duration::ZERO));
    assert!(script.pullable());
}

#[test]
fn annotations_say_what_containers_do() {
    let pod = pod(&json!({
        "steersman.dev/exit-code": "1,1,0",
        "steersman.dev/runs-for": "1m30s",
        "steersman.dev/ready-after": "never",
        "steersman.dev/setup.exit-code": "2",
        "steersman.dev/slow.runs-for": "5s",
        "steersman.dev/slow.image-pull": "fails",
        "steersman.dev/termination": "soon",
        "steersman.dev/cpu": "250m",
        "steersman.dev/slow.memory": "64Mi",
        "steersman.dev/memory": "much",
    }));
    let scripts = Scripts::default();
    let main = scripts.script(&of(&pod, "main", "nginx"));
    assert_eq!(
        [0, 1, 2, 9].map(|n| main.exit(n)),
        [exit(1, 90), exit(1, 90), exit(0, 90), exit(0, 90)]
    );
    assert_eq!(main.ready(), Ready::Never);
    assert_eq!(main.termination(), None, "what is not understood is ignored");
    let setup = scripts.script(&of(&pod, "setup", "busybox"));
    assert_eq!((setup.exit(0), setup.pullable()), (exit(2, 0), true));
    let slow = scripts.script(&of(&pod, "slow", "nginx"));
    assert_eq!((slow.exit(0), slow.pullable()), (exit(1, 5), false));
    let usage = |script: &Script| {
        [script.cpu(), script.memory()].map(|amount| amount.map(|amount| amount.to_string()))
    };
    assert_eq!(usage(&main), [Some("250m".to_owned()), None]);
    assert_eq!(usage(&setup), [None, None]);
    assert_eq!(usage(&slow), [Some("250m".to_owned()), Some("64Mi".to_owned())]);
}

#[test]
fn the_name_of_an_image_says_what_its_containers_do() {
    let pod = pod(&json!({}));
    let script = |image: &str| Scripts::default().script(&of(&pod, "main", image));
    for (image, expected) in [
        ("steersman.dev/exit", exit(0, 0)),
        ("steersman.dev/exit:3", exit(3, 0)),
        ("steersman.dev/exit:0-after-90s", exit(0, 90)),
        ("steersman.dev/other:3", None),
        ("example.com/steersman.dev/exit:3", None),
    ] {
        assert_eq!(script(image).exit(0), expected, "{image}");
    }
    assert_eq!(script("steersman.dev/never-ready:1").ready(), Ready::Never);
    assert!(!script("steersman.dev/unpullable").pullable());
}

#[test]
fn rules_count_more_than_annotations_and_later_ones_more_than_earlier_ones() {
    let pod = pod(&json!({"steersman.dev/exit-code": "1", "steersman.dev/runs-for": "9s"}));
    let scripts = Scripts::default();
    let exits = |name: &str| scripts.script(&of(&pod, name, "nginx")).exit(0);
    scripts.rule().named("other").exits(7);
    scripts.rule().labelled("app", "other").exits(7);
    assert_eq!(exits("main"), exit(1, 9));
    scripts.rule().labelled("app", "web").exits(3).after(Duration::from_secs(5));
    assert_eq!(exits("main"), exit(3, 5));
    assert_eq!(exits("setup"), None, "init containers are meant only by name");
    let before = scripts.fork();
    scripts.rule().named("web").container("setup").exits(4);
    scripts.rule().named("web").run_for_ever();
    assert_eq!((exits("main"), exits("setup")), (None, exit(4, 0)));
    assert_eq!(before.script(&of(&pod, "main", "nginx")).exit(0), exit(3, 5));
}

#[test]
fn a_rule_can_be_for_the_first_pods_only() {
    let scripts = Scripts::default();
    scripts.rule().labelled("app", "web").times(2).exits(1);
    let exits = |uid: &str| {
        let mut pod = pod(&json!({}));
        pod.metadata.uid = Some(uid.into());
        scripts.script(&of(&pod, "main", "nginx")).exit(0)
    };
    assert_eq!(
        ["a", "b", "a", "c", "b"].map(exits),
        [exit(1, 0), exit(1, 0), exit(1, 0), None, exit(1, 0)]
    );
}
