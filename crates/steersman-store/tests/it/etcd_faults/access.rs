//! Who may speak with etcd: TLS, and users with passwords.

use steersman_store::etcd::ConnectError;

use super::*;
use crate::etcd_process::Tls;

/// Why a store cannot be opened.
async fn refusal(options: Options) -> String {
    let options = Options { request_timeout: Duration::from_secs(1), ..options };
    let error = EtcdStore::connect(options).await.unwrap_err();
    match &error {
        ConnectError::Store { source, .. } => source.to_string(),
        _ => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_clients_show_each_other_certificates() {
    let tls = Tls::new();
    let etcd = Etcd::builder().tls(&tls).start().await;
    let anonymous = Options { ca: Some(tls.ca.clone().into()), ..options(&etcd) };
    let certificate = Some((tls.certificate.clone().into(), tls.key.clone().into()));
    let known = Options { certificate, ..anonymous.clone() };
    let store = EtcdStore::connect(known.clone()).await.unwrap();
    put(&store, "/registry/a", "1").await;
    assert_eq!(etcd.ctl(&["get", "/registry/a", "--print-value-only"]), "1\n");

    assert!(refusal(options(&etcd)).await.contains("authority"));
    let stranger = Options { ca: Some(Tls::new().ca.into()), ..known };
    let reason = refusal(stranger).await;
    assert!(reason.contains("certificate"), "{reason}");
    let reason = refusal(anonymous).await;
    assert!(reason.contains("certificate"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_authenticates_again_when_the_token_is_no_longer_known() {
    let mut etcd = Etcd::start().await;
    for command in ["user add root:secret", "user grant-role root root", "auth enable"] {
        etcd.ctl(&command.split(' ').collect::<Vec<_>>());
    }
    let user = |name: &str, password: &str| Options {
        user: Some((name.into(), password.into())),
        ..options(&etcd)
    };
    let reason = refusal(options(&etcd)).await;
    assert!(reason.contains("wants a user"), "{reason}");
    let reason = refusal(user("root", "wrong")).await;
    assert!(reason.contains("does not accept"), "{reason}");

    let known = user("root", "secret");
    let store = EtcdStore::connect(known.clone()).await.unwrap();
    let mut replay = Replay::new(&store).await;
    put(&store, "/registry/a", "1").await;
    // Tokens live in the members' memory.
    etcd.kill(0);
    etcd.restart(0).await;
    put(&store, "/registry/a", "2").await;
    replay.assert_complete(&store).await;
    let fresh = EtcdStore::connect(known).await.unwrap();
    assert_eq!(list(&fresh).await, list(&store).await);

    let root = ["--user", "root:secret"];
    for command in [
        "user add limited:secret",
        "role add some",
        "user grant-role limited some",
        "role grant-permission some --prefix=true readwrite /registry/",
    ] {
        let arguments: Vec<&str> = root.into_iter().chain(command.split(' ')).collect();
        etcd.ctl(&arguments);
    }
    let limited = Options { user: Some(("limited".into(), "secret".into())), ..options(&etcd) };
    let reason = refusal(limited).await;
    assert!(reason.contains("all keys"), "{reason}");
}
