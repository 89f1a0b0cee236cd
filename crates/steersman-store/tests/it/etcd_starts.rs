//! That the starter of etcd processes does what other tests rely on.

use crate::etcd_process::Etcd;

#[tokio::test]
async fn a_member_keeps_what_it_stored_when_it_is_killed_and_loses_it_when_replaced() {
    let mut etcd = Etcd::start().await;
    etcd.ctl(&["put", "/a", "1"]);
    etcd.kill(0);
    etcd.restart(0).await;
    assert_eq!(etcd.ctl(&["get", "/a", "--print-value-only"]), "1\n");
    etcd.stop(0);
    etcd.restart(0).await;
    assert_eq!(etcd.ctl(&["get", "/a", "--print-value-only"]), "1\n");
    etcd.replace().await;
    assert_eq!(etcd.ctl(&["get", "/a"]), "");
}

#[tokio::test]
async fn of_three_members_another_leads_when_the_leader_is_gone() {
    let mut etcd = Etcd::builder().members(3).start().await;
    let leader = etcd.leader().await;
    etcd.kill(leader);
    assert_ne!(etcd.leader().await, leader);
    etcd.restart(leader).await;
}
