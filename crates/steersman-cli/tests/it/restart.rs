//! A cluster on disk outlives the program.

use crate::load::{self, Load};
use crate::program::{Program, steersman};
use crate::workload::{deploy, eventually, pods, roll, rolled_out};

#[test]
fn everything_is_there_again_after_a_restart() {
    let mut program = Program::up_on_disk(&[]);
    program.says("create deployment web --image=nginx --replicas=3", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    let pods = |program: &Program| {
        let columns = ":metadata.uid,:status.startTime,:spec.nodeName,:status.podIP";
        program.says(&format!("get pods --no-headers -o custom-columns={columns}"), &[])
    };
    let before = pods(&program);
    let token = program.says("create token default", &[]);
    let handed_out = program.directory.join("handed-out");
    std::fs::copy(program.directory.join("kubeconfig"), &handed_out).unwrap();

    program.stop();
    let said = program.start_again();
    assert!(said.contains("replayed") && said.contains("data"), "{said}");
    program.says(&format!("get nodes --kubeconfig={}", handed_out.display()), &["node-0"]);
    let bearing = program.bearing(&token);
    program.says(&format!("auth whoami {bearing}"), &["system:serviceaccount:default:default"]);
    program.says("scale deployment/web --replicas=4", &[]); // and the controllers are at work
    program.says("rollout status deployment/web --timeout=60s", &[]);
    let after = pods(&program);
    for pod in before.lines() {
        assert!(after.contains(pod), "{pod} does not run on as it was:\n{after}");
    }
    assert_eq!(after.split_whitespace().count(), 4 * 4, "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_program_is_killed_and_rollouts_go_on() {
    let mut program = Program::up_on_disk(&[]);
    let mut client = program.kube().await;
    deploy(&client, "web", 5).await;
    rolled_out(&client, "web", 5).await;
    let mut acknowledged = std::collections::BTreeSet::new();
    for round in 0..4 {
        let mut load = Load::start(std::slice::from_ref(&client), 8, &format!("round-{round}"));
        load.passes(100).await;
        let replicas = 6 + round;
        roll(&client, "web", replicas, &format!("nginx:{round}")).await;
        load.passes(10 + 40 * usize::try_from(round).unwrap()).await; // at another stage each time
        program.kill();
        acknowledged.append(&mut load.end());

        program.start_again();
        client = program.kube().await;
        load::assert_kept(&client, &acknowledged).await;
        rolled_out(&client, "web", replicas).await;
    }
    // Those of earlier kinds take their time to end.
    eventually("only the latest Pods are left", || async { pods(&client).await.len() == 9 }).await;
    let before = pods(&client).await;
    program.stop();
    program.start_again();
    let client = program.kube().await;
    rolled_out(&client, "web", 9).await;
    assert_eq!(pods(&client).await, before, "no Pod was made anew");
}

#[test]
fn a_directory_in_use_is_refused_with_what_to_do() {
    let program = Program::up_on_disk(&["--nodes", "0", "--sync=off"]);
    let data = program.directory.join("data").display().to_string();
    let kubeconfig = program.directory.join("second").display().to_string();
    let second =
        ["up", "--listen", "127.0.0.1:0", "--data-dir", &data, "--kubeconfig", &kubeconfig];
    let output = steersman(&second).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    let pid = program.child.id().to_string();
    for part in [data.as_str(), &pid, "in use", "--data-dir", "--memory"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    program.says("get ns default", &["Active"]); // and it goes on
}

#[test]
fn damage_is_told_with_its_place_and_never_served() {
    let mut program = Program::up_on_disk(&["--nodes", "0"]);
    program.says("create configmap a --from-literal=colour=blue", &[]);
    program.says("create configmap b --from-literal=colour=green", &[]);
    program.stop();
    let data = program.directory.join("data");
    let log = std::fs::read_dir(&data).unwrap().map(|file| file.unwrap().path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|it| it == "log")).unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(4).position(|word| word == b"blue").unwrap();
    bytes[at] = b'g';
    std::fs::write(&log, bytes).unwrap();

    let data = data.display().to_string();
    let kubeconfig = program.directory.join("kubeconfig").display().to_string();
    let again = ["up", "--listen", "127.0.0.1:0", "--data-dir", &data, "--kubeconfig", &kubeconfig];
    let output = steersman(&again).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    for part in [log.to_str().unwrap(), "damaged at byte", "steersman snapshot restore"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
