//! etcd in trouble, as clients of the program see it.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use steersman::informer::Informer;
use tokio::time::{Instant, timeout};

use crate::etcd_process::Etcd;
use crate::load::{self, Load};
use crate::program::{PATIENCE, Program};
use crate::workload::{assert_equal, deploy, eventually, roll, rolled_out};

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map
}

/// The code with which a request is refused.
async fn refused<T: std::fmt::Debug>(request: impl Future<Output = kube::Result<T>>) -> u16 {
    let answer = timeout(PATIENCE, request).await.expect("every request is answered");
    match answer {
        Err(kube::Error::Api(status)) => {
            assert!(!status.message.is_empty(), "{status:?}");
            status.code
        }
        other => panic!("not a refusal: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_of_etcd_is_answered_clearly_and_survived() {
    let etcd = Etcd::start().await;
    let mut program = Program::up_on_etcd(&etcd.endpoints(), &[]);
    let client = program.kube().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let cache = Informer::<ConfigMap>::builder(client.clone()).start();
    deploy(&client, "web", 2).await;
    rolled_out(&client, "web", 2).await;
    let mut load = Load::start(std::slice::from_ref(&client), 4, "load");
    load.passes(50).await;

    etcd.pause(0);
    let (post, list) = (PostParams::default(), ListParams::default());
    let (written, read) = (map("during"), maps.list(&list));
    // Both wait for etcd as long as a request may, which is ten seconds.
    let (write, read) = tokio::join!(refused(maps.create(&post, &written)), refused(read));
    assert!([500, 503, 504].contains(&write), "{write}");
    assert!([500, 503, 504].contains(&read), "{read}");
    let known = maps.list(&ListParams::default().match_any()).await.unwrap();
    assert!(known.items.len() >= 50, "what is known can be read");
    etcd.resume(0);

    load.passes(50).await;
    roll(&client, "web", 4, "nginx:2").await;
    rolled_out(&client, "web", 4).await; // by the controllers of a server that lost its lease
    load::assert_kept(&client, &load.end()).await;
    assert_equal(&cache, &client).await;

    etcd.pause(0);
    let asked = Instant::now();
    program.stop();
    assert!(asked.elapsed() < Duration::from_secs(5), "it stopped after {:?}", asked.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_may_die_and_come_back() {
    let mut etcd = Etcd::start().await;
    let program = Program::up_on_etcd(&etcd.endpoints(), &[]);
    let client = program.kube().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let cache = Informer::<ConfigMap>::builder(client.clone()).start();
    let mut load = Load::start(std::slice::from_ref(&client), 4, "load");
    for round in 0..2 {
        load.passes(50).await;
        etcd.kill(0);
        let name = format!("during-{round}");
        let code = refused(maps.create(&PostParams::default(), &map(&name))).await;
        assert!([500, 503, 504].contains(&code), "{code}");
        etcd.restart(0).await;
        eventually("writes are taken again", || async {
            let written =
                maps.create(&PostParams::default(), &map(&format!("after-{round}"))).await;
            match written {
                Err(kube::Error::Api(status)) => status.code == 409, // an earlier try was written
                written => written.is_ok(),
            }
        })
        .await;
    }
    load.passes(50).await;
    load::assert_kept(&client, &load.end()).await;
    assert_equal(&cache, &client).await;
    deploy(&client, "web", 2).await;
    rolled_out(&client, "web", 2).await;
}

#[test]
fn an_etcd_that_does_not_answer_is_told_with_what_to_do() {
    let arguments = ["up", "--listen", "127.0.0.1:0", "--etcd", "http://127.0.0.1:1"];
    let output = crate::program::steersman(&arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("http://127.0.0.1:1") && text.contains("check"), "{text}");
}
